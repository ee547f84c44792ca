//! Verdicts with their content; the only place that makes a `Permit`.

use crate::protocol::{APPROVED_BY_YOU, Action, ApproveWhen, CommandPart, Risk};

/// What let effects be kept that need no approval, in the log of decisions.
const KEPT_UNASKED: &str = "effects";

/// Leave to do exactly these actions, once. Not `Clone`, and only this module makes one.
#[derive(Debug)]
pub struct Permit {
    actions: Vec<Action>,
    rule: String,
    reads_only: bool,
    unasked: Option<Unasked>,
}

/// What an allow that nobody was asked about relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unasked {
    /// The tables know every part of the line as a reader, so it runs where it cannot write.
    pub as_reading: bool,
    /// A rule knows the programs of the line by their names, so no program of the workspace may serve them.
    pub by_name: bool,
}

impl Permit {
    pub(super) fn new(actions: Vec<Action>, rule: String) -> Self {
        Self { actions, rule, reads_only: false, unasked: None }
    }

    /// Given in plan mode: what runs by it changes nothing.
    pub(super) fn reading(self, reads_only: bool) -> Self {
        Self { reads_only, ..self }
    }

    /// Given by the policy alone.
    pub(super) fn unasked(self, unasked: Unasked) -> Self {
        Self { reads_only: self.reads_only || unasked.as_reading, unasked: Some(unasked), ..self }
    }

    /// Whether what runs by it may change nothing.
    pub fn reads_only(&self) -> bool {
        self.reads_only
    }

    /// What it relies on where the policy alone gave it; `None` where the user approved it.
    pub fn relies_on(&self) -> Option<Unasked> {
        self.unasked
    }

    /// For tests of what takes a permit.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self::new(actions, "test".to_owned())
    }

    /// Whether this permit was given for these very actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    /// What may happen may be looked at first.
    pub fn preview(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), is_unasked: false }
    }

    /// Which rule, or whose yes, let it happen.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// Leave to run these commands in a view of their own, once, with no network and with nothing of it kept. Not `Clone`.
#[derive(Debug)]
pub struct PreviewPermit {
    actions: Vec<Action>,
    is_unasked: bool,
}

impl PreviewPermit {
    /// Whether this permit was given for these very actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    /// Whether nobody was asked about it: then the command sees less than others.
    pub fn is_unasked(&self) -> bool {
        self.is_unasked
    }

    /// For tests of what takes a permit.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self { actions, is_unasked: false }
    }

    /// The same of a command that runs before anybody is asked.
    #[cfg(test)]
    pub(crate) fn unasked_for_test(actions: Vec<Action>) -> Self {
        Self { actions, is_unasked: true }
    }
}

#[derive(Debug)]
pub enum Verdict {
    Allow(Permit),
    Ask(Question),
    Deny(Denial),
}

/// What the person has to decide; becomes a permit by their yes.
#[derive(Debug)]
pub struct Question {
    pub(super) actions: Vec<Action>,
    /// From the bundle's approval rule: `File change`.
    pub title: String,
    /// From the same place, for the person who decides.
    pub description: Option<String>,
    /// `built-in`, `user:31`.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    pub critical: bool,
    pub parts: Vec<CommandPart>,
    /// No rule is about it: its capability asks about everything.
    pub is_uncovered: bool,
    pub(super) reads_only: bool,
    pub(super) approve: ApproveWhen,
}

impl Question {
    /// The person wants to see what would happen. A question is never about what is denied, so there is always leave to look.
    pub fn preview(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), is_unasked: false }
    }

    /// Leave to run it in a layer before anybody is asked; `None` where the command itself has to be approved.
    pub fn layer(&self) -> Option<PreviewPermit> {
        let permit = || PreviewPermit { actions: self.actions.clone(), is_unasked: true };
        (self.approve == ApproveWhen::Effects).then(permit)
    }

    /// Leave to keep effects that need no approval.
    ///
    /// # Errors
    /// The question, where the command itself has to be approved.
    pub fn keep(self) -> Result<Permit, Self> {
        match self.approve {
            ApproveWhen::Effects => {
                Ok(Permit::new(self.actions, KEPT_UNASKED.to_owned()).reading(self.reads_only).unasked(Unasked::default()))
            }
            ApproveWhen::Before => Err(self),
        }
    }

    /// The person said yes to this question.
    pub fn approve(self) -> Permit {
        Permit::new(self.actions, APPROVED_BY_YOU.to_owned()).reading(self.reads_only)
    }
}

/// What could be remembered of one thing that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Writes to this file.
    Write { path: std::path::PathBuf },
    /// Simple commands whose words are exactly these, run in this directory.
    Command { words: Vec<String>, directory: std::path::PathBuf },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub rule: String,
    pub reason: String,
    pub parts: Vec<CommandPart>,
}
