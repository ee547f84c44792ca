//! Call plans: the effects of a call, and the reasons to require approval.

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

/// Planned effects of a call. Planning does not write anything.
pub(crate) struct Plan {
    pub call: ToolCall,
    /// Canonical tool name.
    pub tool_name: String,
    /// One-line summary, such as `Edit src/main.rs` or `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
    /// Proposed change; `None` for tools that change nothing.
    pub proposal: Option<Proposal>,
    /// Whether running the call can have effects. A read need not be committed to the journal before it runs.
    pub changes: bool,
    /// Whether the call waits for the user while it runs, in which case no time limit applies.
    pub waits_for_user: bool,
    /// Known states of each path before and after the call. After a crash, they show whether the call took effect.
    pub places: Vec<PlaceChange>,
    /// Files whose content the call would execute. An earlier call may still change them.
    pub runs: Vec<PathBuf>,
    /// Whether the call can be previewed.
    pub preview: PreviewOffer,
    /// Effects of a preview that has run. Running the plan applies them.
    pub effects: Option<Box<Effects>>,
    /// Whether the call can run in a layer without approval, and the result if it has done so.
    pub layer: LayerRun,
    /// Access granted beyond the permissions that commands normally have.
    pub opens: Vec<SandboxAccess>,
    /// Time after which a command is killed, in seconds.
    pub timeout_seconds: u64,
    /// Description of this command's sandbox, if it differs from that of other commands.
    pub sandbox: Option<String>,
    /// Task plan proposed by the call. Such a call always needs approval, which also allows the actions that the plan
    /// names.
    pub task_plan: Option<Box<TaskPlanProposal>>,
    /// Reasons to require approval even though the policy allows the call.
    pub doubts: Doubts,
    /// Changes that the user may make to the plan, and those already made.
    pub amends: PlanAmendments,
    /// Runs of the post-call hooks, if they ran in a layer with the proposed files. The proposal then includes the
    /// changes made by those hooks.
    pub hook_runs: Option<Vec<HookRun>>,
    /// Tool-specific data for the run. Only the router that planned the call reads it.
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
    /// Creates a plan that has no paths or access, for a call that changes something.
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

    /// Returns the policy's verdict. Doubts about the plan turn `allow` into a request for approval.
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

/// Changes that the user may make to a plan, and those already made.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanAmendments {
    pub offer: Amendable,
    /// Proposed text of each file that the user may edit, with secrets redacted.
    pub texts: Vec<String>,
    /// Effects of the command that will not be applied.
    pub discarded: Vec<DiscardedEffect>,
    /// Note that tells the model about the user's changes.
    pub told: Option<String>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("call", &self.call).field("actions", &self.actions).finish_non_exhaustive()
    }
}
