//! Recovers calls from an earlier process, based on the journal, the disk and the calls' saved output.

use super::amend::AppliedAmendments;
use super::call::{Call, CallState, leftover_note};
use super::call_batch::CallBatch;
use super::call_runner::CallRunner;
use super::denial::denial_error;
use super::io::Effect;
use super::loop_guard::RepeatCount;
use super::options::Approver;
use super::sandbox_escalation::BlockedRun;
use crate::ports::{CallOrder, Durability, RecoveredCalls, RecoveredState};
use crate::protocol::{CallArguments, ErrorCode, NO_USER, ToolResult};
use crate::session::{CallStage, OpenCall};

/// Calls in a step that an earlier process started.
impl CallBatch {
    /// Ends every open call with a result, so no call in the thread lacks one.
    pub(crate) fn close(&mut self, runner: &mut CallRunner<'_>) {
        for call in self.calls_mut().iter_mut().filter(|call| !call.is_done()) {
            runner.announce(call, &[]);
            if call.changes && matches!(call.state, CallState::Running) {
                call.outcome_unknown();
            } else {
                call.refuse(ErrorCode::Cancelled, "the task ended before this call ran");
            }
            runner.report(call, 0);
        }
    }

    /// Discards the layers of calls whose effects have not been applied yet.
    pub(crate) fn discard_layers(&mut self, runner: &mut CallRunner<'_>) {
        let in_a_layer = |call: &&mut Call| {
            call.preview.has_started && call.layer.has_started && !call.is_done() && !matches!(call.state, CallState::Running)
        };
        self.calls_mut().iter_mut().filter(in_a_layer).for_each(|call| runner.discard_layer(call, None));
    }

    /// Handles the recovery results for effects that were being applied when the process exited.
    pub(crate) fn settle_commits(&mut self, settled: Vec<ToolResult>, runner: &mut CallRunner<'_>) {
        for result in settled {
            let under_way = |call: &&mut Call| {
                call.preview.has_started
                    && matches!(call.state, CallState::Running)
                    && call.call.tool_call_id == result.tool_call_id
            };
            let Some(call) = self.calls_mut().iter_mut().find(under_way) else { continue };
            runner.announce(call, &[]);
            call.set_result(result);
            runner.report(call, 0);
        }
    }

    /// Settles calls based on the state of the disk. Completed calls are marked as done, and calls that had no effect
    /// are planned and judged again.
    pub(crate) fn settle_by_disk(
        &mut self,
        RecoveredCalls { mut found, mut tails }: RecoveredCalls,
        runner: &mut CallRunner<'_>,
    ) {
        let under_way = |call: &&mut Call| call.changes && matches!(call.state, CallState::Running);
        for call in self.calls_mut().iter_mut().filter(under_way) {
            let id = call.call.tool_call_id.clone();
            call.interrupted.tail = tails.remove(&id);
            // Previewed and blocked calls are recovered in other ways.
            let looked = found.remove(&id).filter(|_| !call.preview.has_started && call.held.is_none());
            match looked {
                Some(RecoveredState::Done { left }) => {
                    runner.announce(call, &[]);
                    let text = format!(
                        "{}: done; aye exited before it reported the result, but the files have the new content{}",
                        call.summary,
                        leftover_note(&left)
                    );
                    call.set_result(ToolResult::success(id, call.call.tool_name.clone(), text));
                    runner.report(call, 0);
                    runner.cx.out.notice(format!(
                        "`{}` had finished when aye exited; aye does not run it again{}",
                        call.summary,
                        leftover_note(&left)
                    ));
                }
                Some(RecoveredState::NotDone { left }) => {
                    call.state = CallState::Planning;
                    call.interrupted.leftover_files = left;
                    runner.cx.out.notice(format!("`{}` had not run when aye exited; aye plans it again", call.summary));
                }
                Some(RecoveredState::Resumable) => {
                    call.state = CallState::Planning;
                    runner.cx.out.notice(format!("`{}` was interrupted when aye exited; aye resumes it", call.summary));
                }
                Some(RecoveredState::Partly { words }) => call.interrupted.partly = Some(words),
                None => {}
            }
        }
    }

    /// Resumes the calls. Those that may have had effects are shown to the user; all others are planned and judged
    /// again.
    pub(crate) fn resume(&mut self, runner: &mut CallRunner<'_>) {
        let (mut plans, mut reopened, mut layers) = (Vec::new(), Vec::new(), Vec::new());
        let mut hooked = Vec::new();
        for (index, call) in self.calls_mut().iter_mut().enumerate() {
            match &call.state {
                CallState::Done(_) => {}
                CallState::Running if call.changes => runner.mark_interrupted(call),
                CallState::Running
                | CallState::Planning
                | CallState::Deferred
                | CallState::Asking(_)
                | CallState::Previewing(_)
                | CallState::Unknown => match resume_call(call, runner) {
                    Some(Resumption::Plan) if runner.hooks_run_before(call) => hooked.push((index, call.call.clone())),
                    Some(Resumption::Plan) => plans.push((index, call.call.clone())),
                    Some(Resumption::PlanAgain) => reopened.push(index),
                    Some(Resumption::ReopenLayer(digest)) => layers.push((index, digest)),
                    None => {}
                },
            }
        }
        runner.cx.out.commit(Durability::Process);
        if !plans.is_empty() {
            runner.cx.out.effect(Effect::Plan(plans));
        }
        if !hooked.is_empty() {
            runner.cx.out.effect(Effect::HookCalls(hooked));
        }
        for index in reopened {
            runner.plan_again(&mut self.calls_mut()[index], index);
        }
        for (index, digest) in layers {
            runner.reopen_layer(&mut self.calls_mut()[index], index, digest);
        }
    }
}

/// Next action for a call that has no outcome.
enum Resumption {
    Plan,
    /// Plan the call again with its previous access and amendments.
    PlanAgain,
    /// Reopen the layer whose effects have the given digest.
    ReopenLayer(String),
}

/// Prepares to resume a call that has not run. Returns `None` if the call now has a result.
fn resume_call(call: &mut Call, runner: &mut CallRunner<'_>) -> Option<Resumption> {
    if call.preview.has_started && call.layer.has_started {
        if let Some(digest) = call.layer.digest.clone() {
            return Some(Resumption::ReopenLayer(digest));
        }
        runner.discard_layer(call, None);
        return None;
    }
    if call.preview.has_started {
        runner.drop_preview(call);
        runner.cx.out.notice(format!("the preview of `{}` was discarded when aye exited", call.summary));
    }
    if let CallArguments::Malformed(_) = call.call.arguments {
        runner.announce(call, &[]);
        call.refuse(ErrorCode::InvalidRequest, "the arguments are not a JSON object, so nothing was run");
        runner.report(call, 0);
        None
    } else if (call.held.is_some() || !call.amended.by.is_empty()) && runner.cx.options.approvals.approver == Approver::User {
        Some(Resumption::PlanAgain)
    } else if call.held.as_ref().is_some_and(BlockedRun::is_waiting) {
        call.refuse(ErrorCode::NoApprover, NO_USER);
        runner.report(call, 0);
        None
    } else {
        call.state = CallState::Planning;
        Some(Resumption::Plan)
    }
}

/// Restores the calls of a step. Calls whose requesting response is missing are ignored.
pub(super) fn restore_calls(calls: Vec<OpenCall>, rows: &[RepeatCount]) -> Vec<Call> {
    let rows = rows.iter().copied().chain(std::iter::repeat(RepeatCount::default()));
    calls.into_iter().zip(rows).filter_map(|(call, row)| Call::from_open(call, row)).collect()
}

impl Call {
    fn from_open(open: OpenCall, row: RepeatCount) -> Option<Self> {
        let layer_digest = open.undecided_layer().map(str::to_owned);
        let mut call = Self { row, ..Self::new(open.call?, CallState::Planning) };
        if let Some(hooks) = open.hooks {
            call.use_hooks(hooks);
        }
        call.changes = open.changes;
        call.layer.digest = layer_digest;
        if let Some(planned) = open.planned {
            call.order = CallOrder::for_actions(planned.actions.iter(), open.changes);
            call.plan_as(&planned);
            call.announced = Some(planned);
        }
        if let Some(edited) = &open.edits.edited {
            call.plan_as(edited);
        }
        call.proposal = open.proposal;
        call.preview.has_started = open.previewed;
        call.layer.has_started = open.layered;
        call.preview.conflict = open.conflict;
        call.amended = AppliedAmendments {
            by: open.edits.amendments,
            told: open.edits.note,
            renewed: open.edits.renewed,
            began: open.edits.runs_edited,
            ..AppliedAmendments::default()
        };
        call.held = open.first_run.map(|first| {
            let mut held = BlockedRun::new(first.result, first.latency_ms);
            if first.runs_again {
                held.mark_rerun();
            }
            held
        });
        match (open.result, open.denied) {
            (Some(result), _) => call.state = CallState::Done(result),
            (None, Some(denial)) => {
                let (code, message) = denial_error(&denial);
                call.refuse(code, message);
            }
            (None, None) if open.stage == CallStage::Running => call.state = CallState::Running,
            (None, None) => {}
        }
        Some(call)
    }
}
