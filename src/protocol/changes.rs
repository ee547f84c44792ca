//! File changes of a session, compared with its start.

use super::{FileDiffs, TaskId};
use serde::{Deserialize, Serialize};

/// Files changed since the start of a session or of one of its tasks. Also the result of `GetPatchPreview`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFiles {
    /// The changed files, ordered by path.
    pub files: Vec<ChangedFile>,
    /// Number of added lines in all files.
    pub added: u64,
    pub removed: u64,
    /// Number of changed files that are not listed in `files`.
    #[serde(default)]
    pub more_files: u64,
    /// Notes, such as which files were not compared, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Task whose start is the reference; absent if the whole session is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_task: Option<TaskId>,
}

impl ChangedFiles {
    /// Returns `3 files (+12 −4)`, or `None` if there are no changes.
    pub fn summary(&self) -> Option<String> {
        let count = self.files.len() as u64 + self.more_files;
        let files = match count {
            0 => return None,
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        Some(format!("{files} (+{} −{})", self.added, self.removed))
    }
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Path, relative to the workspace if inside it.
    pub path: String,
    pub status: ChangeStatus,
    /// Unified diff with secrets removed. If it is empty, `note` gives the reason.
    pub diff: FileDiffs,
    pub added: u64,
    pub removed: u64,
    /// Known sources of the change.
    pub by: Vec<ChangedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    Added,
    Modified,
    Deleted,
    /// Only the permission bits changed.
    ModeChanged,
    /// A file became a symlink, or a symlink a file.
    TypeChanged,
}

impl ChangeStatus {
    /// Returns git's status letter: `A`, `M`, `D`, `T`.
    pub fn status_char(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified | Self::ModeChanged => 'M',
            Self::Deleted => 'D',
            Self::TypeChanged => 'T',
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    /// One of aye's file tools.
    Tool,
    /// A command that aye ran.
    Command,
    /// Another program, such as an editor or git.
    Outside,
}

impl ChangedBy {
    pub fn description(self) -> &'static str {
        match self {
            Self::Tool => "aye",
            Self::Command => "a command",
            Self::Outside => "outside aye",
        }
    }
}
