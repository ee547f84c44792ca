//! Changes of the policy and the mode.

use super::{CallState, InputTime, TurnMachine};
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Verdict};
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{Action, Decision, EventKind, Mode, SandboxTier, ToolDefinition};
use std::sync::Arc;

/// Sandbox of commands, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    pub tier: SandboxTier,
    /// Status row text: `sandbox on · net off`.
    pub words: String,
    /// Features missing on this system, and how to install them.
    pub missing: Option<String>,
}

impl From<SandboxStatus> for EventKind {
    fn from(SandboxStatus { tier, words, missing }: SandboxStatus) -> Self {
        Self::SandboxInForce { tier, words, missing }
    }
}

/// Policy that replaces the current one.
#[derive(Debug)]
pub struct PolicyChange {
    pub enforcer: Enforcer,
    /// Tools offered to the model under it.
    pub tools: Arc<[ToolDefinition]>,
    /// Names of these tools, and of those that the model can load.
    pub tool_names: Vec<String>,
    /// Description of the sandbox.
    pub sandbox: String,
    /// Description of the sandbox for the status row.
    pub sandbox_status: SandboxStatus,
    /// Name in the status row.
    pub name: String,
    /// Description of the change for the user; `None` if only the mode changed.
    pub message: Option<String>,
}

impl TurnMachine {
    /// Switches to another policy. Rules saved for this run stay, and running calls continue.
    pub(super) fn policy_changed(&mut self, change: PolicyChange, at: InputTime) {
        self.policy.replace(change.enforcer);
        self.options.tools = change.tools;
        let tools = change.tool_names;
        let before = std::mem::replace(&mut self.options.tool_names, tools.clone());
        self.count_what_is_fixed();
        self.options.sandbox = change.sandbox;
        self.note_policy_anew();
        if change.message.is_some() || tools != before {
            let layers = self.policy.layers();
            self.emit(EventKind::PolicyInForce { layers, name: change.name, tools, message: change.message });
        }
        self.judge_again(at);
    }

    pub(super) fn set_mode(&mut self, mode: Mode, at: InputTime) {
        if mode > self.options.laxest {
            let message = format!("cannot switch to mode `{}`: only the user may allow more", mode.as_str());
            return self.emit(EventKind::Notice { message });
        }
        self.policy.set_mode(mode);
        self.note_policy_anew();
        self.emit(EventKind::ModeChanged { mode });
        self.judge_again(at);
    }

    /// Records the policy in force, before anything is decided by it.
    pub(super) fn note_policy(&mut self) {
        if !std::mem::replace(&mut self.policy_noted, true) {
            self.note(Record::PolicyInForce { layers: self.policy.layers(), mode: Some(self.policy.mode()) });
        }
    }

    /// Records another policy; if nothing was decided yet, with the first record.
    fn note_policy_anew(&mut self) {
        if self.policy_noted {
            self.policy_noted = false;
            self.note_policy();
        }
    }

    /// Denies pending approvals that the new policy denies. Those it would allow still wait, because they were asked.
    fn judge_again(&mut self, at: InputTime) {
        self.with_calls(|runner, calls| {
            for call in calls {
                let judged = match &call.state {
                    CallState::Asking(pending) => runner.denied_by_now(&pending.plan, at),
                    CallState::Previewing(viewing) => denied(runner.policy, &viewing.tool_name, &viewing.actions, at),
                    CallState::Deferred | CallState::Planning | CallState::Running | CallState::Unknown | CallState::Done(_) => {
                        None
                    }
                };
                let Some(denial) = judged else { continue };
                if let CallState::Asking(pending) = &call.state {
                    let approval_id = pending.approval_id.clone();
                    let reason = Some(format!("the policy now denies it: {}", denial.reason));
                    runner.resolve_approval(call, &approval_id, Decision::Denied { reason }, 0);
                }
                runner.stop_preview(call);
                runner.refuse_by_policy(call, &denial);
            }
        });
        self.commit(Durability::Process);
        self.advance(at);
    }

    /// Returns why an allowed call would be denied now.
    pub(in crate::agent) fn denied_by_now(&self, plan: &Plan, at: InputTime) -> Option<Denial> {
        denied(&self.policy, &plan.tool_name, &plan.actions, at)
    }
}

/// Returns why the policy denies a call with these actions.
pub(super) fn denied(policy: &Enforcer, tool_name: &str, actions: &[Action], at: InputTime) -> Option<Denial> {
    match policy.judge_call(tool_name, actions, at.now) {
        Verdict::Deny(denial) => Some(denial),
        Verdict::Allow(_) | Verdict::Ask(_) => None,
    }
}
