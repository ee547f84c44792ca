//! Ordering of tool calls, which decides whether a call must wait for an earlier one.

use super::{Footprint, Plan, touched_path};
use crate::protocol::{Action, Place};
use std::path::PathBuf;

/// Paths that a call reads, writes or runs, compared with those of earlier calls. Paths named in the arguments are
/// included even if planning failed or found nothing to change, because an earlier call may change that result.
#[derive(Debug, Default)]
pub(crate) struct CallOrder {
    touches: Vec<PathBuf>,
    /// Files whose content the call would execute.
    runs: Vec<PathBuf>,
    /// Whether the call changes the paths in `touches`.
    changes: bool,
    /// Whether the call writes or deletes files named in its arguments.
    writes: bool,
    /// Whether the call may change any file, because it runs a command.
    command: bool,
    /// Whether planning failed given the current files, or the call would read a missing file.
    failed: bool,
    /// Kind of the call, set if it runs in a layer or the user approves effects rather than calls. Such a call starts
    /// only after all earlier calls that write.
    turn: Option<TurnKind>,
}

/// Kind of a call whose position relative to other calls is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Reads,
    Writes,
}

impl CallOrder {
    /// Returns the order of a planned call. `scope` contains the actions derived from the arguments alone.
    pub(crate) fn for_plan(plan: &Plan, scope: &[Action]) -> Self {
        let mut order = Self::for_actions(plan.actions.iter().chain(scope), plan.changes);
        order.runs.clone_from(&plan.runs);
        order.failed = plan.actions.iter().chain(scope).any(reads_nothing);
        order
    }

    /// Sets the kind of a call whose position relative to other calls is fixed.
    pub(crate) fn with_turn(self, turn: Option<TurnKind>) -> Self {
        Self { turn, ..self }
    }

    /// Returns the order of a call that has not been planned yet.
    pub(crate) fn for_scope(scope: &[Action]) -> Self {
        Self::for_actions(scope.iter(), scope.iter().any(|action| writes(action) || action.is_command()))
    }

    /// Returns the order of a call that could not be planned.
    pub(crate) fn for_failed(scope: &[Action]) -> Self {
        Self { failed: !scope.is_empty(), ..Self::for_scope(scope) }
    }

    pub(crate) fn for_actions<'a>(actions: impl Iterator<Item = &'a Action> + Clone, changes: bool) -> Self {
        let writes = actions.clone().any(writes);
        let command = changes && actions.clone().any(Action::is_command);
        let mut touches: Vec<PathBuf> = actions.filter_map(touched_path).collect();
        touches.sort_unstable();
        touches.dedup();
        Self { touches, runs: Vec::new(), changes: changes || writes, writes, command, failed: false, turn: None }
    }

    /// Returns whether this call must wait for an earlier one. Calls on the same path run in order if either of them
    /// changes it. Because the paths that a command uses are unknown, commands and file-writing calls wait for each
    /// other. A call that cannot be planned or that names a missing file waits for every command, which may create
    /// the file.
    pub(crate) fn waits_for(&self, earlier: &Self) -> bool {
        self.footprint().collides(&earlier.footprint())
            || self.command && earlier.writes
            || earlier.command && (self.writes || self.failed)
            || self.turn.is_some() && earlier.is_writing()
    }

    /// Returns whether later calls may depend on this call's effects.
    fn is_writing(&self) -> bool {
        (self.writes || self.command) && self.turn != Some(TurnKind::Reads)
    }

    fn footprint(&self) -> Footprint<'_> {
        Footprint { changes: self.changes, touches: &self.touches, runs: &self.runs }
    }
}

/// Returns whether an action writes or deletes a file.
pub(crate) fn writes(action: &Action) -> bool {
    matches!(action, Action::Write { .. } | Action::Delete { .. })
}

/// Returns whether an action would read a file that does not exist.
fn reads_nothing(action: &Action) -> bool {
    matches!(action, Action::Read { target } if target.place == Place::Missing)
}
