//! The thread: what the person, the model and the tools said.

use super::{CallId, MessageId, StepId, TaskId, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
    Tool,
}

/// One message of the thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub message_id: MessageId,
    pub role: Role,
    pub content: Vec<Part>,
    /// An estimate; the provider's own count corrects the total.
    pub token_count: u64,
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    pub timestamp: jiff::Timestamp,
}

impl Message {
    /// The text parts, joined.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
            })
            .collect()
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult(_) => None,
        })
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// Thinking. `opaque` is the provider's own block (signature and all), sent back unchanged to that provider.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
}

/// A call the model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub tool_call_id: CallId,
    /// As the model wrote it.
    pub tool_name: String,
    pub arguments: Arguments,
}

/// Arguments as the model wrote them: an object, or text that is not one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    Object(Map<String, Value>),
    /// Not a JSON object: the text itself, for the message that says so. Never run.
    Malformed(String),
}

impl Arguments {
    /// An empty text is an empty object: several servers send nothing for a call without arguments.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        serde_json::from_str(text).map_or_else(|_| Self::Malformed(text.to_owned()), Self::Object)
    }
}

/// Why an answer ended.
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
