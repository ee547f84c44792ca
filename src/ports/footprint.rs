//! Call footprints: the paths that a call reads and writes, which determine the calls that may run at the same time.

use super::Plan;
use crate::protocol::Action;
use std::path::PathBuf;

/// Paths that a call touches according to its plan, and whether the call changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint<'a> {
    pub changes: bool,
    pub touches: &'a [PathBuf],
    /// Files whose content the call would execute.
    pub runs: &'a [PathBuf],
}

impl Footprint<'_> {
    /// Returns whether two calls must run in order: either both touch the same path and at least one of them changes
    /// it, or one of them changes a file that the other executes.
    pub(crate) fn collides(&self, other: &Footprint<'_>) -> bool {
        let meet = |these: &[PathBuf], those: &[PathBuf]| {
            these.iter().any(|path| those.iter().any(|also| path.starts_with(also) || also.starts_with(path)))
        };
        (self.changes || other.changes) && meet(self.touches, other.touches)
            || self.changes && meet(self.touches, other.runs)
            || other.changes && meet(other.touches, self.runs)
    }
}

/// Returns the path that an action operates on, or `None` if the action does not name a path.
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
    /// Returns every path that the plan touches.
    pub(crate) fn touches(&self) -> Vec<PathBuf> {
        self.actions.iter().filter_map(touched_path).collect()
    }
}
