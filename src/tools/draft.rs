//! Drafts of planned calls: a call's actions, its proposal, and the work to be done.

use crate::protocol::{Action, Proposal, Target};
use std::path::PathBuf;

/// A call that has been planned but has not had any effect yet.
pub(super) struct CallDraft<Work> {
    /// One-line summary for the user.
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
    /// Converts the work in a draft.
    pub(super) fn map<Other>(self, make: impl FnOnce(Work) -> Other) -> CallDraft<Other> {
        let Self { summary, actions, proposal, effect, work } = self;
        CallDraft { summary, actions, proposal, effect, work: make(work) }
    }
}

impl<Work> CallDraft<Option<Work>> {
    /// Drafts, without further checks, a call whose actions the policy will deny.
    pub(super) fn for_denial(summary: String, actions: Vec<Action>) -> Self {
        Self { summary, actions, proposal: None, effect: CallEffect::Changes, work: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallEffect {
    Reads,
    /// The call does nothing but wait for an answer from the user.
    Asks,
    Changes,
    /// The call runs a command. `files` lists the files that the command would run.
    Runs {
        timeout_seconds: u64,
        files: Vec<PathBuf>,
    },
}
