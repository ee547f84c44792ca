//! Rewind of the conversation, the files or both to the state before a prompt or step; and redo.

use super::{FileDiffs, StepId, TaskId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Target of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RewindTarget {
    /// Before this prompt, or before a step of it.
    Before {
        task_id: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
    },
    /// Before the last prompt that was not undone: `/undo`.
    Last,
    /// State before the last rewind: `/redo`.
    Redo,
}

/// Scope of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindScope {
    #[default]
    Both,
    /// Conversation only; files are unchanged.
    Conversation,
    /// Files only; the conversation is unchanged, and aye tells the model.
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

/// Prompt to which a session can be rewound, with its effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPoint {
    pub task_id: TaskId,
    /// Number of the prompt in the session, counted from 1.
    pub number: u32,
    pub prompt: String,
    pub timestamp: jiff::Timestamp,
    pub steps: u32,
    /// Number of files that this task changed, and their changed lines.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// Commands that ran, one per line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// Effect of a rewind on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindChange {
    /// The earlier content is restored.
    Restored,
    /// The file did not exist then, and is deleted.
    Deleted,
    /// A deleted file is recreated.
    BroughtBack,
}

impl RewindChange {
    pub fn verb(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Deleted => "deleted",
            Self::BroughtBack => "recreated",
        }
    }
}

/// Path that a rewind changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindFile {
    /// Path, relative to the workspace if inside it. `Command::Rewind` accepts it in this form.
    pub path: PathBuf,
    pub change: RewindChange,
    /// Numbers of added and removed lines.
    pub added: u64,
    pub removed: u64,
    /// Reason why the path is not restored by default: it was changed outside aye.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// Whether the path is left unchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// Planned effects of a rewind. No file has been changed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPlan {
    pub target: RewindTarget,
    pub scope: RewindScope,
    /// Prompt to rewind to; absent for a redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<RewindPoint>,
    /// Changed files, ordered by path.
    pub files: Vec<RewindFile>,
    /// Unified diff of the changes, without secrets.
    pub diff: FileDiffs,
    /// Effects that cannot be undone, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot: Vec<String>,
    /// Number of messages removed from the conversation, or restored by a redo.
    pub messages: u64,
}

/// Result of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    pub target: RewindTarget,
    pub scope: RewindScope,
    /// Number of changed paths.
    pub restored: u64,
    /// Paths that were not restored: changed outside aye, or not writable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<RewindFile>,
    /// Number of messages removed from the conversation, or restored by a redo.
    pub messages: u64,
    /// Sentence for the user.
    pub message: String,
    /// Text of the prompt, for the composer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}
