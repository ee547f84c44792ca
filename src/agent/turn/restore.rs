//! A session from its journal: the fold of the records.

use super::opened::Held;
use super::{Call, CallState, Effect, Machine, Moment, Phase, Task};
use crate::ports::{Edited, Record, TaskEnd};
use crate::protocol::{
    CallId, Decision, Failure, FailureKind, Message, MessageId, Part, Resolution, Role, SessionStatus, StopReason, TaskId,
    ToolResult, Usage,
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
                // How to continue is said by whoever resumes it.
                failure = Some(why.clone()).filter(|why| *why != super::state::left_behind());
            } else if matches!(record, Record::Continued | Record::TaskStarted { .. } | Record::TaskEnded { .. }) {
                failure = None;
            }
            self.fold_lost(&record);
            self.fold_summary_begun(&record);
            self.fold(record, at);
        }
        self.count_what_was_lost();
        self.tell_of_lost_summary();
        let failure = failure.unwrap_or_else(|| {
            Failure::new(
                FailureKind::Internal,
                "aye ended in the middle of this task; all that was said and done is here",
                "continue it, or say something else",
            )
        });
        self.settle_commits(settled);
        self.settle_by_the_disk();
        self.spending.paused = failure.kind == FailureKind::BudgetExceeded;
        self.know_warnings();
        self.note_model_of_this_run();
        self.take_up(failure, unfinished, at);
        self.effects()
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
                self.note_step();
                if let Some(task) = &mut self.task {
                    task.step_id = Some(step_id);
                    task.step_count = step_count.saturating_sub(1);
                    task.phase = Phase::Paused;
                }
            }
            Record::Answer { message, usage, cost_usd, stop_reason, .. } => {
                self.mend(at);
                self.fold_answer(message, stop_reason, usage, cost_usd);
            }
            Record::Intent { call, summary, actions, proposal, changes, .. } => {
                let open = |entry: &&mut Call| entry.announced.is_none() && entry.call.tool_call_id == call.tool_call_id;
                if let Some(entry) = self.calls_mut().iter_mut().find(open) {
                    entry.touches = actions.iter().filter_map(crate::ports::touched).collect();
                    entry.order = super::order::Order::of_actions(actions.iter(), changes);
                    entry.ran = super::ran::ran(&actions, &summary, changes);
                    entry.summary.clone_from(&summary);
                    entry.announced = Some(Edited { summary, actions });
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
                    let (code, message) = super::ask::denial(reason.as_deref());
                    call.refuse(code, message);
                }
            }
            Record::Decided { tool_call_id, decision: Decision::Amended { amendment }, .. } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.amended.by.push(amendment);
                }
            }
            Record::Renewed { tool_call_id } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.amended = super::amend::Amended { renewed: true, ..Default::default() };
                    call.state = CallState::Planning;
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
            Record::Started { tool_call_id, told, edited, .. } => {
                if let Some(call) = self.open_call(&tool_call_id) {
                    call.amended.told = told;
                    if let Some(edited) = &edited {
                        call.runs_as(edited);
                    }
                    call.runs();
                    let (row, ran) = (call.row, call.ran.clone());
                    self.note_what_ran(ran);
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
            Record::Truncated { tokens, .. } => {
                self.mend(at);
                self.fit_again(tokens);
            }
            Record::TaskEnded { end, .. } => {
                self.mend(at);
                self.note_blocked(&end);
                self.note_done();
                if self.task.is_some() {
                    self.ended = self.task.take().filter(|_| end != TaskEnd::Completed);
                }
            }
            Record::Imported { step_count, .. } => {
                self.counters.steps = self.counters.steps.max(step_count);
                if let Some(task) = &mut self.task {
                    task.step_count = step_count;
                }
            }
            Record::Continued => {
                self.tell_of_block();
                if let Some(task) = &mut self.task {
                    task.cancelling = false;
                } else {
                    let max_steps = self.options.max_steps;
                    self.task = self.ended.take().map(|task| Task { step_count: 0, max_steps, ..task });
                }
                self.tell_of_own();
            }
            Record::Wasted { usage, cost_usd, .. } | Record::Sampled { usage, cost_usd, .. } => self.count(usage, cost_usd),
            Record::ModelChosen { model, effort } => self.fold_choice(model, effort),
            Record::BudgetSet { limit } => self.fold_budget(limit),
            Record::RewindStarted { rewind_id, target, scope, overwrite } => {
                self.mend(at);
                self.fold_rewind_started(&rewind_id, &target, scope, overwrite);
            }
            Record::Rewound { rewind_id, from, rewound } => {
                self.mend(at);
                self.fold_rewound(&rewind_id, from.as_ref(), &rewound);
            }
            Record::OwnStarted { task_id, step_id, call, shared } => {
                self.mend(at);
                self.fold_own(task_id, step_id, call, shared);
            }
            Record::OwnEnded { said, .. } => self.fold_own_ended(said),
            Record::Unreadable => self.fold_unreadable(),
            Record::PartialAnswer { .. }
            | Record::AnswerDiscarded { .. }
            | Record::Decided {
                decision: Decision::Approved | Decision::ApprovedAlways { .. } | Decision::Previewed | Decision::Renewed,
                ..
            }
            | Record::RuleSaved { .. }
            | Record::Refused { .. }
            | Record::RuleRemoved { .. }
            | Record::Resolved { resolution: Resolution::Skip | Resolution::TellModel, .. }
            | Record::PolicyInForce { .. }
            | Record::CompactionStarted { .. }
            | Record::CompactionGivenUp
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
        self.note_point(&prompt);
        let prompt = self.told_of_block(prompt);
        let prompt = self.told_of_rewind(prompt);
        let prompt = self.told_of_own(prompt);
        self.task = Some(Task {
            id: TaskId::new(prompt.task_id.as_str()),
            step_id: None,
            step_count: 0,
            max_steps,
            usage: Usage::default(),
            cost_usd: None,
            phase: Phase::Paused,
            parts: super::Parts::default(),
            cancelling: false,
            guard: super::loop_guard::LoopGuard::default(),
            own: None,
        });
        self.thread.push(prompt);
    }

    fn fold_answer(&mut self, message: Message, stop_reason: StopReason, usage: Usage, cost_usd: Option<f64>) {
        if self.task.is_none() {
            self.fold_lost_prompt(&message);
        }
        self.count_message(&message);
        self.refit(usage);
        self.count(usage, cost_usd);
        let calls: Vec<_> = message.tool_calls().cloned().collect();
        if let Some(task) = &mut self.task {
            task.parts.note(&message, stop_reason);
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
            let message = Message { content, ..message };
            self.note_outcomes(&message);
            self.thread.push(message);
        }
    }

    /// Closes a step whose end cannot be read: no provider takes a call without its result.
    fn mend(&mut self, at: Moment) {
        if self.drop_own() {
            return;
        }
        let results = self.results();
        if results.is_empty() {
            return;
        }
        if let Some(message) = self.message(Role::Tool, results, at) {
            self.note_outcomes(&message);
            self.thread.push(message);
        }
        if let Some(task) = &mut self.task {
            task.phase = Phase::Paused;
        }
    }

    /// The results of the open step's calls, in their order; of what has none the outcome is unknown.
    pub(super) fn results(&mut self) -> Vec<Part> {
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

    pub(super) fn calls_mut(&mut self) -> &mut [Call] {
        match self.task.as_mut().map(|task| &mut task.phase) {
            Some(Phase::Working(calls)) => calls,
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) | None => &mut [],
        }
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls_mut().iter_mut().find(|call| !call.is_done() && call.call.tool_call_id == *id)
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
