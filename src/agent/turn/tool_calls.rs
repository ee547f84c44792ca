//! Calls of one response: planned, judged, approved, run; results in call order.

use super::super::limits::{BYTES_PER_TOKEN, RESULT_LEAST_BYTES, RESULTS_PERCENT};
use super::call_runner::CallRunner;
use super::outputs::Outputs;
use super::preview::PreviewRequest;
use super::{Call, CallState, InputTime, Options, Phase, Planned, TurnMachine};
use crate::policy::Permit;
use crate::ports::{Durability, Plan, Record, Tail};
use crate::protocol::{Approval, CallId, ErrorCode, EventKind, Part, Resolution, Role, ToolResult};
use std::fmt::Write;

/// Maximum number of listed paths of a call with an unknown outcome; others are counted.
const NAMED_PATHS: usize = 10;

/// Actions that follow a batch of plans once it is in the journal.
#[derive(Default)]
pub(super) struct Batch {
    pub asks: Vec<Approval>,
    pub previews: Vec<(u64, PreviewRequest)>,
    pub runs: Vec<(usize, Plan, Permit)>,
}

impl TurnMachine {
    /// Runs an action on the calls of the current step, then performs its outputs.
    pub(super) fn with_calls(&mut self, act: impl FnOnce(&mut CallRunner<'_>, &mut Vec<Call>)) {
        let Some(task) = &mut self.task else { return };
        let Phase::Working(calls) = &mut task.phase else { return };
        let mut runner = CallRunner {
            policy: &mut self.policy,
            options: &self.options,
            counters: &mut self.counters,
            grants: &mut self.grants,
            rewinds: &mut self.rewinds,
            guard: &mut task.guard,
            step_id: task.step_id.clone(),
            typed: task.own.as_ref().is_some_and(|own| own.typed),
            cancelling: task.cancelling,
            quitting: self.quitting,
            out: Outputs::default(),
        };
        act(&mut runner, calls);
        let outputs = runner.out;
        self.perform(outputs);
    }

    pub(super) fn planned(&mut self, plans: Vec<Planned>, at: InputTime) {
        self.note_policy();
        self.with_calls(|runner, calls| {
            let mut batch = Batch::default();
            for (index, plan) in sorted(plans, calls.len()).into_iter().enumerate() {
                let (before, from) = calls.split_at_mut(index);
                runner.settle_plan(before, &mut from[0], index, plan, &mut batch, at);
            }
            runner.carry_out(calls, batch);
        });
        self.advance(at);
    }

    pub(super) fn tool_output(&mut self, index: usize, text: String) {
        let Some(task) = &self.task else { return };
        let Phase::Working(calls) = &task.phase else { return };
        if let Some(tool_call_id) = calls.get(index).map(|call| call.call.tool_call_id.clone()) {
            self.emit(EventKind::ToolOutputChunk { tool_call_id, text });
        }
    }

    pub(super) fn tool_finished(&mut self, index: usize, result: ToolResult, latency_ms: u64, at: InputTime) {
        self.settle_run(index, result, latency_ms);
        self.advance(at);
    }

    /// Handles the result of a run; only a running call can have one.
    pub(super) fn settle_run(&mut self, index: usize, result: ToolResult, latency_ms: u64) {
        self.with_calls(|runner, calls| {
            let Some(call) = calls.get_mut(index).filter(|call| matches!(call.state, CallState::Running)) else { return };
            runner.settle_run(call, index, result, latency_ms);
        });
    }

    /// Carries out the user's decision about a call with an unknown outcome.
    pub(super) fn resolved(&mut self, id: &CallId, resolution: Resolution, at: InputTime) {
        let mut known = false;
        self.with_calls(|runner, calls| {
            let waiting = calls
                .iter_mut()
                .enumerate()
                .find(|(_, call)| call.call.tool_call_id == *id && matches!(call.state, CallState::Unknown));
            let Some((index, call)) = waiting else { return };
            known = true;
            runner.out.record(Record::Resolved { tool_call_id: id.clone(), resolution });
            match resolution {
                Resolution::Rerun => {
                    call.previewed = false;
                    runner.plan_again(call, index);
                }
                Resolution::Skip => {
                    call.refuse(ErrorCode::Cancelled, "aye exited while this ran; the user chose not to run it again");
                    runner.report(call, 0);
                }
                Resolution::TellModel => {
                    outcome_unknown(call);
                    runner.report(call, 0);
                }
            }
            runner.out.commit(Durability::Process);
        });
        if !known {
            self.emit(EventKind::Notice { message: format!("no call `{id}` is waiting for a decision") });
        }
        self.advance(at);
    }

    /// Plans calls that waited for an earlier one, and closes the step when all calls are done.
    pub(super) fn advance(&mut self, at: InputTime) {
        let mut results = None;
        self.with_calls(|runner, calls| {
            // A response may have thousands of calls, and this runs whenever one of them ends.
            let Some(open) = calls.iter().position(|call| !call.is_done()) else {
                let most_bytes = runner.options.result_bytes(calls.len());
                let fitted = |call: &Call| done(call).map(|result| Part::ToolResult(result.fitted(most_bytes)));
                results = calls.iter().map(fitted).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty());
                return;
            };
            for index in open..calls.len() {
                if !matches!(calls[index].state, CallState::Deferred) {
                    continue;
                }
                let (before, from) = calls.split_at_mut(index);
                if !from[0].waits(&before[open..]) {
                    runner.plan_again(&mut from[0], index);
                }
            }
        });
        self.enter_for_calls();
        if results.is_some() && self.is_own() {
            return self.own_done(at);
        }
        if let Some(results) = results
            && let Some(message) = self.message(Role::Tool, results, at)
        {
            self.complete_step(message, at);
        }
    }
}

impl Options {
    /// Returns the maximum bytes for each of `count` results in the thread. The journal and the user get the whole output.
    pub(super) fn result_bytes(&self, count: usize) -> usize {
        let tokens = self.model.context_window * RESULTS_PERCENT / 100;
        let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        // Together they must leave space for the rest, however many there are.
        let least = RESULT_LEAST_BYTES.min(bytes.saturating_mul(2) / count.max(1));
        (bytes / count.max(1)).max(least)
    }
}

pub(super) fn done(call: &Call) -> Option<ToolResult> {
    match &call.state {
        CallState::Done(result) => Some(result.clone()),
        CallState::Deferred
        | CallState::Planning
        | CallState::Asking(_)
        | CallState::Previewing(_)
        | CallState::Running
        | CallState::Unknown => None,
    }
}

pub(super) fn outcome_unknown(call: &mut Call) {
    let mut message = match &call.partly {
        Some(words) => {
            format!("aye exited while this ran, and it is partly done; {words}. Check the result before you repeat it")
        }
        None => format!(
            "aye exited while this ran, so it may be done, partly done or not done; check the result before you repeat it{}",
            leftovers(call)
        ),
    };
    if let Some(Tail { text, ran_ms }) = &call.tail {
        let seconds = ran_ms / 1_000;
        let printed: String = text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect();
        let printed = printed.trim_end();
        let _ = match printed {
            "" => write!(message, ". It had printed nothing after {seconds} s"),
            _ => write!(message, ". Its last saved output, after {seconds} s:\n{printed}"),
        };
    }
    call.refuse(ErrorCode::OutcomeUnknown, message);
}

/// Returns where to look for leftovers of an unfinished file change: next to the file, under another name. Each of several files is either
/// old or new.
pub(super) fn leftovers(call: &Call) -> String {
    match call.touches.as_slice() {
        [] => String::new(),
        [_] => " (an unfinished copy or removal may be next to the file as `.aye-…`)".to_owned(),
        several => {
            let named: Vec<_> = several.iter().take(NAMED_PATHS).map(|path| format!("`{}`", path.display())).collect();
            let more = several.len() - named.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let named = named.join(", ");
            format!(
                " (each of {named}{more} is either unchanged or already changed, so check all of them; the original or an unfinished \
                 copy may be next to a file as `.aye-…`)"
            )
        }
    }
}

fn sorted(plans: Vec<Planned>, count: usize) -> Vec<Option<Planned>> {
    let mut slots: Vec<_> = (0..count).map(|_| None).collect();
    for planned in plans {
        if let Some(slot) = slots.get_mut(planned.index) {
            *slot = Some(planned);
        }
    }
    slots
}
