//! Rewind to before a prompt or a step: the conversation, the files, or both; and redo.

use super::{StepId, TaskId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where to go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RewindTarget {
    /// Before this prompt; with a step, before that step of it.
    Before {
        task_id: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
    },
    /// Before the last prompt that was not undone: `/undo`.
    Last,
    /// To before the last rewind: `/redo`.
    Redo,
}

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindScope {
    #[default]
    Both,
    /// What was said; files stay.
    Conversation,
    /// Files; what was said stays, and the model is told.
    Files,
}

impl RewindScope {
    pub fn conversation(self) -> bool {
        matches!(self, Self::Both | Self::Conversation)
    }

    pub fn files(self) -> bool {
        matches!(self, Self::Both | Self::Files)
    }
}

/// A prompt that can be gone back to, and what followed from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPoint {
    pub task_id: TaskId,
    /// As people count: the first prompt of the session is 1.
    pub number: u32,
    pub prompt: String,
    pub timestamp: jiff::Timestamp,
    pub steps: u32,
    /// Files that this task changed, and their lines.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// The commands that ran, each in a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// What a rewind does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindChange {
    /// It has what it had then.
    Restored,
    /// It was not there then.
    Deleted,
    /// It is there again.
    BroughtBack,
}

impl RewindChange {
    pub fn words(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Deleted => "deleted",
            Self::BroughtBack => "brought back",
        }
    }
}

/// One path that a rewind changes, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindFile {
    /// Relative to the workspace where it lies in it; `Command::Rewind` takes it back as it is.
    pub path: PathBuf,
    pub change: RewindChange,
    /// Lines that come and go.
    pub added: u64,
    pub removed: u64,
    /// Why it is not simply put back: it was changed by hand since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// It stays as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// What a rewind would do; nothing of it is done yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPlan {
    pub target: RewindTarget,
    pub scope: RewindScope,
    /// The prompt it goes back to; none for a redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<RewindPoint>,
    /// In the order of their paths.
    pub files: Vec<RewindFile>,
    /// What would change, unified, without secrets.
    pub diff: String,
    /// What cannot be put back, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot: Vec<String>,
    /// Messages that go from the conversation; of a redo, those that come back.
    pub messages: u64,
}

/// What a rewind did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    pub target: RewindTarget,
    pub scope: RewindScope,
    /// Paths that were changed.
    pub restored: u64,
    /// Paths that stay as they are: changed by hand since, or not to be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<RewindFile>,
    /// Messages that went from the conversation, or came back.
    pub messages: u64,
    /// For the person, in a sentence.
    pub message: String,
    /// What was said then, for the composer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}
