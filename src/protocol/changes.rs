//! Changes of a session: the files that differ from its start.

use super::TaskId;
use serde::{Deserialize, Serialize};

/// All that changed since the session, or one task of it, began; also the answer to `GetPatchPreview`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFiles {
    /// In the order of their paths.
    pub files: Vec<ChangedFile>,
    /// Lines of all of them.
    pub added: u64,
    pub removed: u64,
    /// Changed files beyond those in `files`.
    #[serde(default)]
    pub more_files: u64,
    /// What else is to be known: what was not looked at, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The task since whose start these changed; none for the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_task: Option<TaskId>,
}

impl ChangedFiles {
    /// `3 files (+12 −4)`; nothing where nothing changed.
    pub fn counts(&self) -> Option<String> {
        let count = self.files.len() as u64 + self.more_files;
        let files = match count {
            0 => return None,
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        Some(format!("{files} (+{} −{})", self.added, self.removed))
    }
}

/// One path that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Relative to the workspace where it lies in it.
    pub path: String,
    pub status: ChangeStatus,
    /// Unified, without secrets; empty where there is none to show, and then `note` says why.
    pub diff: String,
    pub added: u64,
    pub removed: u64,
    /// Who changed it, as far as that was seen.
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
    /// Only the permission bits.
    ModeChanged,
    /// A file became a link, or a link a file.
    TypeChanged,
}

impl ChangeStatus {
    /// As git has it: `A`, `M`, `D`, `T`.
    pub fn letter(self) -> char {
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
    /// A file tool of aye.
    Tool,
    /// A command that aye ran.
    Command,
    /// Somebody else: an editor, git, another program.
    Outside,
}

impl ChangedBy {
    pub fn words(self) -> &'static str {
        match self {
            Self::Tool => "aye",
            Self::Command => "a command",
            Self::Outside => "outside of aye",
        }
    }
}
