//! Files that a session has changed since it started.

use super::{FileDiffs, TaskId};
use serde::{Deserialize, Serialize};

/// Files changed since the start of a session or of one of its tasks. Also returned by `GetPatchPreview`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFiles {
    /// The changed files, ordered by path.
    pub files: Vec<ChangedFile>,
    /// Number of lines added across all files.
    pub added: u64,
    pub removed: u64,
    /// Number of further changed files, which are not listed in `files`.
    #[serde(default)]
    pub more_files: u64,
    /// Remarks on the comparison, such as which files were skipped, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Task since whose start the files are compared. Absent if they are compared with the start of the session.
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

/// Changed path, with the difference between its old and new state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Path, relative to the workspace if inside it.
    pub path: String,
    pub status: ChangeStatus,
    /// Unified diff with secrets removed. If it is empty, `note` says why.
    pub diff: FileDiffs,
    pub added: u64,
    pub removed: u64,
    /// Known causes of the change.
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
    /// A file was replaced by a symlink, or a symlink by a file.
    TypeChanged,
}

impl ChangeStatus {
    /// Returns the status letter that git uses: `A`, `M`, `D` or `T`.
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
