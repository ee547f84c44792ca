//! The calls of one answer: planned, judged, asked for, run; results in call order.

use super::super::limits::{BYTES_PER_TOKEN, RESULT_LEAST_BYTES, RESULTS_PERCENT};
use super::opened;
use super::order::{Order, writes};
use super::preview::Looked;
use super::{Call, CallState, Effect, Machine, Moment, Phase, Planned};
use crate::policy::{Permit, Verdict};
use crate::ports::{Durability, Edited, Plan, Record, Tail};
use crate::protocol::{Action, Approval, CallId, ErrorCode, EventKind, Part, Resolution, Role, ToolResult};
use std::fmt::Write;

/// Of the paths of a call whose outcome is not known; others are counted.
const NAMED_PATHS: usize = 10;

/// What follows from a batch of plans once it is in the journal.
#[derive(Default)]
pub(super) struct Batch {
    pub asks: Vec<Approval>,
    pub previews: Vec<(u64, Looked)>,
    pub runs: Vec<(usize, Plan, Permit)>,
}

impl Machine {
    /// Takes the calls of the running step out, for the length of `act`.
    pub(super) fn with_calls(&mut self, act: impl FnOnce(&mut Self, &mut Vec<Call>)) {
        let Some(task) = &mut self.task else { return };
        let Phase::Working(calls) = &mut task.phase else { return };
        let mut calls = std::mem::take(calls);
        act(self, &mut calls);
        if let Some(task) = &mut self.task
            && let Phase::Working(slot) = &mut task.phase
        {
            *slot = calls;
        }
    }

    pub(super) fn planned(&mut self, plans: Vec<Planned>, at: Moment) {
        self.note_policy();
        self.with_calls(|machine, calls| {
            let mut batch = Batch::default();
            for (index, plan) in sorted(plans, calls.len()).into_iter().enumerate() {
                let (before, from) = calls.split_at_mut(index);
                machine.settle_plan(before, &mut from[0], index, plan, &mut batch, at);
            }
            machine.carry_out(calls, batch);
        });
        self.advance(at);
    }

    /// Decides what becomes of one planned call.
    fn settle_plan(
        &mut self,
        before: &[Call],
        call: &mut Call,
        index: usize,
        planned: Option<Planned>,
        batch: &mut Batch,
        at: Moment,
    ) {
        let cancelling = self.task.as_ref().is_some_and(|task| task.cancelling);
        let plan = planned.map(|planned| {
            if !planned.scope.is_empty() {
                call.scope = planned.scope;
            }
            planned.plan
        });
        match plan {
            None => {
                if call.is_done() && call.announced.is_none() {
                    self.announce(call, &[]);
                    self.report(call, 0);
                }
            }
            Some(_) if !matches!(call.state, CallState::Planning) => {}
            Some(Err(error)) if self.amending_failed(call, index, &error) => {}
            Some(Err(error)) => {
                call.order = Order::of_failed(&call.scope);
                if !cancelling && call.waits(before) {
                    return call.defer();
                }
                self.announce_scope(call);
                // A tool that is not to be had says nothing, not even why it could not be planned.
                match self.policy.offers(&call.call.tool_name) {
                    Ok(()) => call.refuse(error.code, error.message),
                    Err(denial) => call.refuse(ErrorCode::PolicyDenied, format!("{} (rule: {})", denial.reason, denial.rule)),
                }
                self.report(call, 0);
            }
            Some(Ok(mut plan)) => {
                call.order = Order::of_plan(&plan, &call.scope);
                let waits = !cancelling && call.waits(before);
                if waits && !plan.changes && call.scope.iter().any(writes) {
                    // It finds nothing to change yet. The journal has it once it is known what it does.
                    return call.defer();
                }
                self.narrow_offer(call, &mut plan);
                call.summary.clone_from(&plan.summary);
                call.touches = plan.touches();
                call.changes = plan.changes;
                call.polls = !plan.changes && plan.actions.is_empty();
                let verdict = plan.judged(&self.policy, at.now);
                // What may not be touched is not written down either.
                call.proposal = plan.proposal.clone().filter(|_| !matches!(verdict, Verdict::Deny(_)));
                self.announce(call, &plan.actions);
                if cancelling {
                    call.refuse(ErrorCode::Cancelled, "the task was stopped before this call ran");
                    self.report(call, 0);
                } else if waits {
                    call.defer();
                } else {
                    self.obey(verdict, call, index, plan, batch, at);
                }
            }
        }
    }

    /// Announces a call that was not planned to its end, by what its arguments name.
    pub(super) fn announce_scope(&mut self, call: &mut Call) {
        let scope = std::mem::take(&mut call.scope);
        self.announce(call, &scope);
        call.scope = scope;
    }

    pub(super) fn announce(&mut self, call: &mut Call, actions: &[Action]) {
        if call.announced.is_some() {
            return;
        }
        call.announced = Some(Edited { summary: call.summary.clone(), actions: actions.to_vec() });
        call.ran = super::ran::ran(actions, &call.summary, call.changes);
        if let Some(step_id) = self.task.as_ref().and_then(|task| task.step_id.clone()) {
            self.note(Record::Intent {
                step_id,
                call: call.call.clone(),
                summary: call.summary.clone(),
                actions: actions.to_vec(),
                proposal: call.proposal.clone(),
                changes: call.changes,
            });
        }
        self.emit(EventKind::ToolRequested {
            tool_call_id: call.call.tool_call_id.clone(),
            tool_name: call.call.tool_name.clone(),
            capability: actions.first().map(|action| action.capability().to_owned()),
            arguments: call.call.arguments.clone(),
            summary: call.summary.clone(),
        });
    }

    pub(super) fn obey(&mut self, verdict: Verdict, call: &mut Call, index: usize, plan: Plan, batch: &mut Batch, at: Moment) {
        if Self::is_answered(call, &plan) {
            return self.run_answered(verdict, call, index, plan, batch);
        }
        if let Some(permit) = self.first_look(&verdict, &plan) {
            return self.begin_preview(call, Looked { index, plan, permit, approval_id: None }, batch);
        }
        match verdict {
            Verdict::Deny(denial) => self.refuse_by_policy(call, &denial),
            _ if call.held.is_some() => self.ask_to_open(call, index, plan, batch, at),
            Verdict::Ask(question) if self.has_said_yes(&plan, &question) => {
                self.permit(call, index, plan, question.approve(), batch);
            }
            Verdict::Ask(question) => self.ask(call, index, plan, self.asking_why(call, question), batch, at),
            Verdict::Allow(permit) => match self.why_ask(call, &plan) {
                None => self.permit(call, index, plan, permit, batch),
                Some(reason) => self.ask_anyway(call, index, plan, reason, batch, at),
            },
        }
    }

    /// Asks where a rule would not.
    pub(super) fn ask_anyway(
        &mut self,
        call: &mut Call,
        index: usize,
        plan: Plan,
        reason: String,
        batch: &mut Batch,
        at: Moment,
    ) {
        match self.policy.ask_call(&plan.tool_name, &plan.actions, at.now, reason) {
            Ok(question) => self.ask(call, index, plan, question, batch, at),
            Err(denial) => self.refuse_by_policy(call, &denial),
        }
    }

    pub(super) fn permit(&mut self, call: &mut Call, index: usize, plan: Plan, permit: Permit, batch: &mut Batch) {
        let edited = call.edited(&plan);
        if let Some(edited) = &edited {
            call.runs_as(edited);
        }
        call.runs();
        self.rewinds.add_side_effects(call.ran.clone());
        self.let_pass(call.row);
        let rule = permit.rule().to_owned();
        let (tool_call_id, places) = (call.call.tool_call_id.clone(), plan.places.clone());
        let told = plan.amends.told.clone().filter(|_| edited.is_some() || !call.is_line_again());
        call.amended.told.clone_from(&told);
        self.note(Record::Started { tool_call_id, rule, places, told, edited });
        batch.runs.push((index, plan, permit));
    }

    /// Commits what the batch is about to do, then does it.
    pub(super) fn carry_out(&mut self, calls: &[Call], batch: Batch) {
        if batch.runs.iter().any(|(_, plan, _)| plan.changes) {
            self.commit(Durability::Power);
        } else if !(batch.asks.is_empty() && batch.previews.is_empty()) {
            self.commit(Durability::Process);
        }
        for approval in batch.asks {
            let wait = self.end_of_wait(calls, &approval.approval_id);
            self.emit(EventKind::ApprovalRequested(approval));
            self.out.extend(wait);
        }
        for (ticket, Looked { index, plan, permit, approval_id }) in batch.previews {
            let tool_call_id = calls[index].call.tool_call_id.clone();
            self.emit(EventKind::PreviewStarted { approval_id, tool_call_id });
            self.out.push(Effect::Preview { index, plan, permit, ticket });
        }
        for (index, plan, permit) in batch.runs {
            let tool_call_id = calls[index].call.tool_call_id.clone();
            let summary = calls[index].edited(&plan).map(|edited| edited.summary);
            self.emit(EventKind::ToolStarted { tool_call_id, rule: permit.rule().to_owned(), summary });
            self.out.push(Effect::Run { index, plan, permit, most_bytes: self.result_bytes(calls.len()) });
        }
    }

    pub(super) fn tool_output(&mut self, index: usize, text: String) {
        let Some(task) = &self.task else { return };
        let Phase::Working(calls) = &task.phase else { return };
        if let Some(tool_call_id) = calls.get(index).map(|call| call.call.tool_call_id.clone()) {
            self.emit(EventKind::ToolOutputChunk { tool_call_id, text });
        }
    }

    pub(super) fn tool_finished(&mut self, index: usize, result: ToolResult, latency_ms: u64, at: Moment) {
        self.settle_run(index, result, latency_ms);
        self.advance(at);
    }

    /// Takes what a run came to; only a call that runs can come to anything.
    pub(super) fn settle_run(&mut self, index: usize, result: ToolResult, latency_ms: u64) {
        self.with_calls(|machine, calls| {
            let Some(call) = calls.get_mut(index).filter(|call| matches!(call.state, CallState::Running)) else { return };
            if machine.may_be_opened(call, &result) {
                return machine.hold(call, index, result, latency_ms);
            }
            if machine.renews(call, index, &result) {
                return;
            }
            call.settle(result);
            machine.report(call, latency_ms);
            if call.changes {
                machine.commit(Durability::Process);
            }
        });
    }

    /// What the person wants done about a call that a crash left without an outcome.
    pub(super) fn resolved(&mut self, id: &CallId, resolution: Resolution, at: Moment) {
        let mut known = false;
        self.with_calls(|machine, calls| {
            let waiting = calls
                .iter_mut()
                .enumerate()
                .find(|(_, call)| call.call.tool_call_id == *id && matches!(call.state, CallState::Unknown));
            let Some((index, call)) = waiting else { return };
            known = true;
            machine.note(Record::Resolved { tool_call_id: id.clone(), resolution });
            match resolution {
                Resolution::Rerun => {
                    call.previewed = false;
                    machine.plan_again(call, index);
                }
                Resolution::Skip => {
                    call.refuse(ErrorCode::Cancelled, "aye ended while it ran; the person chose not to run it again");
                    machine.report(call, 0);
                }
                Resolution::TellModel => {
                    outcome_unknown(call);
                    machine.report(call, 0);
                }
            }
            machine.commit(Durability::Process);
        });
        if !known {
            self.emit(EventKind::Notice { message: format!("no call `{id}` waits for a decision") });
        }
        self.advance(at);
    }

    /// Records and tells the result of a call that is done.
    pub(super) fn report(&mut self, call: &Call, latency_ms: u64) {
        let CallState::Done(result) = &call.state else { return };
        let latency_ms = call.held.as_ref().and_then(opened::Held::latency_ms).unwrap_or(latency_ms);
        self.note(Record::Finished { result: result.clone(), latency_ms });
        let applied = result.error.is_none() && call.changes;
        self.emit(EventKind::ToolCompleted {
            tool_call_id: result.tool_call_id.clone(),
            tool_name: result.tool_name.clone(),
            status: result.status,
            latency_ms,
            output_text: result.output_text.clone(),
            error: result.error.clone(),
            proposal: result.changed.as_deref().cloned().or_else(|| call.proposal.clone().filter(|_| applied)),
            redactions: result.redactions.clone(),
            artifact_uris: result.artifact_uris.clone(),
        });
    }

    /// Plans what waited for an earlier call, and closes the step when all calls are done.
    pub(super) fn advance(&mut self, at: Moment) {
        let mut results = None;
        self.with_calls(|machine, calls| {
            // An answer may have thousands of calls, and this is looked at whenever one of them ends.
            let Some(open) = calls.iter().position(|call| !call.is_done()) else {
                let most_bytes = machine.result_bytes(calls.len());
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
                    machine.plan_again(&mut from[0], index);
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

impl Machine {
    /// Bytes of output that each of `count` results may have in the thread; the journal and the person have all of it.
    pub(super) fn result_bytes(&self, count: usize) -> usize {
        let tokens = self.options.model.context_window * RESULTS_PERCENT / 100;
        let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        // However many there are, all of them together leave room for the rest.
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
        Some(words) => format!("aye ended while this ran, and it is done in part; {words}. look before you repeat it"),
        None => format!(
            "aye ended while this ran, so it may have happened, in part or not at all; look before you repeat it{}",
            leftovers(call)
        ),
    };
    if let Some(Tail { text, ran_ms }) = &call.tail {
        let seconds = ran_ms / 1_000;
        let printed: String = text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect();
        let printed = printed.trim_end();
        let _ = match printed {
            "" => write!(message, ". after {seconds} s it had printed nothing"),
            _ => write!(message, ". the last that was kept of what it printed, after {seconds} s:\n{printed}"),
        };
    }
    call.refuse(ErrorCode::OutcomeUnknown, message);
}

/// Where to look for what a change of files left unfinished: beside its place, never under its name. Of several files each is
/// old or new.
pub(super) fn leftovers(call: &Call) -> String {
    match call.touches.as_slice() {
        [] => String::new(),
        [_] => " (an unfinished copy or removal stands beside its place as `.aye-…`)".to_owned(),
        several => {
            let named: Vec<_> = several.iter().take(NAMED_PATHS).map(|path| format!("`{}`", path.display())).collect();
            let more = several.len() - named.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let named = named.join(", ");
            format!(
                " (each of {named}{more} is as it was or as the call makes it, so look at all of them; what one was, or an unfinished \
                 copy, may stand beside it as `.aye-…`)"
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
