//! Responses API events as servers send them, reduced to the fields that aye uses.

use crate::protocol::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Event of any type. Fields may be missing, null, or of an unexpected type.
#[derive(Deserialize)]
pub(crate) struct StreamEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub output_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub item_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub content_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub summary_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub delta: Option<&'a RawValue>,
    /// Text that earlier deltas added up to, sent at the end of a part in any of four fields.
    #[serde(borrow, default)]
    pub text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// Response object contained in the event that ends the stream.
#[derive(Deserialize)]
pub(crate) struct Response<'a> {
    #[serde(borrow, default)]
    pub model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub incomplete_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
}

/// Parses a whole number. Returns `None` for anything else.
pub(crate) fn number(raw: Option<&RawValue>) -> Option<u64> {
    raw?.get().parse().ok()
}

/// Returns the reason why a response is incomplete, if one is given.
pub(crate) fn reason(details: Option<&RawValue>) -> Option<String> {
    let details: Value = serde_json::from_str(details?.get()).ok()?;
    details.get("reason").and_then(Value::as_str).map(str::to_owned)
}

/// Parses a usage object. Returns `None` if its format is unknown.
pub(crate) fn parse_usage(raw: &RawValue) -> Option<Usage> {
    let Ok(Value::Object(wire)) = serde_json::from_str(raw.get()) else { return None };
    let wire = Value::Object(wire);
    // The second name comes from Chat Completions; some gateways use it here.
    let count = |paths: [&str; 2]| paths.iter().find_map(|path| wire.pointer(path).and_then(Value::as_u64)).unwrap_or(0);
    Some(Usage {
        input_tokens: count(["/input_tokens", "/prompt_tokens"]),
        cache_read_tokens: count(["/input_tokens_details/cached_tokens", "/prompt_tokens_details/cached_tokens"]),
        cache_write_tokens: count(["/input_tokens_details/cache_write_tokens", "/prompt_tokens_details/cache_write_tokens"]),
        output_tokens: count(["/output_tokens", "/completion_tokens"]),
        reasoning_tokens: count(["/output_tokens_details/reasoning_tokens", "/completion_tokens_details/reasoning_tokens"]),
    })
}
