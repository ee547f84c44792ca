//! Chat Completions chunks. A server may omit any field, set it to null, or give it a different type.

use crate::llm::json::{Text, parse_count, parse_text};
use crate::protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Deserialize)]
pub(crate) struct ChatChunk<'a> {
    #[serde(default, borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub model: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(default, borrow)]
    pub usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub x_groq: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub object: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: &'a RawValue,
}

/// Returns the usage contained in the `x_groq` field.
pub(crate) fn groq_usage(raw: &RawValue) -> Option<&RawValue> {
    serde_json::from_str::<Groq<'_>>(raw.get()).ok().map(|groq| groq.usage)
}

#[derive(Deserialize)]
pub(crate) struct ChatChoice<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default, borrow)]
    pub delta: Option<ChatDelta<'a>>,
    /// Complete message, which some servers send in a single chunk instead of deltas.
    #[serde(default, borrow)]
    pub message: Option<ChatDelta<'a>>,
    #[serde(default, borrow)]
    pub finish_reason: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub usage: Option<&'a RawValue>,
    /// Error from an upstream server, which one gateway reports in this field.
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct ChatDelta<'a> {
    #[serde(default, borrow)]
    pub content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub reasoning_content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub reasoning: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub reasoning_details: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub refusal: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub tool_calls: Option<Vec<CallPiece<'a>>>,
    #[serde(default, borrow)]
    pub function_call: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct CallPiece<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default, borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct FunctionPiece<'a> {
    #[serde(default, borrow)]
    pub name: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub arguments: Option<&'a RawValue>,
}

/// Parses the reason why a response ended, which is a string or an object that contains the string. Any other value
/// also means that the response ended.
pub(crate) fn parse_finish_reason(raw: &RawValue) -> Option<String> {
    if let Some(reason) = parse_text(raw) {
        return Some(reason.into_owned()).filter(|reason| !reason.is_empty());
    }
    match serde_json::from_str::<Value>(raw.get()).ok()? {
        Value::Null | Value::Bool(false) => None,
        Value::Object(map) => {
            let words = ["reason", "finish_reason", "type", "name"].map(|name| map.get(name).and_then(Value::as_str));
            Some(words.into_iter().flatten().next().unwrap_or("stop").to_owned())
        }
        _ => Some("stop".to_owned()),
    }
}

/// Content part, as sent by servers that split content into parts.
#[derive(Deserialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(default, borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub thinking: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub refusal: Option<&'a RawValue>,
}

/// Parses a usage object. Returns `None` if it is empty or has an unknown format.
pub(crate) fn parse_usage(raw: &RawValue) -> Option<Usage> {
    let usage: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
    let first = |paths: &[&str]| {
        paths.iter().find_map(|path| {
            let mut names = path.split('.');
            let value = usage.get(names.next()?)?;
            parse_count(names.try_fold(value, |value, name| value.get(name))?)
        })
    };
    let input = first(&["prompt_tokens", "input_tokens"]);
    let output = first(&["completion_tokens", "output_tokens"]);
    let cache_read = first(&[
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cache_read_input_tokens",
        "cached_tokens",
    ]);
    let cache_write = first(&["prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"]);
    let reasoning = first(&["completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"]);
    let told = [input, output, cache_read, cache_write, reasoning].iter().any(Option::is_some);
    told.then(|| Usage {
        input_tokens: input.unwrap_or(0),
        cache_read_tokens: cache_read.unwrap_or(0),
        cache_write_tokens: cache_write.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        reasoning_tokens: reasoning.unwrap_or(0),
    })
}
