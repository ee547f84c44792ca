//! Plan of a call: its effects, and the reasons that require approval.

use super::{Doubts, LayerRun};
use crate::policy::{Enforcer, Verdict};
use crate::protocol::{
    Action, Amendable, DiscardedEffect, Effects, HookRun, PlaceChange, PreviewOffer, Proposal, ProposedPlan, SandboxAccess,
    TaskPlan, ToolCall,
};
use jiff::Timestamp;
use std::any::Any;
use std::fmt;
use std::path::PathBuf;

/// Planned effects of a call. Nothing is written yet.
pub(crate) struct Plan {
    pub call: ToolCall,
    /// Canonical name of the tool.
    pub tool_name: String,
    /// One-line summary: `Edit src/main.rs`, `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
    /// Proposed change; present for tools that change something.
    pub proposal: Option<Proposal>,
    /// Whether the run can have effects. A read need not be committed before it runs.
    pub changes: bool,
    /// Whether the call waits for the user while it runs, without a time limit.
    pub waits_for_user: bool,
    /// State of each path before and after, if known. After a crash, the disk shows whether the call ran.
    pub places: Vec<PlaceChange>,
    /// Files whose content the call would run. An earlier call may still change them.
    pub runs: Vec<PathBuf>,
    /// Whether a preview is possible.
    pub preview: PreviewOffer,
    /// Effects of the preview. Running the plan applies them.
    pub effects: Option<Box<Effects>>,
    /// Whether the call can run in a layer without approval, and the result of that run.
    pub layer: LayerRun,
    /// Access beyond the permissions of commands.
    pub opens: Vec<SandboxAccess>,
    /// For commands: seconds until the command is killed.
    pub timeout_seconds: u64,
    /// Sandbox of this command, if it differs from the usual one.
    pub sandbox: Option<String>,
    /// Task plan that the call proposes. It always needs approval, which allows the actions that the plan names.
    pub task_plan: Option<Box<TaskPlanProposal>>,
    /// Reasons for approval although the policy allows the call.
    pub doubts: Doubts,
    /// Changes that the user may make or has made.
    pub amends: PlanAmendments,
    /// Runs of the hooks after the call, if they ran in a layer with the proposed files. The proposal includes their
    /// changes.
    pub hook_runs: Option<Vec<HookRun>>,
    /// Data of the tool for the run; only its own router reads it.
    pub payload: Box<dyn Any + Send>,
}

/// Plan for the task that a call proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPlanProposal {
    pub plan: TaskPlan,
    /// The plan as shown for approval, once the call is judged.
    pub shown: Option<Box<ProposedPlan>>,
}

impl From<TaskPlan> for TaskPlanProposal {
    fn from(plan: TaskPlan) -> Self {
        Self { plan, shown: None }
    }
}

impl Plan {
    /// Returns a plan without paths and access for a call that changes something.
    pub(crate) fn empty(call: ToolCall, tool_name: String, payload: Box<dyn Any + Send>) -> Self {
        Self {
            call,
            tool_name,
            summary: String::new(),
            actions: Vec::new(),
            proposal: None,
            changes: true,
            waits_for_user: false,
            places: Vec::new(),
            runs: Vec::new(),
            preview: PreviewOffer::None,
            effects: None,
            layer: LayerRun::None,
            opens: Vec::new(),
            timeout_seconds: 0,
            sandbox: None,
            task_plan: None,
            doubts: Doubts::default(),
            amends: PlanAmendments::default(),
            hook_runs: None,
            payload,
        }
    }

    /// Returns the policy's verdict. A doubt about the plan turns an `allow` into an approval request.
    pub(crate) fn judge(&self, policy: &Enforcer, now: Timestamp) -> Verdict {
        let verdict = policy.judge_call(&self.tool_name, &self.actions, now);
        let reason = match (&verdict, self.doubts.about_any_call()) {
            (Verdict::Deny(_), _) => return verdict,
            (Verdict::Allow(_), Some(reason)) => reason,
            (Verdict::Ask(question), Some(reason)) => format!("{}; {reason}", question.reason),
            (Verdict::Ask(_), None) => return verdict,
            (Verdict::Allow(permit), None) => {
                match permit.unasked_conditions().and_then(|relies| self.doubts.reason_to_ask(relies)) {
                    Some(reason) => reason.to_owned(),
                    None => return verdict,
                }
            }
        };
        match policy.ask_call(&self.tool_name, &self.actions, now, reason) {
            Ok(question) => Verdict::Ask(question),
            Err(denial) => Verdict::Deny(denial),
        }
    }
}

/// Ways in which the user may change a plan, and the changes made.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanAmendments {
    pub offer: Amendable,
    /// Proposed text of each offered file, with secrets removed.
    pub texts: Vec<String>,
    /// Effects of the command that are not applied.
    pub discarded: Vec<DiscardedEffect>,
    /// Note for the model about the user's changes.
    pub told: Option<String>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("call", &self.call).field("actions", &self.actions).finish_non_exhaustive()
    }
}
