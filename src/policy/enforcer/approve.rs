//! Determines whether a command is approved before it runs or after it has run in a copy of the workspace.

use super::layer_stack::EnforcerLayers;
use crate::policy::bundle::{Approve, Network, SandboxSetting, Terms};
use crate::policy::git::{GitWrites, git_writes, mixes_git_writes};
use crate::policy::hidden_places::mentions_hidden_path;
use crate::policy::interactive_programs::attendance;
use crate::policy::layer_verdict::ActionFinding;
use crate::policy::paths::{Context, Sandbox};
use crate::protocol::{Action, ApproveWhen, Mode, Risk, VerdictKind};

/// Values of `approve` that are set outside the policy.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ApproveSetting {
    /// Value set in `config.toml`.
    pub config: Option<Approve>,
    /// Value set for the current session.
    pub session: Option<Approve>,
}

impl ApproveSetting {
    /// Returns whether the user approves a command or its effects when no rule matches.
    pub(crate) fn effective(self, terms: &Terms) -> Approve {
        match terms.approve {
            Some(Approve::Command) => Approve::Command,
            stated => self.session.or(stated).or(self.config).unwrap_or_default(),
        }
    }

    /// Returns when a command is approved if it needs approval or if only the mode or the approved plan allows it.
    /// Returns `None` in all other cases, and for calls that are not commands.
    pub(crate) fn timing(
        self,
        finding: &ActionFinding,
        actions: &[Action],
        context: &Context,
        stack: &EnforcerLayers,
    ) -> Option<ApproveWhen> {
        let is_line = |action: &Action| matches!(action, Action::Exec { .. });
        let is_asked = finding.decided.verdict == VerdictKind::Ask;
        let is_by_mode = finding.decided.verdict == VerdictKind::Allow && finding.decided.by_mode;
        let is_by_plan = finding.decided.verdict == VerdictKind::Allow && finding.decided.by_plan;
        if !(is_asked || is_by_mode || is_by_plan) || actions.is_empty() || !actions.iter().all(is_line) {
            return None;
        }
        let may_run = |action: &Action| match action {
            Action::Exec { command, cwd } => {
                git_writes(command) == GitWrites::Nothing
                    && attendance(command).is_none()
                    && !mentions_hidden_path(command, &cwd.real, context)
            }
            _ => false,
        };
        let by_effects = self.uses_layers(finding, context, stack) && actions.iter().all(may_run);
        Some(if by_effects { ApproveWhen::Effects } else { ApproveWhen::Before })
    }

    /// Returns whether a command that only the mode allows needs approval, because git writes to its repository, so that
    /// the command cannot run in a copy, and other programs may write too.
    pub(crate) fn asks_about_git(
        self,
        finding: &ActionFinding,
        actions: &[Action],
        context: &Context,
        stack: &EnforcerLayers,
    ) -> bool {
        let mixes = |action: &Action| matches!(action, Action::Exec { command, .. } if mixes_git_writes(command));
        finding.decided.verdict == VerdictKind::Allow
            && finding.decided.by_mode
            && self.uses_layers(finding, context, stack)
            && actions.iter().any(mixes)
    }

    /// Returns whether a command that only the mode allows needs approval, because it names a path that is hidden from
    /// commands that run in a copy, so that it cannot run in one.
    pub(crate) fn asks_about_hidden_path(
        self,
        finding: &ActionFinding,
        actions: &[Action],
        context: &Context,
        stack: &EnforcerLayers,
    ) -> bool {
        let is_hidden = |action: &Action| match action {
            Action::Exec { command, cwd } => mentions_hidden_path(command, &cwd.real, context),
            _ => false,
        };
        finding.decided.verdict == VerdictKind::Allow
            && finding.decided.by_mode
            && self.uses_layers(finding, context, stack)
            && actions.iter().any(is_hidden)
    }

    /// Returns whether a command runs in a copy of the workspace first, unless it cannot run in one.
    fn uses_layers(self, finding: &ActionFinding, context: &Context, stack: &EnforcerLayers) -> bool {
        let terms = stack.terms();
        let is_held = context.sandbox == Sandbox::Present
            && context.mode != Mode::Plan
            && terms.sandbox.unwrap_or_default() == SandboxSetting::WorkspaceWrite
            && terms.network.unwrap_or_default() == Network::Deny;
        let is_mild = finding.risk < Risk::High && !finding.critical;
        // A user rule for copies takes precedence over the user's general setting, but not over settings in other
        // layers.
        let by_rule = finding.decided.in_a_copy && !stack.requires_command();
        // The user approved the command with its plan, but has not seen its effects.
        let is_by_plan = finding.decided.verdict == VerdictKind::Allow && finding.decided.by_plan;
        let chosen = is_by_plan || by_rule || self.effective(terms).min(finding.decided.approve) == Approve::Effects;
        chosen && is_held && is_mild
    }
}
