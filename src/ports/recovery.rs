//! Recovery data stored outside the journal, for calls that were running when the previous process ended.

use crate::protocol::CallId;
use std::collections::HashMap;
use std::path::PathBuf;

/// On-disk state found for a call that changes files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecoveredState {
    /// Every path is in the state expected after the call.
    Done {
        /// Temporary files that could not be removed.
        left: Vec<PathBuf>,
    },
    /// Every path is in the state it had before the call.
    NotDone { left: Vec<PathBuf> },
    /// The call was interrupted. Running it again will complete it.
    Resumable,
    /// Any other state. `words` describes the state of each path.
    Partly { words: String },
}

/// Last saved output of a running command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedTail {
    pub text: String,
    /// How long the command had been running when the output was saved, in milliseconds.
    pub ran_ms: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecoveredCalls {
    pub found: HashMap<CallId, RecoveredState>,
    pub tails: HashMap<CallId, SavedTail>,
}
