//! Outcome of a commit: the number of completed steps, and the paths that are not in the planned state.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Result of a commit that was started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct CommitOutcome {
    /// Number of completed steps.
    pub done: usize,
    /// Paths that are not in the planned state, because they changed during the commit or could not be written.
    pub left: Vec<LeftoverPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftoverPath {
    #[serde(with = "super::name")]
    pub path: PathBuf,
    pub why: String,
    /// Whether the step failed with a system error. If so, the next recovery retries it.
    #[serde(default)]
    pub later: bool,
    /// Whether the disk was full.
    #[serde(default)]
    pub is_full: bool,
}

/// Returns whether an error means that the disk is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl CommitOutcome {
    pub(crate) fn is_whole(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns whether there is no step left to retry.
    pub(crate) fn is_over(&self) -> bool {
        self.left.iter().all(|left| !left.later)
    }
}
