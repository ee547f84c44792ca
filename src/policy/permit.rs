//! Permits, and the data of the other verdicts. Only this module can create a `Permit`.

use crate::protocol::{
    APPLIED_UNASKED, APPROVED_BY_SERVICE, APPROVED_BY_YOU, APPROVED_UNSANDBOXED, Action, ApproveWhen, CommandPart, Risk,
    SandboxAccess, ToolError,
};

/// Permission to perform exactly these actions once. It is not `Clone`, and only this module can create it.
#[derive(Debug)]
pub struct Permit {
    actions: Vec<Action>,
    rule: String,
    reads_only: bool,
    unasked: Option<UnaskedConditions>,
    unsandboxed: bool,
    /// Whether the command first runs in a copy of the workspace, because only the mode or the approved plan allows it.
    in_layer: bool,
    /// Whether the approved plan allows the command.
    by_plan: bool,
}

/// Conditions under which an action was allowed without approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnaskedConditions {
    /// Whether the tables classify every part of the line as read-only. If set, the line runs in a sandbox in which it
    /// cannot write.
    pub as_reading: bool,
    /// Whether a rule identifies the line's programs by name. If set, no program in the workspace may run in their
    /// place.
    pub by_name: bool,
}

impl Permit {
    pub(super) fn new(actions: Vec<Action>, rule: String) -> Self {
        Self { actions, rule, reads_only: false, unasked: None, unsandboxed: false, in_layer: false, by_plan: false }
    }

    /// Restricts the permit to read-only actions if `reads_only` is set, as in plan mode.
    pub(super) fn restrict_to_reading(self, reads_only: bool) -> Self {
        Self { reads_only, ..self }
    }

    /// Marks the permit as granted by the policy alone, without the user's approval.
    pub(super) fn mark_unasked(self, unasked: UnaskedConditions) -> Self {
        Self { reads_only: self.reads_only || unasked.as_reading, unasked: Some(unasked), ..self }
    }

    /// Marks the permit as granted by the mode or, if `by_plan` is set, by the approved plan. The command runs in a copy
    /// of the workspace, and its effects are approved or rejected separately.
    pub(super) fn first_in_layer(self, by_plan: bool) -> Self {
        Self { in_layer: true, by_plan, ..self }
    }

    pub(super) fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns whether the approved plan allows the command, so that it must run in a copy of the workspace.
    pub fn is_by_plan(&self) -> bool {
        self.by_plan
    }

    /// Returns a permit to run the command in a copy of the workspace first, or `None` if a rule or the user allowed
    /// it.
    pub fn layer(&self) -> Option<PreviewPermit> {
        let run = PreviewRun::BeforeApproval;
        self.in_layer.then(|| PreviewPermit { actions: self.actions.clone(), run, hosts: Vec::new() })
    }

    /// Returns whether only read-only actions are permitted.
    pub fn reads_only(&self) -> bool {
        self.reads_only
    }

    /// Returns whether the user approved running the command outside the sandbox.
    pub fn is_unsandboxed(&self) -> bool {
        self.unsandboxed
    }

    /// Returns the conditions under which the policy alone granted the permit, or `None` if the user approved it.
    pub fn unasked_conditions(&self) -> Option<UnaskedConditions> {
        self.unasked
    }

    /// Creates a permit for tests.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self::new(actions, "test".to_owned())
    }

    /// Returns whether the permit was granted for exactly these actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    /// Returns a permit to preview the actions.
    pub fn preview(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), run: PreviewRun::Requested, hosts: Vec::new() }
    }

    /// Returns a permit to run the command in a new copy of the workspace, with the access that the user approved for
    /// this run.
    pub fn with_access(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), run: PreviewRun::WithAccess, hosts: Vec::new() }
    }

    /// Returns the name of the rule or the kind of approval that allowed the actions.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// Reason why a command runs in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewRun {
    /// Preview requested by the user or the policy.
    Requested,
    /// Run before any approval, in which fewer files are visible than usual.
    BeforeApproval,
    /// Second run, with access that was blocked in the first run and that the user then approved. All other hidden
    /// paths remain hidden.
    WithAccess,
}

/// Permission to run these commands once in a copy of the workspace, without applying their effects. It is not `Clone`.
#[derive(Debug)]
pub struct PreviewPermit {
    actions: Vec<Action>,
    run: PreviewRun,
    /// Hosts that rules permit the command to connect to.
    hosts: Vec<SandboxAccess>,
}

impl PreviewPermit {
    /// Returns whether the permit was granted for exactly these actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    pub fn run(&self) -> PreviewRun {
        self.run
    }

    /// Returns the hosts that rules permit the command to connect to without a prompt.
    pub fn hosts(&self) -> &[SandboxAccess] {
        &self.hosts
    }

    /// Removes the hosts that rules permit the command to connect to.
    #[must_use]
    pub fn without_hosts(self) -> Self {
        Self { hosts: Vec::new(), ..self }
    }

    /// Creates a permit for tests.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self { actions, run: PreviewRun::Requested, hosts: Vec::new() }
    }

    /// Creates a permit for a command that runs before its approval, for tests.
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

/// A request for approval. Approving it creates a permit.
#[derive(Debug)]
pub struct Question {
    pub(super) actions: Vec<Action>,
    /// Title from the bundle's approval rule, such as `File change`.
    pub title: String,
    /// Description from the same approval rule, shown to the user.
    pub description: Option<String>,
    /// Name of the rule that requires the approval, such as `built-in` or `user:31`.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    pub critical: bool,
    pub parts: Vec<CommandPart>,
    /// Whether the capability requires approval only because no rule matched.
    pub is_uncovered: bool,
    pub(super) reads_only: bool,
    pub(super) approve: ApproveWhen,
    /// Hosts that rules permit the command to connect to when it runs in a copy of the workspace.
    pub(super) hosts: Vec<SandboxAccess>,
    /// Whether the command would run outside the sandbox.
    pub(super) unsandboxed: bool,
}

impl Question {
    /// Returns a permit to preview the actions. This never needs approval, because approval is not requested for denied
    /// actions.
    pub fn preview(&self) -> PreviewPermit {
        PreviewPermit { actions: self.actions.clone(), run: PreviewRun::Requested, hosts: Vec::new() }
    }

    /// Returns a permit to run the command in a copy of the workspace before it is approved, or `None` if the command
    /// itself must be approved.
    pub fn layer(&self) -> Option<PreviewPermit> {
        let permit =
            || PreviewPermit { actions: self.actions.clone(), run: PreviewRun::BeforeApproval, hosts: self.hosts.clone() };
        (self.approve == ApproveWhen::Effects).then(permit)
    }

    /// Returns a permit to apply the effects without approval.
    ///
    /// # Errors
    /// Returns the request unchanged if the command itself must be approved.
    pub fn keep(self) -> Result<Permit, Self> {
        match self.approve {
            ApproveWhen::Effects => Ok(Permit::new(self.actions, APPLIED_UNASKED.to_owned())
                .restrict_to_reading(self.reads_only)
                .mark_unasked(UnaskedConditions::default())),
            ApproveWhen::Before => Err(self),
        }
    }

    /// Returns the permit for a request that the approval service approved. It never allows running outside the
    /// sandbox.
    pub fn approve_by_service(self) -> Permit {
        Permit::new(self.actions, APPROVED_BY_SERVICE.to_owned()).restrict_to_reading(self.reads_only)
    }

    /// Returns the permit for a request that the user approved.
    pub fn approve(self) -> Permit {
        let rule = if self.unsandboxed { APPROVED_UNSANDBOXED } else { APPROVED_BY_YOU };
        Permit {
            unsandboxed: self.unsandboxed,
            ..Permit::new(self.actions, rule.to_owned()).restrict_to_reading(self.reads_only)
        }
    }
}

/// Permission for a type of action, valid until aye exits or until a task ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Permission to write to this file.
    Write { path: std::path::PathBuf },
    /// Permission to run a simple command with exactly these words in this directory.
    Command { words: Vec<String>, directory: std::path::PathBuf },
    /// Permission to read from this host and port, either encrypted or not. Only a plan can grant this.
    Host { host: String, port: u16, encrypted: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub rule: String,
    pub reason: String,
    pub parts: Vec<CommandPart>,
}

impl Denial {
    /// Returns the error for a denied call. `advice` tells the model what to do next.
    pub fn to_error(&self, advice: &str) -> ToolError {
        ToolError::from_rule(&self.reason, &self.rule, advice)
    }
}
