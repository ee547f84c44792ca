//! Draft of a planned call: its actions, its proposal and the work to be done.

use crate::protocol::{Action, Proposal, Target};
use std::path::PathBuf;

/// A planned call before any effect.
pub(super) struct CallDraft<Work> {
    /// Summary for the user, on one line.
    pub summary: String,
    pub actions: Vec<Action>,
    pub proposal: Option<Proposal>,
    pub effect: CallEffect,
    pub work: Work,
}

impl<Work> CallDraft<Work> {
    /// Drafts a call that reads one path.
    pub(super) fn reads(summary: String, target: Target, work: Work) -> Self {
        Self { summary, actions: vec![Action::Read { target }], proposal: None, effect: CallEffect::Reads, work }
    }

    /// Drafts a call that makes the proposed changes.
    pub(super) fn changes(actions: Vec<Action>, proposal: Proposal, work: Work) -> Self {
        Self { summary: proposal.summary.clone(), actions, proposal: Some(proposal), effect: CallEffect::Changes, work }
    }
}

impl<Work> CallDraft<Work> {
    /// Converts the work of a draft.
    pub(super) fn map<Other>(self, make: impl FnOnce(Work) -> Other) -> CallDraft<Other> {
        let Self { summary, actions, proposal, effect, work } = self;
        CallDraft { summary, actions, proposal, effect, work: make(work) }
    }
}

impl<Work> CallDraft<Option<Work>> {
    /// Drafts a call whose actions the policy will deny, without further checks.
    pub(super) fn for_denial(summary: String, actions: Vec<Action>) -> Self {
        Self { summary, actions, proposal: None, effect: CallEffect::Changes, work: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallEffect {
    Reads,
    /// The call only waits for an answer from the user.
    Asks,
    Changes,
    /// The call runs a command. `files`: the files that the command would run.
    Runs {
        timeout_seconds: u64,
        files: Vec<PathBuf>,
    },
}
