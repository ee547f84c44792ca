//! A session from its journal: the fold of the records, and what a crash left open.

use super::{Approver, Call, CallState, Effect, Machine, Moment, Phase, Task};
use crate::ports::{Durability, Record, TaskEnd};
use crate::protocol::{
    Arguments, CallId, Decision, ErrorCode, EventKind, Failure, FailureKind, Message, Part, Resolution, Role, TaskId, Usage,
};

/// What is to become of a task that was not done when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// The person decides: it stands paused, with its questions asked again.
    Wait,
    /// It goes on at once.
    GoOn,
    /// Another prompt takes its place: it ends where it stands.
    Replace,
}

impl Machine {
    /// Takes up the session the records tell of; call it once, on a new machine.
    pub fn restore(&mut self, records: Vec<Record>, unfinished: Unfinished, at: Moment) -> Vec<Effect> {
        let mut failure = None;
        for record in records {
            if let Record::Paused { failure: why } = &record {
                failure = Some(why.clone());
            } else if matches!(record, Record::Continued) {
                failure = None;
            }
            self.fold(record);
        }
        let failure = failure.unwrap_or_else(|| {
            Failure::new(
                FailureKind::Internal,
                "aye ended in the middle of this task; all that was said and done is here",
                "/continue goes on, or say something else",
            )
        });
        self.take_up(failure, unfinished, at);
        std::mem::take(&mut self.out)
    }

    fn fold(&mut self, record: Record) {
        match record {
            Record::TaskStarted { prompt, max_steps } => self.fold_task(prompt, max_steps),
            Record::Queue { prompts } => self.queue = prompts.into(),
            Record::StepStarted { step_id, step_count, .. } => {
                self.counters.steps += 1;
                if let Some(task) = &mut self.task {
                    task.step_id = Some(step_id);
                    task.step_count = step_count.saturating_sub(1);
                    task.phase = Phase::Paused;
                }
            }
            Record::Answer { message, usage, .. } => self.fold_answer(message, usage),
            Record::Intent { call, summary, actions, proposal, changes, .. } => {
                let open = |entry: &&mut Call| !entry.announced && entry.call.tool_call_id == call.tool_call_id;
                if let Some(entry) = self.calls_mut().iter_mut().find(open) {
                    entry.announced = true;
                    entry.summary = summary;
                    entry.touches = actions.iter().filter_map(super::calls::touched).collect();
                    entry.proposal = proposal;
                    entry.changes = changes;
                }
            }
            Record::ApprovalRequested { .. } => self.counters.approvals += 1,
            Record::Decided { tool_call_id, decision: Decision::Denied { reason }, .. } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    let words = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                    call.refuse(ErrorCode::UserDenied, format!("the person said no{words}"));
                }
            }
            Record::Started { tool_call_id, .. } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.state = CallState::Running;
                }
            }
            Record::Finished { result, .. } => {
                if let Some(call) = self.open_call(&result.tool_call_id.clone()) {
                    call.state = CallState::Done(result);
                }
            }
            Record::Resolved { tool_call_id, resolution: Resolution::Rerun } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.state = CallState::Planning;
                }
            }
            Record::StepCompleted { step_count, message, .. } => {
                self.count_message(&message);
                self.thread.push(message);
                if let Some(task) = &mut self.task {
                    task.step_count = step_count;
                    task.phase = Phase::Paused;
                }
            }
            Record::TaskEnded { end, .. } => {
                self.ended = self.task.take().filter(|_| end != TaskEnd::Completed);
            }
            Record::Continued => {
                if self.task.is_none() {
                    self.task = self.ended.take().map(|task| Task { step_count: 0, ..task });
                }
            }
            Record::PartialAnswer { .. }
            | Record::AnswerDiscarded { .. }
            | Record::Decided { decision: Decision::Approved | Decision::ApprovedForSession, .. }
            | Record::Resolved { resolution: Resolution::Skip | Resolution::TellModel, .. }
            | Record::Paused { .. } => {}
        }
    }

    fn fold_task(&mut self, prompt: Message, max_steps: u32) {
        self.counters.tasks += 1;
        self.count_message(&prompt);
        self.ended = None;
        self.task = Some(Task {
            id: TaskId::new(prompt.task_id.as_str()),
            step_id: None,
            step_count: 0,
            max_steps,
            usage: Usage::default(),
            phase: Phase::Paused,
            cancelling: false,
        });
        self.thread.push(prompt);
    }

    fn fold_answer(&mut self, message: Message, usage: Usage) {
        self.count_message(&message);
        self.usage += usage;
        let calls: Vec<Call> = message.tool_calls().map(|call| Call::new(call.clone(), CallState::Planning)).collect();
        if let Some(task) = &mut self.task {
            task.usage += usage;
            if !calls.is_empty() {
                task.phase = Phase::Working(calls);
            }
        }
        self.thread.push(message);
    }

    /// Message ids are counted; a restored session counts on.
    fn count_message(&mut self, message: &Message) {
        let number = message.message_id.as_str().rsplit('_').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        self.counters.messages = self.counters.messages.max(number);
    }

    fn calls_mut(&mut self) -> &mut [Call] {
        match self.task.as_mut().map(|task| &mut task.phase) {
            Some(Phase::Working(calls)) => calls,
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Paused) | None => &mut [],
        }
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls_mut().iter_mut().find(|call| !call.is_done() && call.call.tool_call_id == *id)
    }

    /// Settles what the process left open when it ended.
    fn take_up(&mut self, failure: Failure, unfinished: Unfinished, at: Moment) {
        if self.task.is_none() {
            return;
        }
        if unfinished == Unfinished::Replace {
            self.close_calls();
            if let Some(task) = &self.task {
                let (task_id, step_count) = (task.id.clone(), task.step_count);
                self.note(Record::TaskEnded { task_id, step_count, end: TaskEnd::Cancelled });
            }
            self.commit(Durability::Process);
            self.task = None;
            return;
        }
        if !self.calls_mut().is_empty() && !self.calls_mut().iter().all(Call::is_done) {
            return self.take_up_calls(at);
        }
        self.close_calls();
        match unfinished {
            Unfinished::GoOn => self.go_on(at),
            Unfinished::Wait | Unfinished::Replace => {
                self.commit(Durability::Process);
                self.emit(EventKind::SessionPaused { failure });
            }
        }
    }

    /// Ends the step with what its calls came to, so that no call in the thread is without a result.
    fn close_calls(&mut self) {
        let open: Vec<Part> = self
            .calls_mut()
            .iter_mut()
            .filter_map(|call| {
                if !call.is_done() {
                    super::calls::outcome_unknown(call);
                }
                super::calls::done(call).map(Part::ToolResult)
            })
            .collect();
        if open.is_empty() {
            return;
        }
        let now = self.thread.last().map_or(jiff::Timestamp::UNIX_EPOCH, |message| message.timestamp);
        let Some(message) = self.message(Role::Tool, open, Moment { now, jitter: 0.0 }) else { return };
        self.thread.push(message.clone());
        if let Some(task) = &mut self.task {
            task.step_count += 1;
            task.phase = Phase::Paused;
            let (task_id, step_count) = (task.id.clone(), task.step_count);
            if let Some(step_id) = task.step_id.clone() {
                self.note(Record::StepCompleted { task_id, step_id, step_count, message });
            }
        }
    }

    /// A call that ran and could change things is put before the person; all others are planned and judged again.
    fn take_up_calls(&mut self, at: Moment) {
        let mut calls = match self.task.as_mut().map(|task| &mut task.phase) {
            Some(Phase::Working(calls)) => std::mem::take(calls),
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Paused) | None => return,
        };
        let mut plans = Vec::new();
        for (index, call) in calls.iter_mut().enumerate() {
            match &call.state {
                CallState::Done(_) => {}
                CallState::Running if call.changes => self.interrupted(call),
                CallState::Running | CallState::Planning | CallState::Deferred | CallState::Asking(_) | CallState::Unknown => {
                    if let Arguments::Malformed(_) = call.call.arguments {
                        call.refuse(ErrorCode::InvalidRequest, "the arguments are not a JSON object, nothing was run");
                        self.report(call, 0);
                    } else {
                        call.state = CallState::Planning;
                        plans.push((index, call.call.clone()));
                    }
                }
            }
        }
        if let Some(task) = &mut self.task {
            task.phase = Phase::Working(calls);
        }
        self.commit(Durability::Process);
        if !plans.is_empty() {
            self.out.push(Effect::Plan(plans));
        }
        self.advance(at);
    }

    fn interrupted(&mut self, call: &mut Call) {
        if self.options.approver == Approver::Person {
            call.state = CallState::Unknown;
            self.emit(EventKind::ToolInterrupted {
                tool_call_id: call.call.tool_call_id.clone(),
                tool_name: call.call.tool_name.clone(),
                summary: call.summary.clone(),
                known: "interrupted: outcome unknown; it was running when aye ended".to_owned(),
            });
        } else {
            super::calls::outcome_unknown(call);
            self.report(call, 0);
        }
    }
}
