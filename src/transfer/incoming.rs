//! Checkpoints to import.

use super::checkpoint::{ArtifactContent, MessageContent};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Checkpoint to import. Most fields are optional.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IncomingCheckpoint<'a> {
    #[serde(default)]
    pub session_id: String,
    #[serde(default)]
    pub task: Option<IncomingTask>,
    pub thread: Vec<IncomingMessage>,
    #[serde(default)]
    pub session_tokens_used: u64,
    #[serde(default)]
    pub tenant_id: Option<String>,
    #[serde(default)]
    pub user_id: Option<String>,
    #[serde(default)]
    pub policy_bundle_version: Option<String>,
    #[serde(default)]
    pub step_cursor: Option<String>,
    #[serde(default)]
    pub checkpointed_at: Option<Timestamp>,
    #[serde(borrow, default)]
    pub aye: Option<IncomingOwn<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IncomingTask {
    pub task_id: Option<String>,
    pub prompt: Option<String>,
    pub status: Option<String>,
    pub step_count: Option<u32>,
    pub max_steps: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IncomingMessage {
    pub message_id: Option<String>,
    pub role: IncomingRole,
    pub content: MessageContent,
    pub token_count: Option<u64>,
    pub task_id: Option<String>,
    pub step_id: Option<String>,
    pub timestamp: Option<Timestamp>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IncomingRole {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IncomingOwn<'a> {
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub workspace: Option<String>,
    #[serde(default)]
    pub created: Option<Timestamp>,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub draft: String,
    #[serde(borrow)]
    pub records: Vec<IncomingEntry<'a>>,
    #[serde(default)]
    pub artifacts: Option<Vec<ArtifactContent>>,
}

#[derive(Deserialize)]
pub(crate) struct IncomingEntry<'a> {
    pub time: Timestamp,
    #[serde(borrow)]
    pub entry: &'a RawValue,
}
