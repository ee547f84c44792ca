//! Messages API events, reduced to the fields that aye uses.

use crate::llm::json::{Text, parse_count};
use crate::protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Fields of an event that are parsed before the others, so unknown events and fields do not interrupt the stream.
#[derive(Deserialize)]
pub(crate) struct EventHead<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct MessageStart {
    pub message: StartedMessage,
}

#[derive(Deserialize)]
pub(crate) struct StartedMessage {
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
pub(crate) struct BlockStart {
    #[serde(default)]
    pub index: Option<u64>,
    pub content_block: Map<String, Value>,
}

#[derive(Deserialize)]
pub(crate) struct BlockDelta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Option<Text<'a>>,
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow)]
    pub delta: DeltaContent<'a>,
}

#[derive(Deserialize)]
pub(crate) struct DeltaContent<'a> {
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
pub(crate) struct BlockStop {
    #[serde(default)]
    pub index: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct MessageDelta {
    #[serde(default)]
    pub delta: Option<MessageEnd>,
    #[serde(default)]
    pub usage: Value,
}

#[derive(Deserialize)]
pub(crate) struct MessageEnd {
    #[serde(default)]
    pub stop_reason: Option<String>,
}

/// Token counts received so far. Later counts replace earlier ones.
#[derive(Default, Clone)]
pub(crate) struct MessagesUsage {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl MessagesUsage {
    /// Replaces counts with later ones. Counts in an unknown format are ignored rather than failing the whole response.
    pub(crate) fn merge(&mut self, later: &Value) {
        let take = |kept: &mut Option<u64>, value: Option<&Value>| *kept = value.and_then(parse_count).or(*kept);
        take(&mut self.input, later.get("input_tokens"));
        take(&mut self.cache_read, later.get("cache_read_input_tokens"));
        take(&mut self.cache_write, later.get("cache_creation_input_tokens"));
        take(&mut self.output, later.get("output_tokens"));
        take(&mut self.reasoning, later.get("output_tokens_details").and_then(|details| details.get("thinking_tokens")));
    }

    /// Returns the total usage, or `None` if no counts have been reported yet.
    pub(crate) fn total(&self) -> Option<Usage> {
        let counts = [self.input, self.cache_read, self.cache_write, self.output, self.reasoning];
        counts.iter().any(Option::is_some).then(|| {
            let [input, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens] =
                counts.map(Option::unwrap_or_default);
            let input_tokens = input + cache_read_tokens + cache_write_tokens;
            Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens }
        })
    }
}
