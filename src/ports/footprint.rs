//! Footprint of a call: the paths that it reads and writes. It determines which calls may run at the same time.

use super::Plan;
use crate::protocol::Action;
use std::path::PathBuf;

/// Paths that a call touches according to its plan, and whether it changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint<'a> {
    pub changes: bool,
    pub touches: &'a [PathBuf],
    /// Files whose content the call would run.
    pub runs: &'a [PathBuf],
}

impl Footprint<'_> {
    /// Returns whether two calls must run in order: both touch the same path and at least one changes it, or one call
    /// changes a file that the other call runs.
    pub(crate) fn collides(&self, other: &Footprint<'_>) -> bool {
        let meet = |these: &[PathBuf], those: &[PathBuf]| {
            these.iter().any(|path| those.iter().any(|also| path.starts_with(also) || also.starts_with(path)))
        };
        (self.changes || other.changes) && meet(self.touches, other.touches)
            || self.changes && meet(self.touches, other.runs)
            || other.changes && meet(other.touches, self.runs)
    }
}

/// Returns the path that an action concerns.
pub(crate) fn touched_path(action: &Action) -> Option<PathBuf> {
    match action {
        Action::Read { target }
        | Action::Write { target }
        | Action::Delete { target }
        | Action::Open { target }
        | Action::Upload { target } => Some(target.real.clone()),
        // A command may touch paths that it does not name.
        Action::Exec { .. }
        | Action::Named { .. }
        | Action::Custom { .. }
        | Action::Fetch { .. }
        | Action::Search { .. }
        | Action::Invoke { .. } => None,
    }
}

impl Plan {
    /// Returns all paths that the plan touches.
    pub(crate) fn touches(&self) -> Vec<PathBuf> {
        self.actions.iter().filter_map(touched_path).collect()
    }
}
