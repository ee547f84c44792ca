//! Determines whether a command is approved before it runs or after it has run in a copy of the workspace.

use super::layer_stack::EnforcerLayers;
use crate::policy::bundle::{Approve, Network, SandboxSetting, Terms};
use crate::policy::git::{GitWrites, git_writes};
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

    /// Returns when a command is approved if it needs approval or if only the mode allows it. Returns `None` in all
    /// other cases, and for calls that are not commands.
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
        if !(is_asked || is_by_mode) || actions.is_empty() || !actions.iter().all(is_line) {
            return None;
        }
        let terms = stack.terms();
        let is_held = context.sandbox == Sandbox::Present
            && context.mode != Mode::Plan
            && terms.sandbox.unwrap_or_default() == SandboxSetting::WorkspaceWrite
            && terms.network.unwrap_or_default() == Network::Deny;
        let is_mild = finding.risk < Risk::High && !finding.critical;
        // A user rule for copies takes precedence over the user's general setting, but not over settings in other
        // layers.
        let by_rule = finding.decided.in_a_copy && !stack.requires_command();
        let chosen = by_rule || self.effective(terms).min(finding.decided.approve) == Approve::Effects;
        let may_run = |action: &Action| match action {
            Action::Exec { command, cwd } => {
                git_writes(command) == GitWrites::Nothing
                    && attendance(command).is_none()
                    && !mentions_hidden_path(command, &cwd.real, context)
            }
            _ => false,
        };
        let by_effects = chosen && is_held && is_mild && actions.iter().all(may_run);
        Some(if by_effects { ApproveWhen::Effects } else { ApproveWhen::Before })
    }
}
