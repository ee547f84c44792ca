//! Outcome of a commit: the completed steps, and the paths that were left as they were.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Result of a commit that was started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Number of completed steps.
    pub done: usize,
    /// Paths that are not as planned, because they changed during the commit or could not be written.
    pub left: Vec<LeftoverPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftoverPath {
    #[serde(with = "super::name")]
    pub path: PathBuf,
    pub why: String,
    /// Whether the system failed, so that the next recovery tries again.
    #[serde(default)]
    pub later: bool,
}

impl Outcome {
    pub(crate) fn is_whole(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns whether nothing is left to retry.
    pub(crate) fn is_over(&self) -> bool {
        self.left.iter().all(|left| !left.later)
    }
}
