//! Entries of a model list in any server's format. Values that are unreadable or implausible are treated as missing.

use crate::protocol::{Effort, ModelFacts, Price};
use serde_json::Value;

/// Maximum length of a model name in bytes.
const NAME_BYTES: usize = 300;
/// Range of plausible context window sizes in tokens. Any other value is either a mistake, such as a wrong unit, or
/// malicious.
const TOKENS: std::ops::RangeInclusive<u64> = 256..=1_000_000_000;
const MILLION: f64 = 1_000_000.0;
/// Maximum price in US dollars per token.
const MAX_DOLLARS: f64 = 0.1;

/// Model as described by its server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelEntry {
    /// Model name to use in requests.
    pub id: String,
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub price: Option<Price>,
    pub images: Option<bool>,
    pub reasoning: Option<bool>,
    pub tools: Option<bool>,
    /// Supported efforts in ascending order. Absent if the server does not list them.
    pub efforts: Option<Vec<Effort>>,
}

impl ModelEntry {
    /// Overrides facts about the model with those that the server reported.
    pub(crate) fn apply_to(&self, facts: ModelFacts) -> ModelFacts {
        let context_window = self.context_window.unwrap_or(facts.context_window);
        let max_output_tokens = self.max_output_tokens.or(facts.max_output_tokens);
        let reasoning = self.reasoning.unwrap_or(facts.reasoning);
        ModelFacts {
            name: facts.name,
            context_window,
            max_output_tokens: max_output_tokens.filter(|limit| *limit <= context_window),
            price: self.price.or(facts.price),
            price_is_assumed: false,
            price_elsewhere: facts.price_elsewhere.filter(|_| self.price.is_none()),
            tools: self.tools.or(facts.tools),
            images: self.images.unwrap_or(facts.images),
            reasoning,
            efforts: if reasoning { self.efforts.clone().unwrap_or(facts.efforts) } else { Vec::new() },
        }
    }

    pub(crate) fn has_details(&self) -> bool {
        *self != Self { id: self.id.clone(), ..Self::default() }
    }
}

/// Parses a model list. Returns `None` if the body is not a model list.
pub(super) fn read(body: &Value) -> Option<Vec<ModelEntry>> {
    let list = body.get("data").or_else(|| body.get("models")).unwrap_or(body).as_array()?;
    Some(list.iter().filter_map(parse_entry).collect())
}

fn parse_entry(model: &Value) -> Option<ModelEntry> {
    let id = ["id", "name", "model"].iter().find_map(|field| model.get(field)?.as_str()).filter(|id| is_name(id))?;
    // Gemini lists the path of a model.
    let id = id.strip_prefix("models/").unwrap_or(id).to_owned();
    if !generates_text(model) {
        return None;
    }
    let context_window = window(model);
    let output = ["max_completion_tokens", "max_output_tokens", "outputTokenLimit", "top_provider/max_completion_tokens"];
    let mut max_output_tokens = output.iter().find_map(|field| tokens(field_at(model, field)?));
    // On servers without `max_input_tokens`, `max_tokens` is the context window or the default length of a response.
    if model.get("max_input_tokens").is_some() {
        max_output_tokens = max_output_tokens.or_else(|| tokens(model.get("max_tokens")?));
    }
    Some(ModelEntry {
        id,
        context_window,
        max_output_tokens,
        price: price(model),
        images: images(model),
        reasoning: reasoning(model),
        tools: calls_tools(model),
        efforts: efforts(model),
    })
}

/// Returns the field at a path, whose components are separated by `/`.
fn field_at<'a>(model: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(model, |value, field| value.get(field))
}

/// Returns whether a name is safe to use in tables, requests and settings files, which means that it contains no
/// control or invisible characters.
fn is_name(id: &str) -> bool {
    let hidden = |letter: char| {
        letter.is_control()
            || (letter.is_whitespace() && letter != ' ')
            || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    !id.trim().is_empty() && id.trim() == id && id.len() <= NAME_BYTES && !id.chars().any(hidden)
}

/// Returns whether the model generates text. Lists also include models for embeddings, images and speech.
fn generates_text(model: &Value) -> bool {
    let kind = model.get("type").and_then(Value::as_str).unwrap_or_default();
    let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
    let chats = field_at(model, "capabilities/completion_chat").and_then(Value::as_bool);
    let says_text = texts(field_at(model, "architecture/output_modalities")).is_none_or(|made| made.contains(&"text"));
    !matches!(kind, "embedding" | "embeddings" | "image" | "rerank" | "moderation" | "audio" | "transcribe")
        && methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
        && chats != Some(false)
        && says_text
}

fn window(model: &Value) -> Option<u64> {
    const FIELDS: [&str; 11] = [
        // The loaded context length applies, even if the model supports a longer context.
        "loaded_context_length",
        "meta/n_ctx",
        "context_length",
        "context_window",
        "max_model_len",
        "max_context_length",
        "max_context_window_tokens",
        "inputTokenLimit",
        "max_input_tokens",
        "meta/n_ctx_train",
        "limits/max_context_window_tokens",
    ];
    let said = FIELDS.iter().find_map(|field| tokens(field_at(model, field)?));
    let routed = field_at(model, "top_provider/context_length").and_then(tokens);
    match (said, routed) {
        (Some(said), Some(routed)) => Some(said.min(routed)),
        (said, routed) => said.or(routed),
    }
}

fn tokens(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| TOKENS.contains(number))
}

/// Parses a price in US dollars per token, given as a number or as text in the format that routers use. Prices in other
/// units are ignored.
fn price(model: &Value) -> Option<Price> {
    let dollars = |field: &str| {
        let value = field_at(model, &format!("pricing/{field}"))?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse::<f64>().ok())?;
        (number.is_finite() && (0.0..=MAX_DOLLARS).contains(&number)).then_some(round_dollars(number * MILLION))
    };
    let (input, output) = (dollars("prompt")?, dollars("completion")?);
    Some(Price {
        input,
        output,
        cache_read: dollars("input_cache_read").unwrap_or(input),
        cache_write: dollars("input_cache_write").unwrap_or(input),
    })
}

/// Removes the rounding error that a multiplication introduced.
fn round_dollars(dollars: f64) -> f64 {
    (dollars * MILLION).round() / MILLION
}

fn texts(value: Option<&Value>) -> Option<Vec<&str>> {
    Some(value?.as_array()?.iter().filter_map(Value::as_str).collect())
}

fn images(model: &Value) -> Option<bool> {
    let taken = ["architecture/input_modalities", "input_modalities", "modalities/input"];
    let taken = taken.iter().find_map(|field| texts(field_at(model, field))).map(|taken| taken.contains(&"image"));
    let able = ["capabilities/vision", "capabilities/image_input/supported", "supports_vision", "supports_image_in"];
    let able = || able.iter().find_map(|field| field_at(model, field)?.as_bool());
    let kind = || (model.get("type")?.as_str()? == "vlm").then_some(true);
    taken.or_else(able).or_else(kind)
}

fn reasoning(model: &Value) -> Option<bool> {
    let parameters = texts(model.get("supported_parameters"));
    let parameters = parameters.map(|known| known.contains(&"reasoning") || known.contains(&"reasoning_effort"));
    let able = ["capabilities/effort/supported", "capabilities/reasoning", "supports_reasoning", "thinking"];
    parameters.or_else(|| able.iter().find_map(|field| field_at(model, field)?.as_bool()))
}

/// Returns whether the model can call tools, as reported in the formats of routers and Mistral. Returns `None` if this
/// is not reported.
fn calls_tools(model: &Value) -> Option<bool> {
    let parameters = texts(model.get("supported_parameters")).map(|known| known.contains(&"tools"));
    parameters.or_else(|| field_at(model, "capabilities/function_calling")?.as_bool())
}

/// Parses the supported efforts in the formats of Anthropic and OpenRouter. Only OpenRouter reports whether reasoning
/// can be turned off.
fn efforts(model: &Value) -> Option<Vec<Effort>> {
    let of_anthropic = |effort: &Effort| {
        field_at(model, &format!("capabilities/effort/{}/supported", effort.as_str())).and_then(Value::as_bool) == Some(true)
    };
    let mut efforts: Vec<Effort> = match texts(field_at(model, "reasoning/supported_efforts")) {
        Some(names) => {
            let may_be_off = field_at(model, "reasoning/mandatory").and_then(Value::as_bool) == Some(false);
            names.into_iter().filter_map(Effort::from_name).chain(may_be_off.then_some(Effort::Off)).collect()
        }
        None => Effort::ALL.into_iter().filter(of_anthropic).collect(),
    };
    efforts.sort_unstable();
    efforts.dedup();
    (!efforts.is_empty()).then_some(efforts)
}
