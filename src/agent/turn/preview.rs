//! Previews: a command runs in a copy-on-write layer, and its changes need approval before they are applied.

use super::tool_calls::Batch;
use super::{Call, CallState, InputTime, TurnMachine};
use crate::policy::PreviewPermit;
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{Action, ApprovalId, Decision, Effects, PreviewOffer, ToolError, ToolResult};

/// Running preview. The plan is with the router; this is what can still be judged.
#[derive(Debug)]
pub(super) struct ActivePreview {
    pub ticket: u64,
    pub tool_name: String,
    pub actions: Vec<Action>,
}

/// Parameters of a preview.
pub(super) struct PreviewRequest {
    pub index: usize,
    pub plan: Plan,
    pub permit: PreviewPermit,
    /// Approval in which it was requested.
    pub approval_id: Option<ApprovalId>,
    /// Whether the preview runs before any approval.
    pub unasked: bool,
}

impl TurnMachine {
    /// Runs a preview that the user requested instead of deciding.
    pub(super) fn preview(&mut self, approval_id: &ApprovalId, at: InputTime) {
        self.decided(approval_id, Decision::Previewed, at);
    }

    /// Handles the result of a preview. A preview that is no longer needed is dropped.
    pub(super) fn previewed(&mut self, index: usize, ticket: u64, outcome: Result<Plan, ToolError>, at: InputTime) {
        self.with_calls(|runner, calls| {
            let waits = |call: &Call| matches!(&call.state, CallState::Previewing(viewing) if viewing.ticket == ticket);
            let Some(call) = calls.get_mut(index).filter(|call| waits(call)) else { return };
            if runner.cancelling {
                return runner.interrupt_layer(call, outcome);
            }
            let mut batch = Batch::default();
            match outcome {
                Ok(plan) => {
                    runner.note_layer(call, &plan);
                    let verdict = plan.judged(runner.policy, at.now);
                    call.proposal.clone_from(&plan.proposal);
                    runner.obey(verdict, call, index, plan, &mut batch, at);
                    if matches!(call.state, CallState::Running) {
                        let (tool_call_id, proposal) = (call.call.tool_call_id.clone(), call.proposal.clone());
                        runner.out.record(Record::Previewed { tool_call_id, proposal });
                    }
                }
                Err(error) => {
                    runner.drop_preview(call);
                    call.no_layer = call.layered.then(|| error.message.clone());
                    call.no_preview = Some(error.message);
                    runner.plan_again(call, index);
                }
            }
            runner.carry_out(calls, batch);
        });
        self.advance(at);
        self.commit(Durability::Process);
    }

    /// Handles the recovery result of effects that were being applied when the process ended.
    pub(super) fn settle_commits(&mut self, settled: Vec<ToolResult>) {
        self.with_calls(|runner, calls| {
            for result in settled {
                let under_way = |call: &&mut Call| {
                    call.previewed && matches!(call.state, CallState::Running) && call.call.tool_call_id == result.tool_call_id
                };
                let Some(call) = calls.iter_mut().find(under_way) else { continue };
                runner.announce(call, &[]);
                call.settle(result);
                runner.report(call, 0);
            }
        });
    }
}

/// Returns why a plan cannot be previewed.
pub(super) fn no_preview(plan: &Plan) -> Option<String> {
    if plan.effects.is_some() {
        return Some("it already ran in a preview".to_owned());
    }
    match &plan.preview {
        PreviewOffer::Possible => None,
        PreviewOffer::None => Some("it is not a command".to_owned()),
        PreviewOffer::Impossible { reason } => Some(reason.clone()),
    }
}

/// Returns whether a run changed nothing and had no access blocked.
pub(super) fn is_quiet(effects: &Effects) -> bool {
    effects.is_empty() && effects.refused.is_empty() && effects.denied.is_empty()
}
