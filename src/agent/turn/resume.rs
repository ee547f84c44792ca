//! Resumes a session. Its state is restored from the journal, and unfinished work is ended, continued or shown to the
//! user.

use super::call::Call;
use super::call_batch::CallBatch;
use super::call_recovery::restore_calls;
use super::calls::CallsInput;
use super::compaction::report_lost_summary;
use super::context_window::ContextInput;
use super::goals::GoalInput;
use super::grants::GrantInput;
use super::io::{Effect, InputTime};
use super::loop_guard::RepeatCount;
use super::machine::TurnMachine;
use super::models::ModelInput;
use super::options::ResumePolicy;
use super::prompts::PromptInput;
use super::rewind::{RewindInput, RewindOutput};
use super::side_effects;
use super::spending::SpendingInput;
use super::state::left_behind_failure;
use super::tasks::{Phase, TaskInput, TaskOutput};
use super::user_command::UserCommand;
use super::work_queue::WorkItem;
use crate::ports::{Durability, EditedCommand, Record, TaskEnd};
use crate::protocol::{
    CallId, EventKind, Failure, FailureKind, Message, MessageId, Part, Role, SessionStatus, StopReason, TaskId, TaskStatus,
    ToolResult, Usage,
};
use crate::session::{AppliedRecord, CallChange, Change, Expense, OpenCall, Payer, SessionState};

/// Restoring the session state.
impl TurnMachine {
    /// Restores a session from its records. Must be called once, on a new machine. `settled` contains the known
    /// outcomes of calls that were running when the process exited.
    pub(crate) fn restore(
        &mut self,
        records: Vec<Record>,
        settled: Vec<ToolResult>,
        unfinished: ResumePolicy,
        at: InputTime,
    ) -> Vec<Effect> {
        self.goals.set_time(at.now);
        self.report_task(TaskInput::SessionStatus(SessionStatus::Running));
        let (mut state, mut rows) = (SessionState::default(), Vec::new());
        for record in records {
            let AppliedRecord { closed, change, .. } = state.apply(&record);
            self.restore_change(change, (restore_calls(closed, &rows), state.calls(), &mut rows), at);
        }
        // A step whose response contains no calls is complete, even if no record says so.
        if let (Some(task), Some(progress)) = (self.tasks.current(), state.task())
            && *task.id() == progress.task_id
        {
            self.report_task(TaskInput::StepCountRestored(progress.step_count));
        }
        let calls = restore_calls(state.take_calls(), &rows);
        if !calls.is_empty() {
            self.report_task(TaskInput::Phase(Phase::Working(CallBatch::from_restored(calls))));
        }
        let lost_bytes = state.uncounted_bytes();
        if lost_bytes > 0 && self.tasks.current().is_some() {
            let input_tokens = self.requests.window().next_input_tokens(&self.cx);
            self.spend(SpendingInput::Lost { bytes: lost_bytes, input_tokens });
        }
        if state.is_compacting {
            report_lost_summary(&mut self.cx);
        }
        // The code that resumes the task adds a hint that explains how to continue.
        let failure = state.pause.filter(|why| *why != left_behind_failure()).unwrap_or_else(|| {
            Failure::new(
                FailureKind::Internal,
                "aye exited during this task; the conversation so far is saved",
                "continue it, or send another prompt",
            )
        });
        let known = std::mem::take(&mut self.known);
        self.report_calls(CallsInput::Recovered { settled, known }, at);
        self.report_spending(SpendingInput::Paused(failure.kind == FailureKind::BudgetExceeded));
        self.report_spending(SpendingInput::Restored);
        self.pass_to_models(ModelInput::Restored, at);
        // The planned steps of a completed task are obsolete.
        if self.tasks.current().is_some() || self.tasks.has_ended() {
            self.cx.set_planned_steps(std::mem::take(&mut state.planned_steps));
        }
        self.report_calls(CallsInput::MandateRestored(std::mem::take(&mut state.mandate)), at);
        self.resume(failure, unfinished, at);
        self.finish_work(at);
        self.cx.out.take()
    }

    /// Restores a single change to the session. `closed` contains the calls of a step that the change ends, `open`
    /// the calls of the step that is open afterwards, and `rows` the repetition counts of the latter.
    fn restore_change(
        &mut self,
        change: Change<'_>,
        (closed, open, rows): (Vec<Call>, &[OpenCall], &mut Vec<RepeatCount>),
        at: InputTime,
    ) {
        match change {
            Change::StepCompleted { message, step_count } => return self.restore_step(message, step_count, closed, at),
            Change::UserCommandEnded { shared, .. } => {
                self.command_outputs.add(shared.map(str::to_owned));
                return self.report_task(TaskInput::UserCommandEndRestored);
            }
            _ => self.repair_history(closed, at),
        }
        match change {
            Change::StepStarted { step_id, step_count, .. } => {
                self.cx.numbers.count_step();
                self.report_rewind(RewindInput::StepStarted);
                self.report_task(TaskInput::StepRestored(Some(step_id.clone())));
                self.report_task(TaskInput::StepCountRestored(step_count.saturating_sub(1)));
                self.report_task(TaskInput::Phase(Phase::Paused));
            }
            Change::Answered { message, stop_reason, spent, .. } => *rows = self.restore_answer(message, stop_reason, spent),
            Change::Call { change: CallChange::Asked { .. }, .. } => self.cx.numbers.count_approval(),
            Change::Call { tool_call_id, change: CallChange::Started { .. } } => self.restore_start(tool_call_id, open, rows),
            Change::Steered { message } => {
                self.cx.numbers.count_message(&message.message_id);
                self.pass_to_window(ContextInput::Added(message.clone()));
            }
            Change::UserCommandStarted { task_id, step_id, call, line, shared, check } => {
                *rows = vec![RepeatCount::default()];
                self.cx.numbers.count_task();
                self.cx.numbers.count_step();
                let command = UserCommand::from_journal(line, shared, check);
                let (id, step_id, call) = (task_id.clone(), step_id.clone(), call.clone());
                self.report_task(TaskInput::UserCommandRestored { id, step_id, call, command });
            }
            Change::Spent { spent, payer: Payer::Review } => self.report_spending(SpendingInput::ReviewRestored(spent)),
            Change::Spent { spent, .. } => self.count(spent),
            Change::QueueChanged { prompts } => self.pass_to_prompts(PromptInput::QueueRestored(prompts.to_vec()), at),
            Change::ModelChosen { choice, .. } => {
                self.pass_to_models(ModelInput::ChoiceRestored { name: choice.model, effort: choice.effort }, at);
            }
            Change::PriceAssumed { model, price } => self.pass_to_models(ModelInput::PriceRestored { model, price }, at),
            Change::GoalChanged { change } => self.report_to_goal(GoalInput::ChangeRestored(change)),
            Change::BudgetSet { limit } => {
                self.spend(SpendingInput::BudgetRestored(*limit));
            }
            Change::TaskStarted { .. }
            | Change::TaskEnded { .. }
            | Change::Stopping
            | Change::Continued
            | Change::Imported { .. } => self.restore_task_change(change),
            Change::RewindStarted { .. }
            | Change::Rewound { .. }
            | Change::Compacted { .. }
            | Change::CompactionUndone { .. }
            | Change::Truncated { .. } => self.restore_thread_change(change),
            Change::None
            | Change::Repeated
            | Change::Call { .. }
            | Change::StepCompleted { .. }
            | Change::UserCommandEnded { .. }
            | Change::Paused { .. }
            | Change::PolicyChanged { .. }
            | Change::Registered { .. }
            | Change::Unreadable => {}
        }
    }

    fn restore_task_change(&mut self, change: Change<'_>) {
        match change {
            Change::TaskStarted { prompt, max_steps } => self.restore_task(prompt.clone(), max_steps),
            Change::TaskEnded { end, .. } => {
                self.guardrail.on_task_end(end);
                self.report_to_goal(GoalInput::TaskEndRestored);
                self.report_spending(SpendingInput::TaskEnded);
                self.pass_to_tasks(TaskInput::EndRestored(end));
            }
            Change::Stopping => {
                self.pass_to_tasks(TaskInput::Cancelled);
            }
            Change::Continued => {
                self.report_to_goal(GoalInput::TaskContinued);
                self.add_continuation();
                if self.tasks.current().is_some() {
                    self.report_task(TaskInput::CancelWithdrawn);
                } else {
                    let max_steps = self.cx.options.max_steps;
                    self.pass_to_tasks(TaskInput::EndedContinued { max_steps });
                }
                self.command_outputs.add_to_thread(self.requests.thread_mut());
            }
            Change::Imported { step_count } => {
                self.cx.numbers.continue_after(step_count);
                self.report_task(TaskInput::StepCountRestored(step_count));
            }
            _ => {}
        }
    }

    fn restore_thread_change(&mut self, change: Change<'_>) {
        match change {
            Change::RewindStarted { rewind_id, target, scope, overwrite } => {
                // A rewind starts only while no task is running.
                self.report_task(TaskInput::Dropped);
                self.report_rewind(RewindInput::StartRestored { rewind_id, target, scope, overwrite });
            }
            Change::Rewound { rewind_id, from, rewound, .. } => {
                self.report_task(TaskInput::Dropped);
                let output = self.pass_to_rewinds(RewindInput::EndRestored { rewind_id, from, rewound });
                if let Some(RewindOutput::Finished(after)) = output {
                    self.adopt_rewind(after.effect);
                }
            }
            Change::Compacted { until, message, verbatim, spent, .. } => {
                self.cx.numbers.count_message(&message.message_id);
                self.count(spent);
                self.pass_to_window(ContextInput::Summarized { until, verbatim, message: message.clone() });
            }
            Change::CompactionUndone { .. } => {
                self.pass_to_window(ContextInput::SummaryRemoved);
            }
            Change::Truncated { tokens, .. } => {
                self.pass_to_window(ContextInput::CutRestored(tokens));
            }
            _ => {}
        }
    }

    fn count(&mut self, spent: Expense) {
        self.spend(SpendingInput::Counted(spent));
    }

    /// Restores the start of a call, for the rewind points and the repetition count.
    fn restore_start(&mut self, id: &CallId, open: &[OpenCall], rows: &[RepeatCount]) {
        let started = |call: &OpenCall| call.tool_call_id == *id && call.is_running() && call.call.is_some();
        let Some(place) = open.iter().position(started) else { return };
        let runs = open[place].edits.edited.as_ref().or(open[place].planned.as_ref());
        let ran =
            runs.map(|EditedCommand { summary, actions }| side_effects::side_effects_of(actions, summary, open[place].changes));
        self.report_rewind(RewindInput::CallStarted(ran.unwrap_or_default()));
        self.report_task(TaskInput::CallStartRestored(rows.get(place).copied().unwrap_or_default()));
    }

    /// Adds a placeholder for a prompt that cannot be read, because a thread must begin with a prompt.
    fn restore_lost_prompt(&mut self, answer: &Message) {
        let content = vec![Part::Text { text: "[This version of aye cannot read this message.]".to_owned() }];
        let message_id = MessageId::new(format!("{}+", answer.message_id));
        let prompt = Message { message_id, role: Role::User, content, step_id: None, ..answer.clone() };
        self.restore_task(prompt, self.cx.options.max_steps);
        self.report_task(TaskInput::StepRestored(answer.step_id.clone()));
    }

    fn restore_task(&mut self, prompt: Message, max_steps: u32) {
        self.cx.numbers.count_task();
        self.cx.numbers.count_message(&prompt.message_id);
        self.report_spending(SpendingInput::TaskBegun);
        self.report_to_goal(GoalInput::TaskStarted(&prompt.task_id));
        self.report_task(TaskInput::Begun { id: TaskId::new(prompt.task_id.as_str()), max_steps });
        self.add_prompt(prompt);
    }

    /// Restores a response. Returns the repetition count of each of its calls.
    fn restore_answer(&mut self, message: &Message, stop_reason: StopReason, spent: Expense) -> Vec<RepeatCount> {
        if self.tasks.current().is_none() {
            self.restore_lost_prompt(message);
        }
        self.cx.numbers.count_message(&message.message_id);
        let is_interrupted = stop_reason == StopReason::Cancelled;
        // The provider did not report usage for an interrupted response.
        let usage = if is_interrupted { Usage::default() } else { spent.usage };
        self.pass_to_window(ContextInput::ResponseRestored(usage));
        self.count(spent);
        if is_interrupted {
            self.pass_to_tasks(TaskInput::Cancelled);
        }
        self.report_task(TaskInput::Responded { message, stop_reason });
        let calls: Vec<_> = message.tool_calls().cloned().collect();
        let rows = self.count_repeats(&calls);
        if !message.content.is_empty() {
            self.pass_to_window(ContextInput::Added(message.clone()));
        }
        rows
    }

    /// Restores the end of a step. Even if a record is missing, exactly the calls of this step receive results.
    fn restore_step(&mut self, message: &Message, step_count: u32, calls: Vec<Call>, at: InputTime) {
        self.cx.numbers.count_message(&message.message_id);
        if message.role == Role::Tool {
            let content = CallBatch::from_restored(calls).results(&self.cx.options);
            if !content.is_empty() {
                self.restore_results(Message { content, ..message.clone() });
            }
        } else {
            self.repair_history(calls, at);
            self.pass_to_window(ContextInput::Added(message.clone()));
        }
        self.report_task(TaskInput::StepCountRestored(step_count));
        self.report_task(TaskInput::Phase(Phase::Paused));
    }

    fn restore_results(&mut self, message: Message) {
        self.report_task(TaskInput::Results(&message));
        self.pass_to_window(ContextInput::Added(message));
    }

    /// Closes a step whose end cannot be read, because providers reject calls without results.
    fn repair_history(&mut self, calls: Vec<Call>, at: InputTime) {
        if calls.is_empty() {
            return;
        }
        if self.tasks.is_user_command() {
            // A user command is not part of the thread, so the thread does not lack a result.
            return self.report_task(TaskInput::UserCommandEndRestored);
        }
        let results = CallBatch::from_restored(calls).results(&self.cx.options);
        if let Some(message) = self.message(Role::Tool, results, at) {
            self.restore_results(message);
        }
        self.report_task(TaskInput::Phase(Phase::Paused));
    }
}

/// Resuming unfinished work.
impl TurnMachine {
    /// Settles all work that the previous process left unfinished.
    fn resume(&mut self, failure: Failure, unfinished: ResumePolicy, at: InputTime) {
        self.report_to_goal(GoalInput::SessionResumed { continues: unfinished == ResumePolicy::Continue });
        if self.finish_rewind(unfinished) {
            return;
        }
        self.settle_user_command(unfinished, at);
        self.end_completed_response();
        if !self.prompts.queue().is_empty() {
            self.cx.out.event(self.prompts.queue().event());
        }
        if self.tasks.current().is_none() {
            return self.resume_without_task(unfinished, at);
        }
        if unfinished == ResumePolicy::Discard {
            self.close_calls(at);
            return self.end_silently(TaskEnd::Cancelled);
        }
        let (max_steps, adds) = (self.cx.options.max_steps, unfinished == ResumePolicy::Continue);
        self.report_task(TaskInput::RunLimit { max_steps, adds });
        if self.tasks.is_cancelling() {
            return self.end_stopped_task(unfinished, at);
        }
        self.report_task(TaskInput::Status(TaskStatus::TaskRunning));
        if self.tasks.calls().is_some_and(|batch| !batch.is_done()) {
            self.report_task(TaskInput::Status(TaskStatus::CheckingPolicy));
            self.report_calls(CallsInput::Resumed, at);
            return self.advance(at);
        }
        self.close_calls(at);
        match unfinished {
            ResumePolicy::Continue => self.continue_on_request(at),
            ResumePolicy::Pause | ResumePolicy::Discard => {
                self.cx.out.commit(Durability::Process);
                self.cx.out.event(EventKind::SessionPaused { failure });
                self.report_task(TaskInput::SessionStatus(SessionStatus::Paused));
            }
        }
    }

    /// Settles a user command after a crash. If the command was started but its outcome is unknown, it is shown to
    /// the user; otherwise it ends.
    fn settle_user_command(&mut self, unfinished: ResumePolicy, at: InputTime) {
        if !self.tasks.is_user_command() {
            return;
        }
        let unknown = self.tasks.calls().is_some_and(CallBatch::is_changing);
        if unknown && !self.tasks.is_cancelling() && unfinished == ResumePolicy::Pause {
            return;
        }
        self.close_calls(at);
        if let Some(TaskOutput::UserCommandEnded { report }) = self.pass_to_tasks(TaskInput::UserCommandSettled) {
            self.command_outputs.add(report);
        }
    }

    /// Ends a task that was being stopped. It does not continue automatically, but the user can continue it.
    fn end_stopped_task(&mut self, unfinished: ResumePolicy, at: InputTime) {
        self.report_calls(CallsInput::LayersDiscarded, at);
        self.close_calls(at);
        self.end_silently(TaskEnd::Cancelled);
        if unfinished == ResumePolicy::Pause {
            self.cx.out.notice("aye exited while the task was being stopped; the task has ended and can be continued");
        }
        self.resume_without_task(unfinished, at);
    }

    /// Ends a task whose response contains no calls, even if the record of the task's end cannot be read.
    fn end_completed_response(&mut self) {
        let answered = self.requests.thread().last().is_some_and(|message| message.role == Role::Assistant);
        let runs = self.tasks.current().is_some_and(|task| !task.is_cancelling());
        if answered && runs && self.tasks.calls().is_none_or(|batch| batch.calls().is_empty()) {
            self.end_silently(TaskEnd::Completed);
        }
    }

    /// Ends an earlier process's task without emitting an event, because listeners wait only for tasks of this
    /// process. If the task is unfinished, it can be continued, and its messages stay queued until then.
    fn end_silently(&mut self, end: TaskEnd) {
        let output = self.pass_to_tasks(TaskInput::EndRestored(&end));
        let Some(TaskOutput::RestoredEnded { task_id, step_count }) = output else { return };
        self.cx.out.record(Record::TaskEnded { task_id, step_count, end });
        self.report_to_goal(GoalInput::TaskEndRestored);
        self.cx.out.commit(Durability::Process);
        self.calls.handle_grant(GrantInput::TaskEnded, &mut self.cx);
    }

    /// Resumes a session that has no open task.
    pub(super) fn resume_without_task(&mut self, unfinished: ResumePolicy, at: InputTime) {
        let nothing = !self.tasks.has_ended() && self.prompts.queue().is_empty() && !self.goals.is_active();
        match unfinished {
            ResumePolicy::Continue => {
                self.continue_on_request(at);
                if nothing {
                    self.work.add(WorkItem::End);
                }
            }
            ResumePolicy::Pause if !self.tasks.has_ended() && !self.prompts.queue().is_empty() => {
                self.cx.out.notice(match self.prompts.queue().len() {
                    1 => "1 queued prompt waits until you continue the session".to_owned(),
                    count => format!("{count} queued prompts wait until you continue the session"),
                });
            }
            ResumePolicy::Pause | ResumePolicy::Discard => {}
        }
    }
}
