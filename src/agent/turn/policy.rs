//! What changes when the policy or the mode does.

use super::{CallState, InputTime, TurnMachine};
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Verdict};
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{Action, Decision, EventKind, Mode, SandboxTier, ToolDefinition};
use std::sync::Arc;

/// What holds commands, as the person is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    pub tier: SandboxTier,
    /// For the status row: `sandbox on · net off`.
    pub words: String,
    /// What is missing on this system and how to get it.
    pub missing: Option<String>,
}

impl From<SandboxStatus> for EventKind {
    fn from(SandboxStatus { tier, words, missing }: SandboxStatus) -> Self {
        Self::SandboxInForce { tier, words, missing }
    }
}

/// A policy to take the place of the one in force.
#[derive(Debug)]
pub struct PolicyChange {
    pub enforcer: Enforcer,
    /// What the model is offered under it.
    pub tools: Arc<[ToolDefinition]>,
    /// The names of these tools and of the ones that the model can load.
    pub tool_names: Vec<String>,
    /// What holds a command, in words.
    pub sandbox: String,
    /// The same for the status row.
    pub sandbox_status: SandboxStatus,
    /// What the status row calls it.
    pub name: String,
    /// What changed, for the person; nothing where it is the same policy in another mode.
    pub message: Option<String>,
}

impl TurnMachine {
    /// Judges by another policy from now on. What the person allowed until they quit stays, and what runs runs on.
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

    /// Says in the journal what decides, before anything is decided by it.
    pub(super) fn note_policy(&mut self) {
        if !std::mem::replace(&mut self.policy_noted, true) {
            self.note(Record::PolicyInForce { layers: self.policy.layers(), mode: Some(self.policy.mode()) });
        }
    }

    /// Something else decides from now on; where nothing was decided yet it is said with what comes first.
    fn note_policy_anew(&mut self) {
        if self.policy_noted {
            self.policy_noted = false;
            self.note_policy();
        }
    }

    /// What waits for the person and is no longer to be asked is denied. What is allowed now was asked, and stays so.
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

    /// Why a call that was let through would be refused now.
    pub(in crate::agent) fn denied_by_now(&self, plan: &Plan, at: InputTime) -> Option<Denial> {
        denied(&self.policy, &plan.tool_name, &plan.actions, at)
    }
}

/// Why the policy refuses a call with these actions.
pub(super) fn denied(policy: &Enforcer, tool_name: &str, actions: &[Action], at: InputTime) -> Option<Denial> {
    match policy.judge_call(tool_name, actions, at.now) {
        Verdict::Deny(denial) => Some(denial),
        Verdict::Allow(_) | Verdict::Ask(_) => None,
    }
}
