//! Recovery data outside the journal, about calls that were running when the previous process ended.

use crate::protocol::CallId;
use std::collections::HashMap;
use std::path::PathBuf;

/// State on disk of a call that changes files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecoveredState {
    /// Every path is in its state after the call.
    Done {
        /// Temporary files that could not be removed.
        left: Vec<PathBuf>,
    },
    /// Every path is in its state before the call.
    NotDone { left: Vec<PathBuf> },
    /// The call was interrupted, and completes if it is run again.
    Resumable,
    /// Any other state; `words` describes each path.
    Partly { words: String },
}

/// Last saved output of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedTail {
    pub text: String,
    /// Run time in milliseconds up to that output.
    pub ran_ms: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecoveredCalls {
    pub found: HashMap<CallId, RecoveredState>,
    pub tails: HashMap<CallId, SavedTail>,
}
