//! Threads, which consist of messages from the user, the model and tools.

use super::{CallId, Image, MessageId, StepId, TaskId, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    Tool,
}

/// Message in a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub message_id: MessageId,
    pub role: Role,
    pub content: Vec<Part>,
    /// Estimated number of tokens. The total is corrected with the provider's count.
    pub token_count: u64,
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    pub timestamp: jiff::Timestamp,
}

impl Message {
    /// Returns the message's text parts, joined together.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
            })
            .collect()
    }

    /// Returns the text that the user typed, excluding attachments.
    pub fn typed_text(&self) -> &str {
        match self.content.first() {
            Some(Part::Text { text }) => text,
            Some(Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_)) | None => "",
        }
    }

    /// Returns the message's images, including those in tool results.
    pub fn images(&self) -> impl DoubleEndedIterator<Item = &Image> {
        self.content.iter().flat_map(|part| match part {
            Part::Image(image) => std::slice::from_ref(image),
            Part::ToolResult(result) => &result.images,
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall(_) => &[],
        })
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult(_) | Part::Image(_) => None,
        })
    }
}

/// Part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// Model reasoning. `opaque` is the provider's own block, including its signature, which is returned to that
    /// provider unchanged.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// Image supplied by the user. Its data is stored as an artifact.
    Image(Image),
}

/// Tool call made by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub tool_call_id: CallId,
    /// Tool name as the model wrote it.
    pub tool_name: String,
    pub arguments: CallArguments,
}

/// Arguments as the model wrote them: an object, or any other text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CallArguments {
    Object(Map<String, Value>),
    /// Text that is not a JSON object, retained for the error message. A call with such arguments is never run.
    Malformed(String),
}

/// Maximum size in bytes of a single call's arguments.
pub const ARGUMENT_BYTES: usize = 1 << 20;
/// Maximum number of values in a single call's JSON arguments. Limited because parsed values take many times the memory
/// of their text.
const ARGUMENT_VALUES: usize = 20_000;
/// Separator between the beginning of oversized arguments and the description of the limit that they exceed.
const OVER_LIMIT: &str = "… [over a limit: ";

/// Reason why a call's arguments prevent it from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentFault {
    NotAnObject,
    /// The server never marked the call as complete.
    Unfinished,
    /// The arguments exceed a limit, which the text describes.
    OverLimit(String),
}

impl CallArguments {
    /// Creates malformed arguments that retain only `head`, the beginning of the original text, with a description of
    /// the limit that it exceeded.
    pub fn over_limit(head: &str, limit: &str) -> Self {
        Self::Malformed(format!("{head}{OVER_LIMIT}{limit}]"))
    }

    /// Returns a description of the limit that this JSON text exceeds, or `None` if it is within all limits.
    pub fn describe_exceeded_limit(text: &str) -> Option<String> {
        if text.len() > ARGUMENT_BYTES {
            return Some(format!("{} bytes; a call may have at most {ARGUMENT_BYTES}", text.len()));
        }
        (value_count(text.as_bytes()) > ARGUMENT_VALUES).then(|| format!("more than {ARGUMENT_VALUES} values"))
    }

    /// Returns the reason why the call cannot run, or `None` if its arguments are valid.
    pub fn fault(&self) -> Option<ArgumentFault> {
        let Self::Malformed(text) = self else { return None };
        let limit = text.strip_suffix(']').and_then(|text| text.rsplit_once(OVER_LIMIT));
        Some(match limit {
            Some((_, limit)) => ArgumentFault::OverLimit(limit.to_owned()),
            None if matches!(Self::parse(text), Self::Object(_)) => ArgumentFault::Unfinished,
            None => ArgumentFault::NotAnObject,
        })
    }

    /// Parses arguments. Empty text is treated as an empty object, because several providers send no text for a call
    /// without arguments.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        // Some servers encode the arguments twice, as a JSON string that contains the object.
        let object = serde_json::from_str(text)
            .or_else(|_| serde_json::from_str::<String>(text).and_then(|inner| serde_json::from_str(&inner)));
        object.map_or_else(|_| Self::Malformed(text.to_owned()), Self::Object)
    }
}

/// Estimates the number of values in a JSON text from its separators.
pub fn value_count(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut escaped) = (0, false, false);
    for &byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' | b',' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Reason why a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    ToolUse,
    StopSequence,
    Refusal,
    PauseTurn,
    ContentFilter,
    ContextWindowExceeded,
    Error,
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_objects_encoded_as_strings_are_accepted_as_arguments() {
        let object = CallArguments::parse(r#"{"path": "a"}"#);
        assert_eq!(CallArguments::parse(r#""{\"path\": \"a\"}""#), object);
        assert_eq!(CallArguments::parse("  "), CallArguments::Object(Map::new()));
        for text in ["[1]", "\"a\"", "{\"path\"", "null"] {
            assert_eq!(CallArguments::parse(text), CallArguments::Malformed(text.to_owned()));
        }
    }
}
