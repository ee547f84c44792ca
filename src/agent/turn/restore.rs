//! A session from its journal: the fold of the records, and what a crash left open.

use super::opened::Held;
use super::{Approver, Call, CallState, Effect, Machine, Moment, Phase, Task};
use crate::ports::{Durability, Record, TaskEnd};
use crate::protocol::{
    Arguments, CallId, Decision, ErrorCode, EventKind, Failure, FailureKind, Message, MessageId, Part, Resolution, Role,
    SessionStatus, TaskId, TaskStatus, ToolResult, Usage,
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
    /// Takes up the session the records tell of; call it once, on a new machine. `settled` is what is known by now of
    /// calls that were under way when the process ended.
    pub fn restore(&mut self, records: Vec<Record>, settled: Vec<ToolResult>, unfinished: Unfinished, at: Moment) -> Vec<Effect> {
        self.enter_session(SessionStatus::Running);
        let mut failure = None;
        for record in records {
            if let Record::Paused { failure: why } = &record {
                failure = Some(why.clone());
            } else if matches!(record, Record::Continued | Record::TaskStarted { .. } | Record::TaskEnded { .. }) {
                failure = None;
            }
            self.fold(record, at);
        }
        let failure = failure.unwrap_or_else(|| {
            Failure::new(
                FailureKind::Internal,
                "aye ended in the middle of this task; all that was said and done is here",
                "/continue goes on, or say something else",
            )
        });
        self.settle_commits(settled);
        self.spending.paused = failure.kind == FailureKind::BudgetExceeded;
        self.know_warnings();
        self.note_model_of_this_run();
        self.take_up(failure, unfinished, at);
        std::mem::take(&mut self.out)
    }

    fn fold(&mut self, record: Record, at: Moment) {
        if said_by(&record).is_some_and(|message| self.thread.said_lately(&message.message_id)) {
            // Written twice; it was said once.
            return;
        }
        match record {
            Record::TaskStarted { prompt, max_steps } => {
                self.mend(at);
                self.fold_task(prompt, max_steps);
            }
            Record::Queue { prompts } => {
                self.fold_queue(prompts);
            }
            Record::StepStarted { step_id, step_count, .. } => {
                self.mend(at);
                self.counters.steps += 1;
                if let Some(task) = &mut self.task {
                    task.step_id = Some(step_id);
                    task.step_count = step_count.saturating_sub(1);
                    task.phase = Phase::Paused;
                }
            }
            Record::Answer { message, usage, cost_usd, .. } => {
                self.mend(at);
                self.fold_answer(message, usage, cost_usd);
            }
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
            Record::ApprovalRequested { approval } => {
                self.counters.approvals += 1;
                if approval.effects.is_some()
                    && let Some(call) = self.open_call(&approval.tool_call_id)
                {
                    call.proposal = Some(approval.proposal);
                }
            }
            Record::Decided { tool_call_id, decision: Decision::Denied { reason }, .. } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    let words = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                    call.refuse(ErrorCode::UserDenied, format!("the person said no{words}"));
                }
            }
            Record::PreviewStarted { tool_call_id } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.previewed = true;
                }
            }
            Record::PreviewDropped { tool_call_id } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    (call.previewed, call.proposal) = (false, None);
                }
            }
            Record::Previewed { tool_call_id, proposal } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.proposal = proposal;
                }
            }
            Record::Started { tool_call_id, .. } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.runs();
                    let row = call.row;
                    self.let_pass(row);
                }
            }
            Record::KeptFrom { result, latency_ms } => {
                if let Some(call) = self.open_call(&result.tool_call_id) {
                    (call.previewed, call.state) = (false, CallState::Planning);
                    call.held = Some(Held::new(result, latency_ms));
                }
            }
            Record::Finished { result, .. } => {
                // A denial is folded already, in other words than the model was told.
                let of_it = |call: &&mut Call| call.call.tool_call_id == result.tool_call_id;
                if let Some(call) = self.calls_mut().iter_mut().find(of_it) {
                    call.state = CallState::Done(result);
                }
            }
            Record::Resolved { tool_call_id, resolution: Resolution::Rerun } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    (call.previewed, call.state) = (false, CallState::Planning);
                }
            }
            Record::StepCompleted { step_count, message, .. } => {
                self.fold_results(message, at);
                if let Some(task) = &mut self.task {
                    task.step_count = step_count;
                    task.phase = Phase::Paused;
                }
            }
            Record::Steered { message } => {
                self.mend(at);
                self.count_message(&message);
                self.thread.push(message);
            }
            Record::Stopping { .. } => {
                if let Some(task) = &mut self.task {
                    task.cancelling = true;
                }
            }
            Record::Compacted { until, message, verbatim, usage, cost_usd, .. } => {
                self.mend(at);
                self.count_message(&message);
                self.count(usage, cost_usd);
                self.replace_by_summary(&until, &verbatim, message);
            }
            Record::CompactionUndone => self.take_summary_back(),
            Record::TaskEnded { end, .. } => {
                self.mend(at);
                self.note_blocked(&end);
                if self.task.is_some() {
                    self.ended = self.task.take().filter(|_| end != TaskEnd::Completed);
                }
            }
            Record::Continued => {
                self.tell_of_block();
                if let Some(task) = &mut self.task {
                    task.cancelling = false;
                } else {
                    let max_steps = self.options.max_steps;
                    self.task =
                        self.ended.take().map(|task| Task { step_count: 0, max_steps: task.max_steps.max(max_steps), ..task });
                }
            }
            Record::Wasted { usage, cost_usd, .. } => self.count(usage, cost_usd),
            Record::ModelChosen { model, effort } => self.fold_choice(model, effort),
            Record::BudgetSet { limit } => self.fold_budget(limit),
            Record::Unreadable => self.fold_unreadable(),
            Record::PartialAnswer { .. }
            | Record::AnswerDiscarded { .. }
            | Record::Decided { decision: Decision::Approved | Decision::ApprovedAlways { .. } | Decision::Previewed, .. }
            | Record::RuleSaved { .. }
            | Record::Refused { .. }
            | Record::RuleRemoved { .. }
            | Record::Resolved { resolution: Resolution::Skip | Resolution::TellModel, .. }
            | Record::PolicyInForce { .. }
            | Record::Paused { .. } => {}
        }
    }

    /// The answer to a prompt that cannot be read: a marker stands for it, because a thread begins with a prompt.
    fn fold_lost_prompt(&mut self, answer: &Message) {
        let content = vec![Part::Text { text: "[This version cannot read what was said here.]".to_owned() }];
        let message_id = MessageId::new(format!("{}+", answer.message_id));
        let prompt = Message { message_id, role: Role::User, content, step_id: None, ..answer.clone() };
        self.fold_task(prompt, self.options.max_steps);
        if let Some(task) = &mut self.task {
            task.step_id.clone_from(&answer.step_id);
        }
    }

    fn fold_task(&mut self, prompt: Message, max_steps: u32) {
        self.counters.tasks += 1;
        self.count_message(&prompt);
        self.count_anew();
        self.ended = None;
        let prompt = self.told_of_block(prompt);
        self.task = Some(Task {
            id: TaskId::new(prompt.task_id.as_str()),
            step_id: None,
            step_count: 0,
            max_steps,
            usage: Usage::default(),
            cost_usd: None,
            phase: Phase::Paused,
            cancelling: false,
            guard: super::loop_guard::LoopGuard::default(),
        });
        self.thread.push(prompt);
    }

    fn fold_answer(&mut self, message: Message, usage: Usage, cost_usd: Option<f64>) {
        if self.task.is_none() {
            self.fold_lost_prompt(&message);
        }
        self.count_message(&message);
        self.refit(usage);
        self.count(usage, cost_usd);
        let calls: Vec<_> = message.tool_calls().cloned().collect();
        if let Some(task) = &mut self.task {
            let rows = task.guard.count(&calls);
            let calls = calls.into_iter().zip(rows);
            let calls: Vec<Call> = calls.map(|(call, row)| Call { row, ..Call::new(call, CallState::Planning) }).collect();
            if !calls.is_empty() {
                task.phase = Phase::Working(calls);
            }
        }
        if !message.content.is_empty() {
            self.thread.push(message);
        }
    }

    /// What follows an answer. Where a record is missing, its calls get their results all the same, and only its calls.
    fn fold_results(&mut self, message: Message, at: Moment) {
        self.count_message(&message);
        if message.role != Role::Tool {
            self.mend(at);
            return self.thread.push(message);
        }
        for part in &message.content {
            if let Part::ToolResult(result) = part
                && let Some(call) = self.calls_mut().iter_mut().find(|call| call.call.tool_call_id == result.tool_call_id)
            {
                call.state = CallState::Done(result.clone());
            }
        }
        let content = self.results();
        if !content.is_empty() {
            self.thread.push(Message { content, ..message });
        }
    }

    /// Closes a step whose end cannot be read: no provider takes a call without its result.
    fn mend(&mut self, at: Moment) {
        let results = self.results();
        if results.is_empty() {
            return;
        }
        if let Some(message) = self.message(Role::Tool, results, at) {
            self.thread.push(message);
        }
        if let Some(task) = &mut self.task {
            task.phase = Phase::Paused;
        }
    }

    /// The results of the open step's calls, in their order; of what has none the outcome is unknown.
    fn results(&mut self) -> Vec<Part> {
        let count = self.calls_mut().len();
        let most_bytes = self.result_bytes(count);
        let calls = self.calls_mut().iter_mut();
        calls
            .filter_map(|call| {
                if !call.is_done() {
                    super::calls::outcome_unknown(call);
                }
                super::calls::done(call).map(|result| Part::ToolResult(result.fitted(most_bytes)))
            })
            .collect()
    }

    /// It may have said that a call began, so no open call may run again by itself.
    fn fold_unreadable(&mut self) {
        for call in self.calls_mut() {
            if !call.is_done() {
                call.runs();
                call.changes = true;
            }
        }
    }

    /// Message ids are counted; a restored session counts on.
    fn count_message(&mut self, message: &Message) {
        let number = message.message_id.as_str().rsplit('_').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        self.counters.messages = self.counters.messages.max(number);
    }

    fn calls_mut(&mut self) -> &mut [Call] {
        match self.task.as_mut().map(|task| &mut task.phase) {
            Some(Phase::Working(calls)) => calls,
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) | None => &mut [],
        }
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls_mut().iter_mut().find(|call| !call.is_done() && call.call.tool_call_id == *id)
    }

    /// Settles what the process left open when it ended.
    fn take_up(&mut self, failure: Failure, unfinished: Unfinished, at: Moment) {
        self.end_what_was_answered();
        if !self.queue.is_empty() {
            self.tell_queue();
        }
        if self.task.is_none() {
            return self.take_up_nothing(unfinished, at);
        }
        if unfinished == Unfinished::Replace {
            self.close_calls(at);
            return self.end_unsaid(TaskEnd::Cancelled);
        }
        if self.task.as_ref().is_some_and(|task| task.cancelling) {
            return self.end_stopped(unfinished, at);
        }
        self.enter(TaskStatus::TaskRunning);
        if !self.calls_mut().is_empty() && !self.calls_mut().iter().all(Call::is_done) {
            return self.take_up_calls(at);
        }
        self.close_calls(at);
        match unfinished {
            Unfinished::GoOn => self.go_on(at),
            Unfinished::Wait | Unfinished::Replace => {
                self.commit(Durability::Process);
                self.emit(EventKind::SessionPaused { failure });
                self.enter_session(SessionStatus::Paused);
            }
        }
    }

    /// The person stopped it before the process ended: it does not go on by itself, but is taken up again as one that was stopped.
    fn end_stopped(&mut self, unfinished: Unfinished, at: Moment) {
        self.close_calls(at);
        let stopped = self.task.take();
        if let Some(task) = &stopped {
            let (task_id, step_count) = (task.id.clone(), task.step_count);
            self.note(Record::TaskEnded { task_id, step_count, end: TaskEnd::Cancelled });
        }
        self.commit(Durability::Process);
        self.ended = stopped;
        if unfinished == Unfinished::Wait {
            self.notice("the task was being stopped when aye ended, so it ended there; /continue takes it up again");
        }
        self.take_up_nothing(unfinished, at);
    }

    /// An answer in words is the end of its task, also where the record that says so cannot be read.
    fn end_what_was_answered(&mut self) {
        let answered = self.thread.last().is_some_and(|message| message.role == Role::Assistant);
        if answered && self.task.is_some() && self.calls_mut().is_empty() {
            self.end_unsaid(TaskEnd::Completed);
        }
    }

    /// Ends a task of the process before; who waits for the end of a task waits for one of this process.
    fn end_unsaid(&mut self, end: TaskEnd) {
        let Some(task) = self.task.take() else { return };
        self.note(Record::TaskEnded { task_id: task.id, step_count: task.step_count, end });
        self.commit(Durability::Process);
    }

    /// No task is open: the last one ended, or what waited behind it had not begun.
    fn take_up_nothing(&mut self, unfinished: Unfinished, at: Moment) {
        let nothing = self.ended.is_none() && self.queue.is_empty();
        match unfinished {
            Unfinished::GoOn => {
                self.go_on(at);
                if nothing {
                    self.out.push(Effect::End);
                }
            }
            Unfinished::Wait if self.ended.is_none() && !nothing => {
                let message = format!("{} prompts wait; /continue begins with the first", self.queue.len());
                self.emit(EventKind::Notice { message });
            }
            Unfinished::Wait | Unfinished::Replace => {}
        }
    }

    /// Ends the step with what its calls came to, so that no call in the thread is without a result.
    fn close_calls(&mut self, at: Moment) {
        self.with_calls(|machine, calls| {
            for call in calls.iter_mut().filter(|call| !call.is_done()) {
                machine.announce(call, &[]);
                if call.changes && matches!(call.state, CallState::Running) {
                    super::calls::outcome_unknown(call);
                } else {
                    call.refuse(ErrorCode::Cancelled, "the task ended before this call ran");
                }
                machine.report(call, 0);
            }
        });
        let results = self.results();
        if results.is_empty() {
            return;
        }
        let Some(message) = self.message(Role::Tool, results, at) else { return };
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
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) | None => return,
        };
        self.enter(TaskStatus::CheckingPolicy);
        let (mut plans, mut reopened) = (Vec::new(), Vec::new());
        for (index, call) in calls.iter_mut().enumerate() {
            match &call.state {
                CallState::Done(_) => {}
                CallState::Running if call.changes => self.interrupted(call),
                CallState::Running
                | CallState::Planning
                | CallState::Deferred
                | CallState::Asking(_)
                | CallState::Previewing(_)
                | CallState::Unknown => {
                    if call.previewed {
                        self.drop_preview(call);
                        let message = format!("the preview of `{}` was dropped when aye ended", call.summary);
                        self.notice(message);
                    }
                    if let Arguments::Malformed(_) = call.call.arguments {
                        self.announce(call, &[]);
                        call.refuse(ErrorCode::InvalidRequest, "the arguments are not a JSON object, nothing was run");
                        self.report(call, 0);
                    } else if call.held.is_some() && self.options.approver == Approver::Person {
                        reopened.push(index);
                    } else if call.held.as_ref().is_some_and(Held::waits) {
                        call.refuse(ErrorCode::NoApprover, "no one to ask");
                        self.report(call, 0);
                    } else {
                        call.state = CallState::Planning;
                        plans.push((index, call.call.clone()));
                    }
                }
            }
        }
        self.commit(Durability::Process);
        if !plans.is_empty() {
            self.out.push(Effect::Plan(plans));
        }
        for index in reopened {
            self.plan_again(&mut calls[index], index);
        }
        if let Some(task) = &mut self.task {
            task.phase = Phase::Working(calls);
        }
        self.advance(at);
    }

    fn interrupted(&mut self, call: &mut Call) {
        self.announce(call, &[]);
        if self.options.approver == Approver::Person {
            call.state = CallState::Unknown;
            self.emit(EventKind::ToolInterrupted {
                tool_call_id: call.call.tool_call_id.clone(),
                tool_name: call.call.tool_name.clone(),
                summary: call.summary.clone(),
                known: format!("interrupted: outcome unknown; it was running when aye ended{}", super::calls::leftovers(call)),
            });
        } else {
            super::calls::outcome_unknown(call);
            self.report(call, 0);
        }
    }
}

/// What a record adds to the thread.
fn said_by(record: &Record) -> Option<&Message> {
    match record {
        Record::TaskStarted { prompt: message, .. }
        | Record::Answer { message, .. }
        | Record::Steered { message }
        | Record::StepCompleted { message, .. } => Some(message),
        _ => None,
    }
}
