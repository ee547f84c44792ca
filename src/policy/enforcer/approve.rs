//! Timing of an approval: before a command runs, or after it ran in a layer.

use super::Enforcer;
use crate::policy::attendance::attendance;
use crate::policy::bundle::{Approve, Network, SandboxSetting};
use crate::policy::git::{GitWrites, git_writes};
use crate::policy::hidden_places::names_hidden_place;
use crate::policy::layer_verdict::Finding;
use crate::policy::paths::Sandbox;
use crate::protocol::{Action, ApproveWhen, Mode, Risk, VerdictKind};

/// Settings of `approve` outside the policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice {
    /// Setting in `config.toml`.
    pub config: Option<Approve>,
    /// Setting for the session.
    pub session: Option<Approve>,
}

impl Enforcer {
    /// Returns the enforcer with the setting of `config.toml`.
    #[must_use]
    pub fn approving(mut self, config: Option<Approve>) -> Self {
        self.approve.config = config;
        self
    }

    /// Sets what is approved of commands in this session. A policy with `approve = "command"` stays stricter.
    #[cfg(test)]
    pub fn set_approve(&mut self, approve: Approve) {
        self.approve.session = Some(approve);
    }

    /// Returns what the user approves if no rule matches a command.
    pub fn approve(&self) -> Approve {
        match self.terms.approve {
            Some(Approve::Command) => Approve::Command,
            stated => self.approve.session.or(stated).or(self.approve.config).unwrap_or_default(),
        }
    }

    pub(super) fn approve_when(&self, finding: &Finding, actions: &[Action]) -> Option<ApproveWhen> {
        let is_line = |action: &Action| matches!(action, Action::Exec { .. });
        if finding.decided.verdict != VerdictKind::Ask || actions.is_empty() || !actions.iter().all(is_line) {
            return None;
        }
        let (context, terms) = (&self.context, &self.terms);
        let is_held = context.sandbox == Sandbox::Present
            && context.mode != Mode::Plan
            && self.sandbox() == SandboxSetting::WorkspaceWrite
            && terms.network.unwrap_or_default() == Network::Deny;
        let is_mild = finding.risk < Risk::High && !finding.critical;
        let chosen = self.approve().min(finding.decided.approve) == Approve::Effects;
        let may_run = |action: &Action| match action {
            Action::Exec { command, cwd } => {
                git_writes(command) == GitWrites::Nothing
                    && attendance(command).is_none()
                    && !names_hidden_place(command, &cwd.real, context)
            }
            _ => false,
        };
        let by_effects = chosen && is_held && is_mild && actions.iter().all(may_run);
        Some(if by_effects { ApproveWhen::Effects } else { ApproveWhen::Before })
    }
}
