//! The chunks of Chat Completions as servers really write them: every field may be missing, null or of another type.

use crate::protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
pub struct Chunk<'a> {
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default, borrow)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(default, borrow)]
    pub usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub x_groq: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub object: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: &'a RawValue,
}

/// The usage that one provider keeps in a field of its own.
pub fn groq_usage(raw: &RawValue) -> Option<&RawValue> {
    serde_json::from_str::<Groq<'_>>(raw.get()).ok().map(|groq| groq.usage)
}

#[derive(Deserialize)]
pub struct Choice<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default, borrow)]
    pub delta: Option<Delta<'a>>,
    /// Some servers send the whole message in one chunk.
    #[serde(default, borrow)]
    pub message: Option<Delta<'a>>,
    #[serde(default, borrow)]
    pub finish_reason: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub struct Delta<'a> {
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
pub struct CallPiece<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default, borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
pub struct FunctionPiece<'a> {
    #[serde(default, borrow)]
    pub name: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub arguments: Option<&'a RawValue>,
}

/// One of the parts that content is made of at some servers.
#[derive(Deserialize)]
pub struct ContentPart<'a> {
    #[serde(default, borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub thinking: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub refusal: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// A usage object; `None` when it is of another shape.
pub fn usage_of(raw: &RawValue) -> Option<Usage> {
    let wire: WireUsage = serde_json::from_str::<Option<WireUsage>>(raw.get()).ok()??;
    let prompt = wire.prompt_tokens_details.unwrap_or_default();
    let completion = wire.completion_tokens_details.unwrap_or_default();
    Some(Usage {
        input_tokens: wire.prompt_tokens.unwrap_or(0),
        cache_read_tokens: prompt.cached_tokens.or(wire.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write_tokens: prompt.cache_write_tokens.unwrap_or(0),
        output_tokens: wire.completion_tokens.unwrap_or(0),
        reasoning_tokens: completion.reasoning_tokens.unwrap_or(0),
    })
}
