//! File rewinds, which restore files to their state before a step or an earlier rewind.

use crate::protocol::{FileDiffs, RewindFile, TaskId};
use std::path::PathBuf;

/// Earliest change to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindStart {
    /// The given session step and all later steps.
    Step(u64),
    /// The rewind with the given number and all later rewinds.
    Rewind(u32),
}

/// Request to restore files to an earlier state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRewind {
    /// Number under which the current state is stored, which allows the rewind itself to be undone.
    pub number: u32,
    pub since: RewindStart,
    /// Last session step before the rewind.
    pub step: u64,
    /// Paths to restore even if something other than aye changed them.
    pub overwrite: Vec<PathBuf>,
}

impl FileRewind {
    /// Returns the task ID under which the rewind's state is stored.
    pub(crate) fn task_id(number: u32) -> TaskId {
        TaskId::new(format!("{REWIND}{number}"))
    }

    /// Returns the rewind number encoded in a task ID, or `None` if the ID does not belong to a rewind.
    pub(crate) fn rewind_number(task: &TaskId) -> Option<u32> {
        task.as_str().strip_prefix(REWIND)?.parse().ok()
    }
}

const REWIND: &str = "rewind_";

/// Effects that a rewind would have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileRewindPlan {
    pub files: Vec<RewindFile>,
    pub diff: FileDiffs,
    /// Sentences that each describe an effect that cannot be undone.
    pub cannot: Vec<String>,
}

/// Result of a completed rewind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileRewindResult {
    pub restored: u64,
    pub kept: Vec<RewindFile>,
}

/// Number of files and lines that a task changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskChangeCounts {
    pub task_id: TaskId,
    pub files: u64,
    pub added: u64,
    pub removed: u64,
}
