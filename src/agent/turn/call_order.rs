//! The order of the calls of one response: which of them wait until an earlier one is done.

use super::{Call, CallState};
use crate::ports::{Plan, Reach, touched};
use crate::protocol::{Action, Place};
use std::path::PathBuf;

/// What a call reads, writes and runs, for the comparison with the calls before it. What its arguments name counts even where its
/// plan fails or finds nothing to change: an earlier call may change that.
#[derive(Debug, Default)]
pub(super) struct Order {
    touches: Vec<PathBuf>,
    /// Files whose content it would run.
    runs: Vec<PathBuf>,
    /// Whether it changes what it touches.
    changes: bool,
    /// It writes or deletes files that it names.
    writes: bool,
    /// It may change any file.
    command: bool,
    /// It could not be planned as the files are now, or would read a file that is missing.
    failed: bool,
    /// Where the effects of commands are approved, it starts when all before it that writes is done.
    turn: Option<Turn>,
}

/// What a call is to those after it that take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Reads,
    Writes,
}

impl Order {
    /// `scope`: the actions by the arguments alone.
    pub(super) fn of_plan(plan: &Plan, scope: &[Action]) -> Self {
        let mut order = Self::of_actions(plan.actions.iter().chain(scope), plan.changes);
        order.runs.clone_from(&plan.runs);
        order.failed = plan.actions.iter().chain(scope).any(reads_nothing);
        order
    }

    /// Where calls take turns.
    pub(super) fn in_turn(self, turn: Option<Turn>) -> Self {
        Self { turn, ..self }
    }

    /// Of a call that could not be planned.
    pub(super) fn of_failed(scope: &[Action]) -> Self {
        let may_change = scope.iter().any(|action| writes(action) || runs(action));
        Self { failed: !scope.is_empty(), ..Self::of_actions(scope.iter(), may_change) }
    }

    pub(super) fn of_actions<'a>(actions: impl Iterator<Item = &'a Action> + Clone, changes: bool) -> Self {
        let writes = actions.clone().any(writes);
        let command = changes && actions.clone().any(runs);
        let mut touches: Vec<PathBuf> = actions.filter_map(touched).collect();
        touches.sort_unstable();
        touches.dedup();
        Self { touches, runs: Vec::new(), changes: changes || writes, writes, command, failed: false, turn: None }
    }

    /// Calls on the same path run in call order if one of them changes it. What a command touches is not known, so it and the calls
    /// that write files wait for each other. A call that cannot be planned, or names a missing file, waits for every command: that may
    /// make what is missing.
    fn waits_for(&self, earlier: &Self) -> bool {
        self.reach().collides(&earlier.reach())
            || self.command && earlier.writes
            || earlier.command && (self.writes || self.failed)
            || self.turn.is_some() && earlier.is_writing()
    }

    /// Whether it may leave something to those after it.
    fn is_writing(&self) -> bool {
        (self.writes || self.command) && self.turn != Some(Turn::Reads)
    }

    fn reach(&self) -> Reach<'_> {
        Reach { changes: self.changes, touches: &self.touches, runs: &self.runs }
    }
}

/// Whether an action by the arguments of a call writes files.
pub(super) fn writes(action: &Action) -> bool {
    matches!(action, Action::Write { .. } | Action::Delete { .. })
}

/// Whether an action would read what is not there: running it now only says so.
fn reads_nothing(action: &Action) -> bool {
    matches!(action, Action::Read { target } if target.place == Place::Missing)
}

fn runs(action: &Action) -> bool {
    matches!(action, Action::Exec { .. } | Action::Named { .. } | Action::Custom { .. })
}

impl Call {
    /// Whether one of the calls before it has to be done first.
    pub(super) fn waits(&self, before: &[Call]) -> bool {
        before.iter().any(|earlier| !earlier.is_done() && self.order.waits_for(&earlier.order))
    }

    /// Waits for an earlier call; planned and judged again when that is done, because it may change what this one would do.
    pub(super) fn defer(&mut self) {
        self.state = CallState::Deferred;
    }
}
