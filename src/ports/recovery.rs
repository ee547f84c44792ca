//! Recovery information outside the journal, about calls that were running when the previous process ended.

use crate::protocol::CallId;
use std::collections::HashMap;
use std::path::PathBuf;

/// State on disk of a call that changes files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecoveredState {
    /// Every path has the state in which the call leaves it.
    Done {
        /// Temporary files that were not removed.
        left: Vec<PathBuf>,
    },
    /// Every path has its previous state.
    NotDone { left: Vec<PathBuf> },
    /// The call continues from its interrupted state if it is run again.
    Resumable,
    /// Neither; the text describes the state of each path.
    Partly { words: String },
}

/// Last saved output of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedTail {
    pub text: String,
    /// Run time in milliseconds when the output was saved.
    pub ran_ms: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecoveredCalls {
    pub found: HashMap<CallId, RecoveredState>,
    pub tails: HashMap<CallId, SavedTail>,
}
