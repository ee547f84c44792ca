//! Footprint of a call: what it reads and writes, and so which calls must not run at the same time.

use super::Plan;
use crate::protocol::Action;
use std::path::PathBuf;

/// What a call touches and whether it changes that, as far as its plan knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach<'a> {
    pub changes: bool,
    pub touches: &'a [PathBuf],
    /// Files whose content it would run.
    pub runs: &'a [PathBuf],
}

impl Reach<'_> {
    /// Two calls on the same path run in order if one of them changes it, and what is to be run is not changed meanwhile.
    pub fn collides(&self, other: &Reach<'_>) -> bool {
        let meet = |these: &[PathBuf], those: &[PathBuf]| {
            these.iter().any(|path| those.iter().any(|also| path.starts_with(also) || also.starts_with(path)))
        };
        (self.changes || other.changes) && meet(self.touches, other.touches)
            || self.changes && meet(self.touches, other.runs)
            || other.changes && meet(other.touches, self.runs)
    }
}

/// The place that an action is about.
pub fn touched(action: &Action) -> Option<PathBuf> {
    match action {
        Action::Read { target }
        | Action::Write { target }
        | Action::Delete { target }
        | Action::Open { target }
        | Action::Upload { target } => Some(target.real.clone()),
        // What a command touches is not known, whatever it names.
        Action::Exec { .. } | Action::Named { .. } | Action::Custom { .. } | Action::Fetch { .. } | Action::Invoke { .. } => None,
    }
}

impl Plan {
    /// All places that it is about.
    pub fn touches(&self) -> Vec<PathBuf> {
        self.actions.iter().filter_map(touched).collect()
    }
}
