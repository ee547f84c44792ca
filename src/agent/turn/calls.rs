//! Tool calls: those of the current step, their approvals, and the grants that outlive them.

use super::call_batch::CallBatch;
use super::call_runner::{CallRunner, LayerNotices};
use super::grants::{GrantInput, Grants};
use super::io::{Effect, InputTime, PlanResult};
use super::side_effects::SideEffects;
use super::tasks::CurrentCalls;
use super::turn_context::TurnContext;
use crate::ports::{Durability, Plan, RecoveredCalls};
use crate::protocol::{
    ApprovalId, CallHooks, CallId, Decision, EffectsProgress, EventKind, Part, RequestedList, Resolution, RuleQuery, TaskId,
    ToolError, ToolResult,
};
use crate::session::Mandate;

/// Notice shown if a proposal has no text.
const NO_TEXT: &str = "this proposal has no text to show";

/// State of tool calls that outlives a step. The calls of the current step are part of the task.
#[derive(Debug, Default)]
pub(super) struct TurnCalls {
    grants: Grants,
    layers: LayerNotices,
}

/// Input to the tool calls.
#[derive(Debug)]
pub(super) enum CallsInput {
    Planned(Vec<PlanResult>),
    /// The pre-call hooks of these calls have run.
    Hooked(Vec<(usize, CallHooks)>),
    Previewed {
        index: usize,
        ticket: u64,
        outcome: Result<Plan, ToolError>,
    },
    Printed {
        index: usize,
        text: String,
    },
    /// Progress of a call, which is dropped unless the call is still running.
    Progressed {
        tool_call_id: CallId,
        progress: EffectsProgress,
    },
    Finished {
        index: usize,
        result: ToolResult,
        latency_ms: u64,
    },
    /// All other inputs have been handled, so waiting calls may continue.
    Due,
    Approval(ApprovalInput),
    /// The user chose how to proceed with a call whose outcome is unknown.
    Resolved {
        tool_call_id: CallId,
        resolution: Resolution,
    },
    /// The user moved a running command to the background.
    BackgroundRequested {
        tool_call_id: Option<CallId>,
    },
    /// The policy or the mode changed.
    PolicyChanged,
    /// The task is being stopped. `first` is its ID, or `None` if it was already being stopped.
    Stopped {
        first: Option<TaskId>,
    },
    /// The task is ending, so every call needs a result.
    Closed,
    /// The step is ending with the results available so far.
    StepClosed,
    /// The session is ending.
    SessionEnding,
    /// Calls from the previous process were restored, together with any known outcomes.
    Recovered {
        settled: Vec<ToolResult>,
        known: RecoveredCalls,
    },
    /// Calls from the previous process continue.
    Resumed,
    /// The layers of calls whose effects have not been applied must be discarded.
    LayersDiscarded,
    /// The approved plan's mandate was restored.
    MandateRestored(Mandate),
}

/// Input that concerns a pending approval.
#[derive(Debug)]
pub(super) enum ApprovalInput {
    Decided {
        approval_id: ApprovalId,
        decision: Decision,
    },
    /// An approval's timer may have expired.
    Woken {
        ticket: u64,
    },
    /// The user asked about a rule for an approval.
    RuleQueried {
        approval_id: ApprovalId,
        query: RuleQuery,
    },
    /// Recent commands were read, to determine which of them a rule would have allowed.
    RecentFound {
        approval_id: ApprovalId,
        offer: usize,
        commands: Result<Vec<String>, String>,
    },
    /// A proposal's files no longer match its plan, or match it again.
    Outdated {
        approval_id: ApprovalId,
        outdated: bool,
    },
    /// The user requested the proposed text of a file.
    ProposalRequested {
        approval_id: ApprovalId,
        file: usize,
    },
}

/// Output of the tool calls.
#[derive(Debug, Default)]
pub(super) struct CallsOutput {
    /// Whether a call was waiting for the input.
    pub is_known: bool,
    /// Results of all calls, in call order, once every call has one.
    pub results: Option<Vec<Part>>,
    /// Side effects of the calls that were started.
    pub started: Vec<SideEffects>,
}

impl TurnCalls {
    /// Handles an input. `current` contains the calls of the current step, if any, and `quitting` says whether the
    /// session is ending.
    pub(crate) fn handle(
        &mut self,
        input: CallsInput,
        current: Option<CurrentCalls<'_>>,
        quitting: bool,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> CallsOutput {
        let mut output = CallsOutput::default();
        let Some(CurrentCalls { batch, guard, step_id, typed, check, cancelling }) = current else {
            self.handle_without_calls(input, cx, at);
            return output;
        };
        let mut runner = CallRunner {
            cx,
            grants: &mut self.grants,
            started: &mut output.started,
            guard,
            layers: &mut self.layers,
            step_id,
            typed,
            check,
            cancelling,
            quitting,
        };
        (output.is_known, output.results) = pass(input, batch, &mut runner, at);
        output
    }

    /// Handles an input that concerns saved rules or the task's mandate.
    pub(crate) fn handle_grant(&mut self, input: GrantInput, cx: &mut TurnContext) {
        self.grants.handle(input, cx);
    }

    /// Handles an input that concerns calls while there are none.
    fn handle_without_calls(&mut self, input: CallsInput, cx: &mut TurnContext, at: InputTime) {
        match input {
            CallsInput::Approval(ApprovalInput::Decided { approval_id, .. }) => report_unknown_approval(&approval_id, cx),
            CallsInput::Approval(ApprovalInput::RuleQueried { approval_id, .. }) => {
                cx.out.event(EventKind::RuleTold { approval_id, told: CallBatch::already_decided() });
            }
            CallsInput::Approval(ApprovalInput::ProposalRequested { .. }) => cx.out.notice(NO_TEXT),
            CallsInput::Resolved { tool_call_id, .. } => report_unknown_call(&tool_call_id, cx),
            CallsInput::BackgroundRequested { tool_call_id } => cx.out.effect(Effect::Background { tool_call_id }),
            CallsInput::MandateRestored(mandate) => self.grants.restore_mandate(mandate, cx, at),
            _ => {}
        }
    }

    /// Returns whether a change to the policy files is pending.
    pub(crate) fn is_saving(&self) -> bool {
        self.grants.is_saving()
    }

    /// Returns a list for the user of the commands that ran without approval, one per line.
    pub(crate) fn unasked_runs(&self) -> RequestedList {
        self.layers.unasked.list()
    }
}

/// Passes an input to the step's calls. Returns whether a call was waiting for it, and all results if the input
/// completed the last call.
fn pass(input: CallsInput, batch: &mut CallBatch, runner: &mut CallRunner<'_>, at: InputTime) -> (bool, Option<Vec<Part>>) {
    match input {
        CallsInput::Planned(plans) => batch.on_plans(plans, runner, at),
        CallsInput::Hooked(hooked) => {
            let to_plan = batch.on_hooks(hooked, runner);
            if !to_plan.is_empty() {
                runner.cx.out.effect(Effect::Plan(to_plan));
                return (true, None);
            }
            // Reports the calls that do not need to be planned.
            batch.on_plans(Vec::new(), runner, at);
            return (false, None);
        }
        CallsInput::Previewed { index, ticket, outcome } => batch.on_preview(index, ticket, outcome, runner, at),
        CallsInput::Printed { index, text } => {
            if let Some(call) = batch.calls().get(index) {
                runner.cx.out.event(EventKind::ToolOutputChunk { tool_call_id: call.call.tool_call_id.clone(), text });
            }
        }
        CallsInput::Progressed { tool_call_id, progress } => {
            if batch.is_active(&tool_call_id) {
                runner.cx.out.event(EventKind::EffectsProgress { tool_call_id, progress });
            }
        }
        CallsInput::Finished { index, result, latency_ms } => batch.on_result(index, result, latency_ms, runner),
        CallsInput::Due => return (true, batch.advance(runner)),
        CallsInput::Approval(input) => return (pass_to_approval(input, batch, runner, at), None),
        CallsInput::Resolved { tool_call_id, resolution } => {
            if !batch.resolve(&tool_call_id, resolution, runner) {
                report_unknown_call(&tool_call_id, runner.cx);
            }
        }
        CallsInput::BackgroundRequested { tool_call_id } => move_to_background(tool_call_id, batch, runner),
        CallsInput::PolicyChanged => batch.judge_again(runner, at),
        CallsInput::Stopped { first } => batch.stop(first, runner, at),
        CallsInput::Closed => batch.close(runner),
        CallsInput::StepClosed => return (true, Some(batch.results(&runner.cx.options))),
        CallsInput::SessionEnding => {
            batch.stop_previews(runner);
            if batch.is_changing() {
                runner.cx.out.effect(Effect::KillTools);
            }
        }
        CallsInput::Recovered { settled, known } => {
            batch.settle_commits(settled, runner);
            batch.settle_by_disk(known, runner);
        }
        CallsInput::Resumed => batch.resume(runner),
        CallsInput::LayersDiscarded => batch.discard_layers(runner),
        CallsInput::MandateRestored(mandate) => runner.grants.restore_mandate(mandate, runner.cx, at),
    }
    (true, None)
}

/// Passes an input to the approval that it concerns. Returns whether a call was waiting for it.
fn pass_to_approval(input: ApprovalInput, batch: &mut CallBatch, runner: &mut CallRunner<'_>, at: InputTime) -> bool {
    match input {
        ApprovalInput::Decided { approval_id, decision } => {
            let is_known = batch.decide(&approval_id, decision, runner, at);
            if !is_known {
                report_unknown_approval(&approval_id, runner.cx);
            }
            return is_known;
        }
        ApprovalInput::Woken { ticket } => return batch.time_out(ticket, runner, at),
        ApprovalInput::RuleQueried { approval_id, query } => match batch.ask_rule(&approval_id, query, runner, at) {
            Ok(told) => runner.cx.out.event(EventKind::RuleTold { approval_id, told }),
            Err(offer) => runner.cx.out.effect(Effect::Recent { approval_id, offer }),
        },
        ApprovalInput::RecentFound { approval_id, offer, commands } => {
            if let Some(told) = batch.reach(&approval_id, offer, commands, runner, at) {
                runner.cx.out.event(EventKind::RuleTold { approval_id, told });
            }
        }
        ApprovalInput::Outdated { approval_id, outdated } => {
            if let Some(tool_call_id) = batch.call_awaiting(&approval_id).cloned() {
                runner.cx.out.event(EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated });
            }
        }
        ApprovalInput::ProposalRequested { approval_id, file } => match batch.proposed_text(&approval_id, file) {
            Some(text) => runner.cx.out.event(EventKind::ProposedShown { approval_id, file, text }),
            None => runner.cx.out.notice(NO_TEXT),
        },
    }
    true
}

/// Moves a running command to the background. A command that is running in a layer is stopped instead, and starts
/// again in the background once the user approves it.
fn move_to_background(tool_call_id: Option<CallId>, batch: &mut CallBatch, runner: &mut CallRunner<'_>) {
    if runner.check {
        runner.cx.out.notice("the check of a goal cannot run in the background");
    } else if batch.leave_layer(tool_call_id.as_ref(), runner) {
        runner.cx.out.commit(Durability::Process);
    } else {
        runner.cx.out.effect(Effect::Background { tool_call_id });
    }
}

fn report_unknown_approval(approval_id: &ApprovalId, cx: &mut TurnContext) {
    cx.out.notice(format!("approval `{approval_id}` is unknown or already decided"));
}

fn report_unknown_call(id: &CallId, cx: &mut TurnContext) {
    cx.out.notice(format!("no call `{id}` is waiting for a decision"));
}
