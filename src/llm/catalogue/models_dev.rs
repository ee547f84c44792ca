//! Conversion of the model list from models.dev (`api.json`), a public database of models, to a catalogue.
//!
//! The list maps provider IDs to objects, which map model IDs to models. Prices are in US dollars per million tokens.
//! Missing or implausible values are treated as unknown. Models that cannot call tools or do not generate text are
//! skipped.

use super::entry::{Cards, CatalogueEntry};
use crate::protocol::{Effort, Price};
use jiff::civil::Date;
use serde_json::{Map, Value};

/// Home page, which is given as the source of the entries.
const HOME: &str = "https://models.dev";
/// Provider names in the list, each followed by the name that aye uses.
const PROVIDERS: [(&str, &str); 7] = [
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gemini"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("xai", "xai"),
    ("groq", "groq"),
];
/// Maximum length of a model name in bytes.
const NAME_BYTES: usize = 200;
/// Range of plausible token counts.
const TOKENS: std::ops::RangeInclusive<u64> = 256..=1_000_000_000;
/// Maximum price in US dollars per million tokens.
const MAX_DOLLARS: f64 = 100_000.0;

/// Converts the list. `date` is the date of the download. An error says which data is missing.
pub(super) fn read(text: &str, date: Date) -> Result<Cards, String> {
    let document: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("not the JSON of a model list: {error}"))?;
    let mut models = Vec::new();
    for (theirs, ours) in PROVIDERS {
        let Some(provider) = document.get(theirs) else { continue };
        let listed = provider.get("models").and_then(Value::as_object);
        let listed = listed.ok_or_else(|| format!("the provider `{theirs}` has no `models`"))?;
        models.extend(listed.iter().filter_map(|(id, model)| card(ours, id, model)));
    }
    if models.is_empty() {
        let names = PROVIDERS.map(|(theirs, _)| theirs).join(", ");
        return Err(format!("the list has no models from {names}"));
    }
    Ok(Cards { date: Some(date), models, ..Cards::default() })
}

fn card(provider: &str, id: &str, model: &Value) -> Option<CatalogueEntry> {
    let is_name = !id.is_empty() && id.len() <= NAME_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
    let writes = strings(model, "/modalities/output").is_none_or(|made| made.contains(&"text"));
    let calls = model.get("tool_call").and_then(Value::as_bool);
    if !is_name || !writes || calls == Some(false) {
        return None;
    }
    let tokens = |path: &str| model.pointer(path).and_then(Value::as_u64).filter(|count| TOKENS.contains(count));
    let context_window = tokens("/limit/context");
    let output = tokens("/limit/output").filter(|count| context_window.is_none_or(|window| *count < window));
    Some(CatalogueEntry {
        name: format!("{provider}/{id}"),
        context_window,
        max_output_tokens: output,
        price: price(model),
        images: strings(model, "/modalities/input").map(|taken| taken.contains(&"image")),
        tools: calls,
        reasoning: None,
        efforts: efforts(model),
        source: Some(HOME.to_owned()),
        verified: None,
    })
}

fn strings<'a>(model: &'a Value, path: &str) -> Option<Vec<&'a str>> {
    Some(model.pointer(path)?.as_array()?.iter().filter_map(Value::as_str).collect())
}

fn price(model: &Value) -> Option<Price> {
    let dollars = |name: &str| {
        let amount = model.get("cost")?.get(name)?.as_f64()?;
        (amount.is_finite() && (0.0..=MAX_DOLLARS).contains(&amount)).then_some(amount)
    };
    let (input, output) = (dollars("input")?, dollars("output")?);
    // A provider that charges for models has no free ones, so a price of zero is treated as
    // missing.
    (input > 0.0 || output > 0.0).then(|| Price {
        input,
        output,
        cache_read: dollars("cache_read").unwrap_or(input),
        cache_write: dollars("cache_write").unwrap_or(input),
    })
}

/// Returns the supported efforts, if the list includes them.
fn efforts(model: &Value) -> Option<Vec<Effort>> {
    if model.get("reasoning").and_then(Value::as_bool) == Some(false) {
        return Some(Vec::new());
    }
    let options = model.get("reasoning_options")?.as_array()?;
    let values = options.iter().filter(|option| option.get("type").and_then(Value::as_str) == Some("effort"));
    let named = values.filter_map(|option| option.get("values")?.as_array()).flatten();
    let mut efforts: Vec<Effort> = named.filter_map(|name| Effort::from_name(name.as_str()?)).collect();
    efforts.sort_unstable();
    efforts.dedup();
    (!efforts.is_empty()).then_some(efforts)
}
