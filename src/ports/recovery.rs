//! Recovery information beside the journal, about calls that ran when the previous process ended.

use crate::protocol::CallId;
use std::collections::HashMap;
use std::path::PathBuf;

/// What the disk says of a call that was to change files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Every place is as the call makes it.
    Done {
        /// What it had not cleared away, beside them.
        left: Vec<PathBuf>,
    },
    /// Every place is as it was.
    NotDone { left: Vec<PathBuf> },
    /// Neither; in words which place is what.
    Partly { words: String },
}

/// The last that a command printed, as it was kept while it ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    pub text: String,
    /// How long it had run by then.
    pub ran_ms: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    pub found: HashMap<CallId, Found>,
    pub tails: HashMap<CallId, Tail>,
}
