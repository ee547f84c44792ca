//! Files put back to what they were before a step, or before a rewind.

use crate::protocol::{RewindFile, TaskId};
use std::path::PathBuf;

/// From where on what was done to files is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// This step of the session and all after it.
    Step(u64),
    /// The rewind of this number and all after it.
    Rewind(u32),
}

/// Files that are to go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRewind {
    /// What stands there now is kept under this number, so that it can be undone.
    pub number: u32,
    pub since: Since,
    /// The step that it follows.
    pub step: u64,
    /// Paths that were changed by hand and go back all the same.
    pub overwrite: Vec<PathBuf>,
}

impl FileRewind {
    /// What is kept for it is kept as that of a task of this name.
    pub fn id_of(number: u32) -> TaskId {
        TaskId::new(format!("{REWIND}{number}"))
    }

    /// The number of the rewind that has this name.
    pub fn number_of(task: &TaskId) -> Option<u32> {
        task.as_str().strip_prefix(REWIND)?.parse().ok()
    }
}

const REWIND: &str = "rewind_";

/// What would happen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesPlanned {
    pub files: Vec<RewindFile>,
    pub diff: String,
    /// What cannot be put back, each in a sentence.
    pub cannot: Vec<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesRewound {
    pub restored: u64,
    pub kept: Vec<RewindFile>,
}

/// What one task changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskChanges {
    pub task_id: TaskId,
    pub files: u64,
    pub added: u64,
    pub removed: u64,
}
