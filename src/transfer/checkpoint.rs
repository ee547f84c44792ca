//! File format for exported sessions: a checkpoint extended by an `aye` object, which contains the data needed for a
//! lossless import.

use crate::ports::Record;
use crate::protocol::{
    Artifact, Message, MessageId, Part, QueuedMessage, Role, SessionId, SessionStatus, StepId, TaskId, WorkspaceId,
};
use crate::session::TaskProgress;
use jiff::Timestamp;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Checkpoint format version.
pub(crate) const VERSION: &str = "1.0";
/// Version of the `aye` object.
pub(crate) const OWN_FORMAT: u32 = 1;

/// Exported session. `R` is the type of its records: either a list, or a stream that reads the records while the file
/// is being written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCheckpoint<R = Vec<CheckpointRecord>> {
    pub checkpoint_version: &'static str,
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    /// Tenant ID, present only for imported sessions.
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    pub session_status: SessionStatus,
    pub task: Option<CheckpointTask>,
    /// Last completed step.
    pub step_cursor: Option<StepId>,
    pub thread: Vec<CheckpointMessage>,
    pub session_tokens_used: u64,
    pub policy_bundle_version: Option<String>,
    /// Time of the last record.
    pub checkpointed_at: Timestamp,
    pub aye: AyeData<R>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckpointTask {
    pub task_id: TaskId,
    pub prompt: String,
    /// Status: `running`, `waiting`, `paused`, `completed`, `failed` or `cancelled`.
    pub status: String,
    pub step_count: u32,
    pub max_steps: u32,
}

impl From<&TaskProgress> for CheckpointTask {
    fn from(task: &TaskProgress) -> Self {
        Self {
            task_id: task.task_id.clone(),
            prompt: task.prompt.clone(),
            status: task.stage.as_str().to_owned(),
            step_count: task.step_count,
            max_steps: task.max_steps,
        }
    }
}

/// Message in the thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckpointMessage {
    pub message_id: MessageId,
    pub role: Role,
    pub content: MessageContent,
    pub token_count: u64,
    pub task_id: TaskId,
    pub step_id: Option<StepId>,
    pub timestamp: Timestamp,
}

impl From<Message> for CheckpointMessage {
    fn from(message: Message) -> Self {
        let Message { message_id, role, content, token_count, task_id, step_id, timestamp } = message;
        Self { message_id, role, content: content.into(), token_count, task_id, step_id, timestamp }
    }
}

/// Message content, represented as a string if it is plain text and as parts otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageContent {
    Text(String),
    Parts(Vec<Part>),
}

impl From<Vec<Part>> for MessageContent {
    fn from(mut parts: Vec<Part>) -> Self {
        match parts.as_mut_slice() {
            [Part::Text { text }] => Self::Text(std::mem::take(text)),
            _ => Self::Parts(parts),
        }
    }
}

impl From<MessageContent> for Vec<Part> {
    fn from(content: MessageContent) -> Self {
        match content {
            MessageContent::Text(text) if text.is_empty() => Vec::new(),
            MessageContent::Text(text) => vec![Part::Text { text }],
            MessageContent::Parts(parts) => parts,
        }
    }
}

impl Serialize for MessageContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MessageContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrParts;
        impl<'de> Visitor<'de> for StringOrParts {
            type Value = MessageContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a list of parts such as {\"type\": \"text\", \"text\": \"…\"}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MessageContent, E> {
                Ok(MessageContent::Text(text.to_owned()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<MessageContent, E> {
                Ok(MessageContent::Parts(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<MessageContent, A::Error> {
                let mut found = Vec::new();
                while let Some(part) = parts.next_element()? {
                    found.push(part);
                }
                Ok(MessageContent::Parts(found))
            }
        }
        deserializer.deserialize_any(StringOrParts)
    }
}

/// aye-specific data that the checkpoint format does not provide for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AyeData<R = Vec<CheckpointRecord>> {
    pub format: u32,
    /// Version of aye that wrote the file.
    pub version: &'static str,
    pub title: Option<String>,
    /// Parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    pub workspace: String,
    pub created: Timestamp,
    pub model: String,
    /// Unsent input.
    pub draft: String,
    /// Queued messages.
    pub queue: Vec<QueuedMessage>,
    /// Cost in US dollars, or `null` if no price is known.
    pub cost_usd: Option<f64>,
    pub estimated: bool,
    pub records: R,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<ArtifactContent>>,
}

/// Record with the time at which it was written.
#[derive(Debug, Serialize)]
pub(crate) struct CheckpointRecord {
    pub time: Timestamp,
    pub entry: Record,
}

/// Artifact with its content.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ArtifactContent {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub base64: String,
}
