//! Rewinding the conversation, the files or both to the state before a prompt or step, and redoing a rewind.

use super::{FileDiffs, StepId, TaskId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// State to which a session is rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RewindTarget {
    /// State before this prompt or, if a step is given, before that step.
    Before {
        task_id: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
    },
    /// State before the most recent prompt that has not been undone (`/undo`).
    Last,
    /// State before the most recent rewind (`/redo`).
    Redo,
}

/// Scope of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindScope {
    #[default]
    Both,
    /// The conversation only. Files are not changed.
    Conversation,
    /// The files only. The conversation is not changed, and aye informs the model.
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

/// Prompt to which a session can be rewound, with what its task did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPoint {
    pub task_id: TaskId,
    /// Number of the prompt within the session, starting at 1.
    pub number: u32,
    pub prompt: String,
    pub timestamp: jiff::Timestamp,
    pub steps: u32,
    /// Number of files that the prompt's task changed.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// Commands that the task ran, one per line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// Effect of a rewind on a single path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindChange {
    /// The file's earlier content is restored.
    Restored,
    /// The file is deleted, because it did not exist at the earlier time.
    Deleted,
    /// The file is recreated, because it has been deleted since.
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

/// Path affected by a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindFile {
    /// Path, relative to the workspace if inside it. `Command::Rewind` accepts paths in this form.
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    pub change: RewindChange,
    /// Number of lines that the rewind adds.
    pub added: u64,
    pub removed: u64,
    /// Reason why the path is not restored by default. Set if it was changed outside aye.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// Whether the path is left as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// Planned effects of a rewind that has not been performed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPlan {
    pub target: RewindTarget,
    pub scope: RewindScope,
    /// Prompt to which the session would be rewound. Absent for a redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<RewindPoint>,
    /// Affected files, ordered by path.
    pub files: Vec<RewindFile>,
    /// Unified diff of the planned changes, with secrets removed.
    pub diff: FileDiffs,
    /// Effects that the rewind cannot undo, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot: Vec<String>,
    /// Number of messages removed from the conversation or, for a redo, restored to it.
    pub messages: u64,
}

/// Result of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    pub target: RewindTarget,
    pub scope: RewindScope,
    /// Number of paths that were changed.
    pub restored: u64,
    /// Paths that were not restored because they had been changed outside aye or could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<RewindFile>,
    /// Number of messages removed from the conversation or, for a redo, restored to it.
    pub messages: u64,
    /// Sentence describing the result for the user.
    pub message: String,
    /// Text of the prompt, to be placed in the composer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}
