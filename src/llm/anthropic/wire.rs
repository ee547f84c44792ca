//! The events of the Messages API as they are written, each read for what is used of it.

use crate::protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Read first: events and fields that nobody here knows must not stop the stream.
#[derive(Deserialize)]
pub struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub struct MessageStart {
    pub message: StartedMessage,
}

#[derive(Deserialize)]
pub struct StartedMessage {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub content: Option<Vec<Map<String, Value>>>,
    #[serde(default)]
    pub stop_reason: Option<String>,
    #[serde(default)]
    pub usage: Value,
}

#[derive(Deserialize)]
pub struct BlockStart {
    #[serde(default)]
    pub index: Option<u64>,
    pub content_block: Map<String, Value>,
}

#[derive(Deserialize)]
pub struct BlockDelta<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow)]
    pub delta: Delta<'a>,
}

#[derive(Deserialize)]
pub struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    #[serde(default, borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub thinking: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub signature: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub partial_json: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub struct BlockStop {
    #[serde(default)]
    pub index: Option<u64>,
}

#[derive(Deserialize)]
pub struct MessageDelta {
    #[serde(default)]
    pub delta: Option<MessageEnd>,
    #[serde(default)]
    pub usage: Value,
}

#[derive(Deserialize)]
pub struct MessageEnd {
    #[serde(default)]
    pub stop_reason: Option<String>,
}

/// Counts so far; a later one stands in place of an earlier one.
#[derive(Deserialize, Default, Clone)]
pub struct WireUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Clone)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// Counts of another shape are no reason to lose an answer.
    pub fn merge(&mut self, later: Value) {
        let Ok(later) = serde_json::from_value::<Self>(later) else { return };
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details.take());
    }

    pub fn total(&self) -> Usage {
        let cache_read_tokens = self.cache_read_input_tokens.unwrap_or(0);
        let cache_write_tokens = self.cache_creation_input_tokens.unwrap_or(0);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0) + cache_read_tokens + cache_write_tokens,
            cache_read_tokens,
            cache_write_tokens,
            output_tokens: self.output_tokens.unwrap_or(0),
            reasoning_tokens: self.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens).unwrap_or(0),
        }
    }
}
