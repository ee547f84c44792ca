//! Permits and other verdicts with their content. Only this module creates a `Permit`.

use crate::protocol::{
    APPLIED_UNASKED, APPROVED_BY_SERVICE, APPROVED_BY_YOU, APPROVED_UNSANDBOXED, Action, ApproveWhen, CommandPart, Risk,
    SandboxAccess,
};

/// Permission to perform exactly these actions once. It is not `Clone`, and only this module creates one.
#[derive(Debug)]
pub struct Permit {
    actions: Vec<Action>,
    rule: String,
    reads_only: bool,
    unasked: Option<UnaskedConditions>,
    unsandboxed: bool,
    /// Whether the command runs in a layer first, because only the mode allows it.
    in_layer: bool,
}

/// Conditions of an allow verdict that needed no approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnaskedConditions {
    /// Whether the tables list every part of the line as read-only. If so, it runs where it cannot write.
    pub as_reading: bool,
    /// Whether a rule identifies the programs of the line by name, so that no program of the workspace may be used
    /// instead.
    pub by_name: bool,
}

impl Permit {
    pub(super) fn new(actions: Vec<Action>, rule: String) -> Self {
        Self { actions, rule, reads_only: false, unasked: None, unsandboxed: false, in_layer: false }
    }

    /// Restricts the permit to read-only actions, in plan mode.
    pub(super) fn restrict_to_reading(self, reads_only: bool) -> Self {
        Self { reads_only, ..self }
    }

    /// Marks the permit as given by the policy alone, without an approval.
    pub(super) fn mark_unasked(self, unasked: UnaskedConditions) -> Self {
        Self { reads_only: self.reads_only || unasked.as_reading, unasked: Some(unasked), ..self }
    }

    /// Marks the permit as given by the mode. The command runs in a layer, and its effects are decided separately.
    pub(super) fn first_in_layer(self) -> Self {
        Self { in_layer: true, ..self }
    }

    /// Returns a permit to run the command in a layer first; `None` if a rule or the user allows it.
    pub fn layer(&self) -> Option<PreviewPermit> {
        let run = PreviewRun::BeforeApproval;
        self.in_layer.then(|| PreviewPermit { actions: self.actions.clone(), run, hosts: Vec::new() })
    }

    /// Returns whether actions under this permit must be read-only.
    pub fn reads_only(&self) -> bool {
        self.reads_only
    }

    /// Returns whether the user allowed the command to run outside the sandbox.
    pub fn is_unsandboxed(&self) -> bool {
        self.unsandboxed
    }

    /// Returns the conditions if the policy alone gave the permit; `None` if the user approved it.
    pub fn unasked_conditions(&self) -> Option<UnaskedConditions> {
        self.unasked
    }

    /// Creates a permit for tests.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self::new(actions, "test".to_owned())
    }

    /// Returns whether the permit was given for exactly these actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    /// Returns a permit to preview the actions.
    pub fn preview(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), run: PreviewRun::Requested, hosts: Vec::new() }
    }

    /// Returns a permit to run the command in a new layer with the access that the user approved for one run.
    pub fn with_access(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), run: PreviewRun::WithAccess, hosts: Vec::new() }
    }

    /// Returns the rule or the approval that allowed the actions.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// Kind of a run in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewRun {
    /// A preview that the user or the policy requested.
    Requested,
    /// A run before any approval, in which fewer files are visible than usual.
    BeforeApproval,
    /// Another run with previously blocked access that the user approved for it. All other hidden paths stay hidden.
    WithAccess,
}

/// Permission to run these commands once in a preview, without applying anything. It is not `Clone`.
#[derive(Debug)]
pub struct PreviewPermit {
    actions: Vec<Action>,
    run: PreviewRun,
    /// Hosts to which rules let the command connect.
    hosts: Vec<SandboxAccess>,
}

impl PreviewPermit {
    /// Returns whether the permit was given for exactly these actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    pub fn run(&self) -> PreviewRun {
        self.run
    }

    /// Returns the hosts to which rules let the command connect without a prompt.
    pub fn hosts(&self) -> &[SandboxAccess] {
        &self.hosts
    }

    /// Removes the hosts to which rules let the command connect.
    #[must_use]
    pub fn without_hosts(self) -> Self {
        Self { hosts: Vec::new(), ..self }
    }

    /// Creates a permit for tests.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self { actions, run: PreviewRun::Requested, hosts: Vec::new() }
    }

    /// Creates a test permit for a command that runs before its approval.
    #[cfg(test)]
    pub(crate) fn unasked_for_test(actions: Vec<Action>) -> Self {
        Self { actions, run: PreviewRun::BeforeApproval, hosts: Vec::new() }
    }
}

#[derive(Debug)]
pub enum Verdict {
    Allow(Permit),
    Ask(Question),
    Deny(Denial),
}

/// An approval that requires the user's decision. Approving it creates a permit.
#[derive(Debug)]
pub struct Question {
    pub(super) actions: Vec<Action>,
    /// Title from the approval rule of the bundle, such as `File change`.
    pub title: String,
    /// Description from the same rule, for the user.
    pub description: Option<String>,
    /// Deciding rule: `built-in`, `user:31`.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    pub critical: bool,
    pub parts: Vec<CommandPart>,
    /// Whether no rule matched, so that the capability requires approval by default.
    pub is_uncovered: bool,
    pub(super) reads_only: bool,
    pub(super) approve: ApproveWhen,
    /// Hosts to which rules let the command connect in a layer.
    pub(super) hosts: Vec<SandboxAccess>,
    /// Whether the command would run outside the sandbox.
    pub(super) unsandboxed: bool,
}

impl Question {
    /// Returns a permit to preview the actions. Denied actions never reach an approval, so a preview is always allowed.
    pub fn preview(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), run: PreviewRun::Requested, hosts: Vec::new() }
    }

    /// Returns a permit to run the command in a layer before its approval; `None` if the command itself must be
    /// approved.
    pub fn layer(&self) -> Option<PreviewPermit> {
        let permit =
            || PreviewPermit { actions: self.actions.clone(), run: PreviewRun::BeforeApproval, hosts: self.hosts.clone() };
        (self.approve == ApproveWhen::Effects).then(permit)
    }

    /// Returns the permit to apply effects that need no approval.
    ///
    /// # Errors
    /// Returns the unchanged question if the command must be approved.
    pub fn keep(self) -> Result<Permit, Self> {
        match self.approve {
            ApproveWhen::Effects => Ok(Permit::new(self.actions, APPLIED_UNASKED.to_owned())
                .restrict_to_reading(self.reads_only)
                .mark_unasked(UnaskedConditions::default())),
            ApproveWhen::Before => Err(self),
        }
    }

    /// Returns the permit of a question that the approval service approved. The permit never covers a run outside the
    /// sandbox.
    pub fn approve_by_service(self) -> Permit {
        Permit::new(self.actions, APPROVED_BY_SERVICE.to_owned()).restrict_to_reading(self.reads_only)
    }

    /// Returns the permit of a question that the user approved.
    pub fn approve(self) -> Permit {
        let rule = if self.unsandboxed { APPROVED_UNSANDBOXED } else { APPROVED_BY_YOU };
        Permit {
            unsandboxed: self.unsandboxed,
            ..Permit::new(self.actions, rule.to_owned()).restrict_to_reading(self.reads_only)
        }
    }
}

/// Permission for one kind of action, until aye exits or until a task ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Permission to write to this file.
    Write { path: std::path::PathBuf },
    /// Permission to run a simple command with exactly these words in this directory.
    Command { words: Vec<String>, directory: std::path::PathBuf },
    /// Permission to read from this host and port, with or without encryption as given. Only a plan grants it.
    Host { host: String, port: u16, encrypted: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub rule: String,
    pub reason: String,
    pub parts: Vec<CommandPart>,
}
