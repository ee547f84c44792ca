//! Restoration of files to their state before a step or a rewind.

use crate::protocol::{FileDiffs, RewindFile, TaskId};
use std::path::PathBuf;

/// Start of the changes to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindStart {
    /// This step of the session and all later ones.
    Step(u64),
    /// The rewind with this number and all later ones.
    Rewind(u32),
}

/// Request to restore files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRewind {
    /// Number under which the current state is stored, so that the rewind can be undone.
    pub number: u32,
    pub since: RewindStart,
    /// Last step before the rewind.
    pub step: u64,
    /// Paths to restore although they changed outside aye.
    pub overwrite: Vec<PathBuf>,
}

impl FileRewind {
    /// Returns the task ID under which the state is stored.
    pub(crate) fn task_id(number: u32) -> TaskId {
        TaskId::new(format!("{REWIND}{number}"))
    }

    /// Returns the number of the rewind with this task ID.
    pub(crate) fn rewind_number(task: &TaskId) -> Option<u32> {
        task.as_str().strip_prefix(REWIND)?.parse().ok()
    }
}

const REWIND: &str = "rewind_";

/// Planned effects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileRewindPlan {
    pub files: Vec<RewindFile>,
    pub diff: FileDiffs,
    /// Effects that cannot be undone, one sentence each.
    pub cannot: Vec<String>,
}

/// Result of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileRewindResult {
    pub restored: u64,
    pub kept: Vec<RewindFile>,
}

/// File changes of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskChangeCounts {
    pub task_id: TaskId,
    pub files: u64,
    pub added: u64,
    pub removed: u64,
}
