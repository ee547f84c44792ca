//! Restoring a session from its journal, by applying the changes of its records.

use super::amend::Amended;
use super::loop_guard::RepeatCount;
use super::sandbox_escalation::BlockedRun;
use super::{Call, CallState, Effect, InputTime, Phase, Task, TurnMachine};
use crate::ports::{Edited, Record, TaskEnd};
use crate::protocol::{
    CallId, Failure, FailureKind, Message, MessageId, Part, Role, SessionStatus, StopReason, TaskId, ToolResult, Usage,
};
use crate::session::{Applied, CallChange, CallStage, Change, OpenCall, SessionState, Spent, Totals};

/// Handling of a task that was not finished when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// Pause the task and ask its approvals again; the user decides.
    Wait,
    /// Continue the task at once.
    GoOn,
    /// End the task, because another prompt replaces it.
    Replace,
}

impl TurnMachine {
    /// Restores the session from its records; call this once, on a new machine. `settled` contains the known outcomes of calls that were
    /// running when the process ended.
    pub fn restore(
        &mut self,
        records: Vec<Record>,
        settled: Vec<ToolResult>,
        unfinished: Unfinished,
        at: InputTime,
    ) -> Vec<Effect> {
        self.enter_session(SessionStatus::Running);
        let (mut state, mut rows) = (SessionState::default(), Vec::new());
        for record in records {
            let Applied { closed, change, .. } = state.apply(&record);
            self.restore_change(change, (restored(closed, &rows), state.calls(), &mut rows), at);
        }
        // A step with a response and no calls is complete, although no record says so.
        if let (Some(task), Some(progress)) = (&mut self.task, state.task())
            && task.id == progress.task_id
        {
            task.step_count = progress.step_count;
        }
        self.restore_calls(restored(state.take_calls(), &rows));
        self.count_what_was_lost(state.uncounted_bytes());
        self.tell_of_lost_summary(state.is_compacting);
        // The hint on how to continue is added by the code that resumes it.
        let failure = state.pause.filter(|why| *why != super::state::left_behind()).unwrap_or_else(|| {
            Failure::new(
                FailureKind::Internal,
                "aye exited during this task; the conversation so far is saved",
                "continue it, or send another prompt",
            )
        });
        self.settle_commits(settled);
        self.settle_by_the_disk();
        self.budgets.paused = failure.kind == FailureKind::BudgetExceeded;
        // The previous process already warned the user about these.
        self.nearly_used();
        self.note_model_of_this_run();
        self.take_up(failure, unfinished, at);
        self.effects()
    }

    /// Restores one change of the session. `closed`: the calls of a step that ends here; `open`: those of the step that is open after it;
    /// `rows`: how often each call of that step was repeated.
    fn restore_change(
        &mut self,
        change: Change<'_>,
        (closed, open, rows): (Vec<Call>, &[OpenCall], &mut Vec<RepeatCount>),
        at: InputTime,
    ) {
        match change {
            Change::StepCompleted { message, step_count } => return self.restore_step(message, step_count, closed, at),
            Change::UserCommandEnded { shared, .. } => return self.fold_own_ended(shared.map(str::to_owned)),
            _ => self.mend(closed, at),
        }
        match change {
            Change::TaskStarted { prompt, max_steps } => self.fold_task(prompt.clone(), max_steps),
            Change::StepStarted { step_id, step_count, .. } => {
                self.counters.steps += 1;
                self.rewinds.count_step();
                if let Some(task) = &mut self.task {
                    task.step_id = Some(step_id.clone());
                    task.step_count = step_count.saturating_sub(1);
                    task.phase = Phase::Paused;
                }
            }
            Change::Answered { message, stop_reason, spent, .. } => *rows = self.fold_answer(message, stop_reason, spent),
            Change::Call { change: CallChange::Asked { .. }, .. } => self.counters.approvals += 1,
            Change::Call { tool_call_id, change: CallChange::Started { .. } } => self.restore_start(tool_call_id, open, rows),
            Change::Steered { message } => {
                self.count_message(message);
                self.thread.push(message.clone());
            }
            Change::UserCommandStarted { task_id, step_id, call, line, shared } => {
                *rows = vec![RepeatCount::default()];
                self.fold_own((task_id.clone(), step_id.clone()), call.clone(), line, shared);
            }
            Change::TaskEnded { .. } | Change::Stopping | Change::Continued | Change::Imported { .. } => {
                self.restore_task_change(change);
            }
            Change::RewindStarted { rewind_id, target, scope, overwrite } => {
                // A rewind starts only while no task runs.
                self.task = None;
                self.rewinds.restore_start(rewind_id, (target, scope), overwrite.to_vec(), &self.thread);
            }
            Change::Rewound { rewind_id, from, rewound, .. } => {
                self.task = None;
                let effect = self.rewinds.restore_end(rewind_id, from, rewound, &mut self.thread);
                self.adopt_rewind(effect);
            }
            Change::Spent { spent, .. } => self.count(spent.usage, spent.cost_usd),
            Change::Compacted { until, message, verbatim, spent, .. } => {
                self.count_message(message);
                self.count(spent.usage, spent.cost_usd);
                self.replace_by_summary(until, verbatim, message.clone());
            }
            Change::CompactionUndone { .. } => self.take_summary_back(),
            Change::Truncated { tokens, .. } => self.fit_again(tokens),
            Change::QueueChanged { prompts } => self.queue.restore(prompts.to_vec()),
            Change::ModelChosen { choice, .. } => self.fold_choice(choice.model, choice.effort),
            Change::BudgetSet { limit } => self.fold_budget(*limit),
            Change::None
            | Change::Repeated
            | Change::Call { .. }
            | Change::StepCompleted { .. }
            | Change::UserCommandEnded { .. }
            | Change::Paused { .. }
            | Change::PolicyChanged { .. }
            | Change::Unreadable => {}
        }
    }

    fn restore_task_change(&mut self, change: Change<'_>) {
        match change {
            Change::TaskEnded { end, .. } => {
                self.note_blocked(end);
                self.note_done();
                if self.task.is_some() {
                    self.ended = self.task.take().filter(|_| *end != TaskEnd::Completed);
                }
            }
            Change::Stopping => {
                if let Some(task) = &mut self.task {
                    task.cancelling = true;
                }
            }
            Change::Continued => {
                self.tell_of_continuing();
                self.tell_of_block();
                if let Some(task) = &mut self.task {
                    task.cancelling = false;
                } else {
                    let max_steps = self.options.max_steps;
                    self.task = self.ended.take().map(|task| task.with_steps(max_steps));
                }
                self.tell_of_own();
            }
            Change::Imported { step_count } => {
                self.counters.steps = self.counters.steps.max(step_count);
                if let Some(task) = &mut self.task {
                    task.step_count = step_count;
                }
            }
            _ => {}
        }
    }

    /// Restores the start of a call for the rewind points and the repetition count.
    fn restore_start(&mut self, id: &CallId, open: &[OpenCall], rows: &[RepeatCount]) {
        let started = |call: &OpenCall| call.tool_call_id == *id && call.is_running() && call.call.is_some();
        let Some(place) = open.iter().position(started) else { return };
        let runs = open[place].edited.as_ref().or(open[place].planned.as_ref());
        let ran = runs.map(|Edited { summary, actions }| super::side_effects::ran(actions, summary, open[place].changes));
        self.rewinds.add_side_effects(ran.unwrap_or_default());
        if let Some(task) = &mut self.task {
            task.guard.allow(rows.get(place).copied().unwrap_or_default());
        }
    }

    /// Restores the calls of the step that is open at the end of the journal.
    fn restore_calls(&mut self, calls: Vec<Call>) {
        if let Some(task) = self.task.as_mut().filter(|_| !calls.is_empty()) {
            task.phase = Phase::Working(calls);
        }
    }

    /// Adds a marker for a prompt that cannot be read, because a thread has to begin with a prompt.
    fn fold_lost_prompt(&mut self, answer: &Message) {
        let content = vec![Part::Text { text: "[This version of aye cannot read this message.]".to_owned() }];
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
        self.rewinds.add_point(&prompt, self.counters.tasks, u64::from(self.counters.steps) + 1);
        let prompt = self.told_of_block(prompt);
        let prompt = self.rewinds.with_note(prompt);
        let prompt = self.told_of_own(prompt);
        self.task = Some(Task {
            id: TaskId::new(prompt.task_id.as_str()),
            step_id: None,
            step_count: 0,
            max_steps,
            totals: Totals::default(),
            phase: Phase::Paused,
            parts: super::Parts::default(),
            cancelling: false,
            guard: super::loop_guard::LoopGuard::default(),
            own: None,
        });
        self.thread.push(prompt);
    }

    /// Restores a response. Returns how often each of its calls was repeated.
    fn fold_answer(&mut self, message: &Message, stop_reason: StopReason, spent: Spent) -> Vec<RepeatCount> {
        if self.task.is_none() {
            self.fold_lost_prompt(message);
        }
        self.count_message(message);
        let is_interrupted = stop_reason == StopReason::Cancelled;
        // The provider reported no usage for an interrupted response.
        self.refit(if is_interrupted { Usage::default() } else { spent.usage });
        self.count(spent.usage, spent.cost_usd);
        let mut rows = Vec::new();
        if let Some(task) = &mut self.task {
            task.cancelling |= is_interrupted;
            task.parts.note(message, stop_reason);
            let calls: Vec<_> = message.tool_calls().cloned().collect();
            rows = task.guard.count(&calls);
        }
        if !message.content.is_empty() {
            self.thread.push(message.clone());
        }
        rows
    }

    /// Restores the end of a step. If a record is missing, exactly the calls of the step still get results.
    fn restore_step(&mut self, message: &Message, step_count: u32, mut calls: Vec<Call>, at: InputTime) {
        self.count_message(message);
        if message.role == Role::Tool {
            let most_bytes = self.options.result_bytes(calls.len());
            let content = results_of(&mut calls, most_bytes);
            if !content.is_empty() {
                self.restore_results(Message { content, ..message.clone() });
            }
        } else {
            self.mend(calls, at);
            self.thread.push(message.clone());
        }
        if let Some(task) = &mut self.task {
            task.step_count = step_count;
            task.phase = Phase::Paused;
        }
    }

    fn restore_results(&mut self, message: Message) {
        self.note_outcomes(&message);
        self.thread.push(message);
    }

    /// Closes a step whose end cannot be read, because providers refuse a call without a result.
    fn mend(&mut self, mut calls: Vec<Call>, at: InputTime) {
        if calls.is_empty() || self.drop_own() {
            return;
        }
        let most_bytes = self.options.result_bytes(calls.len());
        let results = results_of(&mut calls, most_bytes);
        if let Some(message) = self.message(Role::Tool, results, at) {
            self.restore_results(message);
        }
        if let Some(task) = &mut self.task {
            task.phase = Phase::Paused;
        }
    }

    /// Returns the results of the open step's calls in order; the outcome of a call without one is unknown.
    pub(super) fn results(&mut self) -> Vec<Part> {
        let count = self.calls_mut().len();
        let most_bytes = self.options.result_bytes(count);
        results_of(self.calls_mut(), most_bytes)
    }

    /// Continues the numbering of message IDs.
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
}

fn results_of(calls: &mut [Call], most_bytes: usize) -> Vec<Part> {
    let result = |call: &mut Call| {
        if !call.is_done() {
            super::tool_calls::outcome_unknown(call);
        }
        super::tool_calls::done(call).map(|result| Part::ToolResult(result.fitted(most_bytes)))
    };
    calls.iter_mut().filter_map(result).collect()
}

/// Restores the calls of a step. A call that no response requested is left out.
fn restored(calls: Vec<OpenCall>, rows: &[RepeatCount]) -> Vec<Call> {
    let rows = rows.iter().copied().chain(std::iter::repeat(RepeatCount::default()));
    calls.into_iter().zip(rows).filter_map(|(call, row)| Call::restored(call, row)).collect()
}

impl Call {
    fn restored(open: OpenCall, row: RepeatCount) -> Option<Self> {
        let mut call = Self { row, ..Self::new(open.call?, CallState::Planning) };
        call.changes = open.changes;
        if let Some(planned) = open.planned {
            call.order = super::call_order::Order::of_actions(planned.actions.iter(), open.changes);
            call.plan_as(&planned);
            call.announced = Some(planned);
        }
        if let Some(edited) = &open.edited {
            call.plan_as(edited);
        }
        call.proposal = open.proposal;
        call.previewed = open.previewed;
        call.layered = open.layered;
        call.amended = Amended {
            by: open.amendments,
            told: open.told,
            renewed: open.renewed,
            began: open.runs_edited,
            ..Amended::default()
        };
        call.held = open.first_run.map(|first| {
            let mut held = BlockedRun::new(first.result, first.latency_ms);
            if first.runs_again {
                held.runs_again();
            }
            held
        });
        match (open.result, open.denied) {
            (Some(result), _) => call.state = CallState::Done(result),
            (None, Some(denial)) => {
                let (code, message) = super::approval::denial(denial.reason.as_deref());
                call.refuse(code, message);
            }
            (None, None) if open.stage == CallStage::Running => call.state = CallState::Running,
            (None, None) => {}
        }
        Some(call)
    }
}
