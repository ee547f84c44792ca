//! A turn, from a prompt to its end: steps, goal rounds, requests, responses and compactions, as permitted by the
//! sub-machines.

use super::super::limits::STEP_WARNING_PERCENT;
use super::call_batch::CallBatch;
use super::calls::CallsInput;
use super::compaction::{AfterSummary, CompactionInput, CompactionTime, SummaryCall};
use super::completed_request::CompletedRequest;
use super::context_window::{ContextInput, ContextOutput, OverlongRequest};
use super::goals::{CheckOutcome, GoalInput, GoalOutput, NextRound};
use super::grants::GrantInput;
use super::io::{Effect, InputTime};
use super::machine::TurnMachine;
use super::models::ModelInput;
use super::options::Approver;
use super::prompts::{PromptInput, PromptOutput};
use super::requests::{CompactionStep, RequestEnd};
use super::response::{
    Continuation, ResponseStream, StreamInput, continuation, discard_reason, final_failure, retry_event, with_unique_call_ids,
    without_empty_text,
};
use super::rewind::RewindInput;
use super::spending::SpendingInput;
use super::stop_hooks::{StopHookInput, StopHookOutput};
use super::tasks::{Phase, Task, TaskInput, TaskOutput};
use super::user_command::UserCommand;
use super::work_queue::WorkItem;
use crate::agent::thread::is_interruption;
use crate::ports::{Completion, Delta, Durability, ModelError, Record, TaskEnd};
use crate::protocol::{
    ChangedFiles, EventHooks, EventKind, Failure, FailureKind, HookEvent, Message, NoticeKind, Part, Role, SessionStatus,
    StopReason, TaskStatus, ToolCall, format_count,
};
use crate::session::Expense;
use jiff::Timestamp;

/// Note for the model after an interruption, if the same task continues.
const CONTINUED: &str = "[The user wants you to continue.]";

/// Prompts.
impl TurnMachine {
    pub(super) fn prompt(&mut self, text: String, at: InputTime) {
        if text.trim().is_empty() {
            return;
        }
        if self.tasks.is_paused() {
            // No task can be started, so the session and its task remain paused.
            if let Some(failure) = self.cx.request_failure(at.now) {
                self.pass_to_prompts(PromptInput::Returned { text }, at);
                self.cx.out.notice("the session is paused; your prompt is back in the draft");
                return self.cx.out.event(EventKind::SessionPaused { failure });
            }
            self.cx.out.notice("session resumed: the paused task has ended, and your prompt starts a new task");
            self.end_task(TaskEnd::Cancelled);
        }
        if self.is_busy() {
            self.compaction(CompactionInput::PromptQueued, at);
            self.pass_to_prompts(PromptInput::Queued { text, steer: false }, at);
        } else {
            self.pass_to_prompts(PromptInput::SteeringEnded, at);
            self.begin_task(text, at);
        }
    }

    /// Sends a message to the model before its next step. If the task is paused, the message waits for `Continue`. If
    /// no task is running or the task is being stopped, the message becomes a prompt.
    pub(super) fn steer(&mut self, text: String, at: InputTime) {
        if self.tasks.current().is_some_and(|task| !task.is_cancelling()) {
            self.pass_to_prompts(PromptInput::Queued { text, steer: true }, at);
            if self.tasks.is_paused() {
                self.cx.out.notice("the task is paused; the model gets your message when the task continues");
            }
        } else if self.tasks.current().is_none() && self.prompts.is_preparing() {
            // The task has no step yet, but its first step is about to start.
            self.pass_to_prompts(PromptInput::Queued { text, steer: true }, at);
        } else {
            self.prompt(text, at);
        }
    }

    /// Starts the next queued message or the goal's next action. A single commit removes the message from the queue
    /// and starts its task.
    pub(super) fn start_next(&mut self, at: InputTime) {
        self.pass_to_prompts(PromptInput::NextDue, at);
    }

    /// Returns whether a new prompt would have to wait.
    pub(super) fn is_busy(&self) -> bool {
        self.tasks.current().is_some()
            || self.prompts.is_preparing()
            || self.requests.is_compacting()
            || self.rewinds.is_running()
    }

    /// Starts a task with this prompt once the prompt's hooks have run and the files that it mentions have been read.
    pub(super) fn begin_task(&mut self, text: String, at: InputTime) {
        self.pass_to_prompts(PromptInput::Begun { text }, at);
    }

    /// Continues once the hooks for an event have run, unless their prompt or task no longer exists.
    pub(super) fn hooked(&mut self, ticket: u64, outcome: EventHooks, at: InputTime) {
        if self.stop_hooks.are_pending(ticket) {
            return self.stop_hooked(outcome, at);
        }
        self.pass_to_prompts(PromptInput::Hooked { ticket, outcome }, at);
    }

    /// Passes an input to the prompts and schedules the work that follows.
    pub(super) fn pass_to_prompts(&mut self, input: PromptInput, at: InputTime) {
        match self.prompts.handle(input, &mut self.cx, at) {
            Some(PromptOutput::Ready { text, attached }) => self.work.add(WorkItem::Task { text, attached }),
            Some(PromptOutput::Removed) => self.work.add(WorkItem::NextPrompt),
            Some(PromptOutput::NoneQueued) => self.work.add(WorkItem::GoalRound),
            Some(PromptOutput::Blocked { hook, reason, failure }) => {
                self.report_to_goal(GoalInput::PromptBlocked);
                self.cx.out.commit(Durability::Process);
                self.cx.out.event(EventKind::PromptBlocked { hook, reason, failure });
                self.poll_goal_report();
            }
            Some(PromptOutput::Cancelled) | None => {}
        }
    }

    /// Starts a task. `attached` is content shown to the model together with the prompt.
    pub(super) fn start(&mut self, text: String, attached: Vec<Part>, at: InputTime) {
        self.pass_to_models(ModelInput::TaskBegun, at);
        let (task_id, max_steps) = (self.cx.numbers.next_task(), self.cx.options.max_steps);
        self.report_spending(SpendingInput::TaskBegun);
        self.stop_hooks.handle(StopHookInput::TaskBegun, &mut self.cx);
        let introduction = self.goals.introduction();
        self.report_to_goal(GoalInput::TaskStarted(&task_id));
        self.report_task(TaskInput::Begun { id: task_id, max_steps });
        self.cx.record_policy();
        self.cx.record_choices();
        let attached = attached.into_iter().chain(introduction).chain(self.prompts.poll_context());
        let content = std::iter::once(Part::Text { text: text.clone() }).chain(attached).collect();
        if let Some(message) = self.message(Role::User, content, at) {
            self.cx.out.record(Record::TaskStarted { prompt: message.clone(), max_steps });
            self.add_prompt(message);
        }
        self.cx.out.event(EventKind::TaskStarted { prompt: text, max_steps });
        self.cx.set_planned_steps(Vec::new());
        self.calls.handle_grant(GrantInput::TaskEnded, &mut self.cx);
        self.report_task(TaskInput::Status(TaskStatus::TaskRunning));
        // The prompt is committed with the records that follow, which are those of a step, a denial or a pause.
        self.next_step(at);
    }

    /// Adds a prompt to the thread, with notes about changes made since the model's last message.
    pub(super) fn add_prompt(&mut self, prompt: Message) {
        let (number, first_step) = (self.cx.numbers.tasks(), u64::from(self.cx.numbers.steps()) + 1);
        self.report_rewind(RewindInput::Prompted { prompt: &prompt, number, first_step });
        let prompt = self.guardrail.add_to_prompt(prompt);
        let prompt = self.rewinds.with_note(prompt);
        let prompt = self.command_outputs.add_to_prompt(prompt);
        self.pass_to_window(ContextInput::Added(prompt));
    }

    /// Adds notes for the model to the thread when the same task continues.
    pub(super) fn add_continuation(&mut self) {
        let thread = self.requests.thread_mut();
        if thread.last().is_some_and(is_interruption) {
            thread.amend_last(|message| message.content.push(Part::Text { text: format!("\n\n{CONTINUED}") }));
        }
        self.guardrail.add_to_thread(thread);
    }
}

/// Steps.
impl TurnMachine {
    /// Adds the steering messages after the results of the previous step. A single commit removes them from the queue
    /// and adds them to the step.
    fn add_steering_messages(&mut self, at: InputTime) {
        let Some(text) = self.prompts.poll_steering(&mut self.cx) else { return };
        if let Some(message) = self.message(Role::User, vec![Part::Text { text: text.clone() }], at) {
            self.cx.out.record(Record::Steered { message: message.clone() });
            self.pass_to_window(ContextInput::Added(message));
        }
        self.cx.out.event(EventKind::Steered { text });
    }

    /// Starts a step, or ends the task if it must not continue.
    fn next_step(&mut self, at: InputTime) {
        self.report_task(TaskInput::Status(TaskStatus::TaskRunning));
        let Some(task) = self.tasks.current() else { return };
        if task.is_cancelling() {
            self.end_task(TaskEnd::Cancelled);
            // The stop returned all queued messages to the draft. Messages sent since then start now.
            return self.start_next(at);
        }
        let (count, limit) = (task.step_count(), task.max_steps());
        if count >= limit {
            return self.fail(Failure::new(
                FailureKind::MaxStepsExceeded,
                format!("the task reached its limit of {} ({count} done)", format_count(limit.into(), "step", "steps")),
                "continue to allow the same number of steps again; --max-steps sets the limit",
            ));
        }
        if self.end_task_at_goal_limit(at) {
            return;
        }
        let forbidden = self.requests.spending().step_failure(self.tasks.usage(), &self.cx);
        if let Some(failure) = forbidden.or_else(|| self.preflight(at)) {
            return self.on_forbidden(failure);
        }
        if std::mem::take(&mut self.cx.wants_clean_context) {
            self.pass_to_window(ContextInput::EarlierDropped);
        }
        self.add_steering_messages(at);
        self.pass_to_window(ContextInput::RequestFitted);
        self.report_rewind(RewindInput::StepStarted);
        self.report_task(TaskInput::StepBegun);
        self.request(0, at);
    }

    /// Plans calls that were waiting for an earlier call, and closes the step once all calls are done.
    pub(super) fn advance(&mut self, at: InputTime) {
        let results = self.pass_to_calls(CallsInput::Due, at).results;
        self.report_task(TaskInput::CallsChanged);
        let Some(results) = results else { return };
        if self.tasks.is_user_command() {
            return self.end_user_command(at);
        }
        if let Some(message) = self.message(Role::Tool, results, at) {
            self.complete_step(message, at);
        }
    }

    /// Completes a step with the message that follows its response, and then continues.
    pub(super) fn complete_step(&mut self, message: Message, at: InputTime) {
        if let Some(task) = self.tasks.current()
            && let Some(step_id) = task.step_id().cloned()
        {
            let (task_id, step_count) = (task.id().clone(), task.step_count() + 1);
            self.cx.out.record(Record::StepCompleted { task_id, step_id, step_count, message: message.clone() });
        }
        self.report_task(TaskInput::Results(&message));
        self.pass_to_window(ContextInput::Added(message));
        let output = self.pass_to_tasks(TaskInput::StepCompleted);
        let Some(TaskOutput::StepCompleted { step_count: count, max_steps: limit }) = output else { return };
        self.cx.out.event(EventKind::StepCompleted { step_count: count });
        if u64::from(count) == u64::from(limit) * STEP_WARNING_PERCENT / 100 && count < limit {
            self.cx.out.event(EventKind::StepLimitApproaching { step_count: count, max_steps: limit });
        }
        self.next_step(at);
    }

    /// Ends all open calls and closes the step with their results, so no call in the thread lacks a result.
    pub(super) fn close_calls(&mut self, at: InputTime) {
        self.report_calls(CallsInput::Closed, at);
        self.close_step(at);
    }

    /// Closes the step with its calls' results without starting the next one.
    pub(super) fn close_step(&mut self, at: InputTime) {
        let results = self.pass_to_calls(CallsInput::StepClosed, at).results.unwrap_or_default();
        if results.is_empty() || self.tasks.is_user_command() {
            return;
        }
        let Some(message) = self.message(Role::Tool, results, at) else { return };
        self.report_task(TaskInput::Results(&message));
        self.pass_to_window(ContextInput::Added(message.clone()));
        self.report_task(TaskInput::Phase(Phase::Paused));
        self.record_completed_step(message);
    }

    /// Counts and records a completed step.
    pub(super) fn record_completed_step(&mut self, message: Message) {
        let output = self.pass_to_tasks(TaskInput::StepCompleted);
        let Some(TaskOutput::StepCompleted { step_count, .. }) = output else { return };
        if let Some((task_id, Some(step_id))) = self.tasks.message_scope() {
            self.cx.out.record(Record::StepCompleted { task_id, step_id, step_count, message });
            self.cx.out.event(EventKind::StepCompleted { step_count });
        }
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.end_task(TaskEnd::Failed { failure });
    }

    /// Records the end of the task and then reports it. After a failure, queued messages wait for the user's
    /// decision.
    pub(super) fn end_task(&mut self, end: TaskEnd) {
        self.report_task(TaskInput::SessionStatus(SessionStatus::Running));
        if self.tasks.current().is_none() {
            return;
        }
        self.guardrail.on_task_end(&end);
        self.report_task(TaskInput::EndDue(&end));
        self.report_to_goal(GoalInput::TaskEnded(&end));
        self.cx.out.commit(Durability::Power);
        let answer = self.last_response();
        self.report_task(TaskInput::EndCommitted { end: &end, answer: &answer });
        if end == TaskEnd::Completed {
            self.report_spending(SpendingInput::TaskEnded);
        }
        self.report_task(TaskInput::Ended(&end));
        self.calls.handle_grant(GrantInput::TaskEnded, &mut self.cx);
        self.report_task(TaskInput::Status(TaskStatus::Idle));
        self.poll_goal_report();
    }

    /// Returns the text of the response at the end of the conversation. Empty if another message follows the
    /// response.
    fn last_response(&self) -> String {
        let response = self.requests.thread().last().filter(|message| message.role == Role::Assistant);
        response.map(Message::text).unwrap_or_default()
    }

    /// Ends a task that the model has finished, once the stop hooks have run.
    fn complete_after_hooks(&mut self, at: InputTime) {
        let is_stopping = self.tasks.current().is_none_or(Task::is_cancelling);
        let response = self.last_response();
        if is_stopping || self.stop_hooks.handle(StopHookInput::Finished { response }, &mut self.cx).is_none() {
            return self.complete(at);
        }
        self.report_task(TaskInput::Phase(Phase::Working(CallBatch::default())));
    }

    /// Ends a task that the model has finished, and starts the next action.
    pub(super) fn complete(&mut self, at: InputTime) {
        self.end_completed();
        // A compaction requested during the task runs before the next task.
        let forbidden = self.preflight(at);
        self.compaction(CompactionInput::TaskCompleted { forbidden }, at);
        if !self.requests.is_compacting() {
            self.start_next(at);
        }
    }

    /// Ends a task that the model has finished, or continues it with a message from a hook.
    fn stop_hooked(&mut self, outcome: EventHooks, at: InputTime) {
        let output = self.stop_hooks.handle(StopHookInput::Ran(outcome), &mut self.cx);
        let Some(StopHookOutput::Continued(text)) = output else { return self.complete(at) };
        if let Some(message) = self.message(Role::User, vec![Part::Text { text }], at) {
            self.complete_step(message, at);
        }
    }

    /// Ends a task that the model has finished, without starting the next action.
    pub(super) fn end_completed(&mut self) {
        if let Some(TaskOutput::StepCompleted { step_count, .. }) = self.pass_to_tasks(TaskInput::StepCompleted) {
            self.cx.out.event(EventKind::StepCompleted { step_count });
        }
        self.end_task(TaskEnd::Completed);
    }

    /// Pauses the task until the user continues it. All records are committed.
    pub(super) fn pause(&mut self, failure: Failure) {
        self.report_task(TaskInput::Phase(Phase::Paused));
        self.abandon_response();
        self.report_spending(SpendingInput::Paused(failure.kind == FailureKind::BudgetExceeded));
        self.cx.out.record(Record::Paused { failure: failure.clone() });
        self.report_to_goal(GoalInput::TaskPaused);
        self.cx.out.commit(Durability::Power);
        self.cx.out.event(EventKind::SessionPaused { failure });
        self.report_task(TaskInput::SessionStatus(SessionStatus::Paused));
        self.poll_goal_report();
    }

    /// Resets the status of a task whose response is not processed further, because an overlong conversation must not
    /// be sent again.
    fn abandon_response(&mut self) {
        if self.tasks.task_status() == TaskStatus::ProcessingResponse {
            self.report_task(TaskInput::Status(TaskStatus::TaskRunning));
        }
    }

    /// Continues at the user's request. This may be a paused task, a task that ended early, or the next queued
    /// message.
    pub(super) fn continue_on_request(&mut self, at: InputTime) {
        if self.requests.is_compacting() {
            return self.compaction(CompactionInput::Continued, at);
        }
        let paused = self.tasks.is_paused();
        if self.rewinds.is_running() {
            return self.cx.out.notice("a rewind is restoring files; try again in a moment");
        }
        if self.is_busy() && !paused {
            return self.cx.out.notice(if self.tasks.calls().is_some_and(CallBatch::waits_for_user) {
                "the task is waiting for your answer"
            } else {
                "the task is already running"
            });
        }
        let max_steps = self.cx.options.max_steps;
        if !paused && self.pass_to_tasks(TaskInput::EndedContinued { max_steps }).is_none() {
            if self.prompts.queue().is_empty() {
                if !self.continue_goal(at) {
                    self.cx.out.notice("nothing to continue");
                }
                return;
            }
            self.report_to_goal(GoalInput::Continued);
            return self.start_next(at);
        }
        self.pass_to_models(ModelInput::TaskBegun, at);
        self.report_task(TaskInput::CancelWithdrawn);
        self.report_task(TaskInput::SessionStatus(SessionStatus::Running));
        self.cx.record_policy();
        self.report_to_goal(GoalInput::Continued);
        self.cx.out.record(Record::Continued);
        self.report_to_goal(GoalInput::TaskContinued);
        self.add_continuation();
        self.command_outputs.add_to_thread(self.requests.thread_mut());
        self.next_step(at);
    }
}

/// Goal rounds.
impl TurnMachine {
    /// Starts the goal's next action if nothing else is running.
    pub(super) fn advance_goal(&mut self, at: InputTime) {
        if self.quitting || self.is_busy() || self.end_goal_at_limit(None) {
            return;
        }
        match self.goals.next() {
            None => {}
            Some(NextRound::Check) => self.begin_check(),
            Some(NextRound::Prompt) => {
                let mut content = self.goals.prompt().unwrap_or_default().into_iter();
                let Some(Part::Text { text }) = content.next() else { return };
                self.start(text, content.collect(), at);
            }
        }
    }

    fn begin_check(&mut self) {
        let Some(line) = self.goals.check() else { return };
        let command = UserCommand::from_check(line, self.goals.is_typed());
        self.report_to_goal(GoalInput::CheckStarted);
        self.report_task(TaskInput::UserCommandBegun(command));
    }

    /// Handles the end of the check. The outcome and the changed files determine how the goal continues.
    pub(super) fn end_check(&mut self, at: InputTime) {
        let outcome = self.check_outcome();
        self.follow_check(GoalInput::CheckEnded(outcome), at);
    }

    pub(super) fn on_changes_listed(&mut self, ticket: u64, files: Option<&ChangedFiles>, scripts: String, at: InputTime) {
        if self.tasks.is_check() {
            let outcome = self.check_outcome();
            self.follow_check(GoalInput::FilesCompared { ticket, outcome, files, scripts }, at);
        }
    }

    /// Passes an input about the check to the goal, and ends the round if nothing else is needed.
    fn follow_check(&mut self, input: GoalInput<'_>, at: InputTime) {
        if self.pass_to_goal(input) == Some(GoalOutput::RoundEnded) {
            self.finish_user_command();
            self.poll_goal_report();
            self.start_next(at);
        }
    }

    fn check_outcome(&self) -> CheckOutcome {
        if self.tasks.is_cancelling() {
            return CheckOutcome::Interrupted;
        }
        let result = self.tasks.calls().and_then(|batch| batch.calls().first()?.result());
        result.map_or(CheckOutcome::Interrupted, |result| CheckOutcome::from_result(&result))
    }
}

/// User commands.
impl TurnMachine {
    /// Runs a command if nothing else is running. A paused task waits until the command has ended.
    pub(super) fn run_user_command(&mut self, line: &str, shared: bool, at: InputTime) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.is_busy() && !self.tasks.is_paused() {
            self.cx.out.notice("a task is running: your command is in the draft, send it again when the task is done");
            let text = format!("{}{line}", if shared { "!" } else { "!!" });
            return self.pass_to_prompts(PromptInput::Returned { text }, at);
        }
        self.report_task(TaskInput::UserCommandBegun(UserCommand::from_line(line, shared)));
    }

    /// Ends the command. Its result is saved for the next message. A paused task stays paused, and waiting work is
    /// started.
    fn end_user_command(&mut self, at: InputTime) {
        if self.tasks.is_check() {
            return self.end_check(at);
        }
        self.finish_user_command();
        if self.tasks.current().is_none() {
            return self.start_next(at);
        }
        if self.prompts.queue().is_empty() {
            return self.report_task(TaskInput::SessionStatus(SessionStatus::Paused));
        }
        // A message sent in the meantime ends the paused task, just as a prompt would.
        self.end_task(TaskEnd::Cancelled);
        self.start_next(at);
    }

    /// Ends the command and returns to the task that was set aside. The model receives the command's output with the
    /// next message.
    fn finish_user_command(&mut self) {
        if let Some(TaskOutput::UserCommandEnded { report }) = self.pass_to_tasks(TaskInput::UserCommandEnded) {
            self.command_outputs.add(report);
        }
    }
}

/// Requests.
impl TurnMachine {
    /// Handles a request that must not be sent.
    fn on_forbidden(&mut self, failure: Failure) {
        match failure.kind {
            FailureKind::PolicyExpired => {
                self.abandon_response();
                self.cx.out.event(EventKind::PolicyExpired { message: failure.message.clone() });
                self.pause(failure);
            }
            // The user may be able to raise the budget.
            FailureKind::BudgetExceeded if self.cx.options.approvals.approver == Approver::User => self.pause(failure),
            _ => self.fail(failure),
        }
    }

    /// Returns the reason why no request may be sent.
    fn preflight(&self, at: InputTime) -> Option<Failure> {
        self.requests.preflight(self.tasks.usage(), &self.cx, at)
    }

    /// Sends the task's request unless that is forbidden.
    pub(super) fn request_if_allowed(&mut self, attempt: u32, at: InputTime) {
        if self.end_task_at_goal_limit(at) {
            return;
        }
        match self.preflight(at) {
            None => self.request(attempt, at),
            Some(failure) => self.on_forbidden(failure),
        }
    }

    /// Sends the thread to the model after making space for it. `attempt` counts the retries of the same request.
    fn request(&mut self, attempt: u32, at: InputTime) {
        self.compaction(CompactionInput::RequestDue { attempt }, at);
        if self.requests.is_compacting() {
            return;
        }
        let request = match self.requests.prepare(&mut self.cx) {
            Ok(request) => request,
            Err(failure) => return self.fail(failure),
        };
        self.report_task(TaskInput::Phase(Phase::Requesting(ResponseStream::new(attempt, at.now))));
        self.report_task(TaskInput::Status(TaskStatus::WaitingForLlm));
        self.requests.send(request, self.tasks.usage(), &mut self.cx);
    }

    pub(super) fn on_delta(&mut self, delta: Delta, at: InputTime) {
        self.report_spending(SpendingInput::Received(&delta));
        match delta {
            // No response is expected any more.
            _ if self.tasks.stream().is_none() => {}
            Delta::Text(text) => self.report_task(TaskInput::Stream(StreamInput::Text { text, now: at.now })),
            Delta::Reasoning(text) => self.report_task(TaskInput::Stream(StreamInput::Reasoning(text))),
            Delta::ToolCallProgress { tool_name, bytes } => {
                self.cx.out.event(EventKind::ToolCallProgress { tool_name, bytes });
            }
            Delta::Completed(completion) => self.on_response(completion, at),
        }
    }

    fn on_response(&mut self, completion: Completion, at: InputTime) {
        let Some(stream) = self.tasks.stream() else { return };
        let since = stream.requested_at();
        self.report_task(TaskInput::Status(TaskStatus::ProcessingResponse));
        let Completion { content, stop_reason, usage, model } = completion;
        self.pass_to_window(ContextInput::Responded(usage));
        let (input, end) = (SpendingInput::Responded { usage, content: &content, at }, RequestEnd { model, stop_reason, since });
        let Some(request) = self.complete_request(input, end, at) else { return };
        if let Some(failure) = discard_reason(stop_reason) {
            return self.on_rejected_response(failure, request, at);
        }
        self.pass_to_window(ContextInput::RequestFitted);
        let content = with_unique_call_ids(without_empty_text(content));
        let calls: Vec<_> = content
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.clone()),
                Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult(_) | Part::Image(_) => None,
            })
            .collect();
        let empty = content.is_empty();
        if let Some(message) = self.message(Role::Assistant, content, at) {
            // An empty response is recorded for its cost but not sent back, because providers reject it.
            self.cx.out.record(request.record(message.clone()));
            self.report_task(TaskInput::Responded { message: &message, stop_reason });
            if !empty {
                self.pass_to_window(ContextInput::Added(message));
            }
        }
        self.report_spending(SpendingInput::Completed(request));
        if calls.is_empty() {
            self.on_text_response(stop_reason, empty, at);
        } else {
            self.on_call_response(calls, stop_reason, at);
        }
    }

    /// Discards a response that the provider withdrew. It is not added to the thread, where it would look like the
    /// model's own text.
    fn on_rejected_response(&mut self, failure: Failure, request: CompletedRequest, at: InputTime) {
        self.report_task(TaskInput::Stream(StreamInput::Discarded(&failure.message)));
        if let Some(message) = self.message(Role::Assistant, Vec::new(), at) {
            self.cx.out.record(request.record(message));
        }
        self.report_spending(SpendingInput::Completed(request));
        self.on_request_failed(failure, at);
    }

    fn on_text_response(&mut self, stop_reason: StopReason, empty: bool, at: InputTime) {
        if empty && stop_reason == StopReason::EndTurn {
            self.cx.out.notice("the model ended its turn without a response");
        }
        match continuation(stop_reason, empty) {
            Continuation::Complete => self.complete_after_hooks(at),
            Continuation::AskForRest(words) => {
                let content = vec![Part::Text { text: words.to_owned() }];
                let Some(message) = self.message(Role::User, content, at) else { return };
                self.complete_step(message, at);
            }
            Continuation::Fail(failure) => self.fail(failure),
        }
    }

    fn on_call_response(&mut self, calls: Vec<ToolCall>, stop_reason: StopReason, at: InputTime) {
        self.report_task(TaskInput::Status(TaskStatus::CheckingPolicy));
        let rows = self.count_repeats(&calls);
        let batch = CallBatch::from_response(calls, rows, stop_reason == StopReason::MaxTokens);
        let to_plan = batch.to_plan();
        self.report_task(TaskInput::Phase(Phase::Working(batch)));
        if to_plan.is_empty() {
            self.on_planned(CallsInput::Planned(Vec::new()), at);
        } else if self.cx.options.hooks.contains(HookEvent::PreToolUse) {
            self.cx.out.effect(Effect::HookCalls(to_plan));
        } else {
            self.cx.out.effect(Effect::Plan(to_plan));
        }
    }

    pub(super) fn on_model_error(&mut self, error: ModelError, at: InputTime) {
        let Some(stream) = self.tasks.stream() else { return };
        let (attempt, since) = (stream.attempt() + 1, stream.requested_at());
        self.report_task(TaskInput::Stream(StreamInput::Discarded(&error.failure.message)));
        let (wasted, delay_ms) = self.count_failed_request(&error, attempt, since, at);
        if !error.failure.retryable {
            return self.on_request_failed(error.failure, at);
        }
        let Some(delay_ms) = delay_ms else {
            return self.fall_back_or_pause(final_failure(error, attempt, &self.cx.options.backoff));
        };
        let ticket = self.cx.numbers.next_ticket();
        self.report_task(TaskInput::Phase(Phase::Retrying { attempt, ticket }));
        self.report_retry(error, attempt, delay_ms, wasted);
        self.report_spending(SpendingInput::UsageChanged);
        self.cx.out.effect(Effect::Wake { after_ms: delay_ms, ticket });
    }

    /// Counts the usage of a failed request, and reports it unless the request will be retried. Returns the usage,
    /// and the delay before the retry in milliseconds.
    fn count_failed_request(
        &mut self,
        error: &ModelError,
        attempt: u32,
        since: Timestamp,
        at: InputTime,
    ) -> (Option<Expense>, Option<u64>) {
        let end = RequestEnd { model: None, stop_reason: StopReason::Error, since };
        let request = self.complete_request(SpendingInput::Wasted { error: Some(error) }, end, at);
        let wasted = request.as_ref().map(|request| request.spent);
        let delay_ms = self.cx.options.backoff.delay_ms(attempt, error.retry_after, at.jitter);
        // The retry event reports the usage of a request that is retried.
        let is_retried = error.failure.retryable && delay_ms.is_some();
        if let Some(request) = request.filter(|_| !is_retried) {
            self.report_spending(SpendingInput::Completed(request));
        }
        (wasted, delay_ms)
    }

    fn report_retry(&mut self, error: ModelError, attempt: u32, delay_ms: u64, wasted: Option<Expense>) {
        let max_attempts = self.cx.options.backoff.max_retries;
        self.cx.out.commit(Durability::Process);
        self.cx.out.event(retry_event(error, (attempt, max_attempts), delay_ms, wasted));
    }

    /// Counts the request in progress, if any, before it is stopped.
    pub(super) fn waste_current_request(&mut self, at: InputTime) {
        let of_task = self.tasks.stream().map(ResponseStream::requested_at);
        let Some(since) = self.requests.compactor().requested_at().or(of_task) else { return };
        let end = RequestEnd { model: None, stop_reason: StopReason::Cancelled, since };
        if let Some(request) = self.complete_request(SpendingInput::Wasted { error: None }, end, at) {
            self.report_spending(SpendingInput::Completed(request));
        }
    }

    /// Handles a request that failed permanently. An overlong request is shortened and retried once.
    fn on_request_failed(&mut self, failure: Failure, at: InputTime) {
        if failure.kind != FailureKind::ContextTooLong {
            return self.fail(failure);
        }
        if !self.shorten(at) {
            self.fail(self.requests.window().with_hint(failure, &self.cx));
        }
    }

    /// Shortens and retries a request that the provider rejected as too long. Returns whether the failure was
    /// handled.
    fn shorten(&mut self, at: InputTime) -> bool {
        let overlong = match self.pass_to_window(ContextInput::RequestTooLong) {
            Some(ContextOutput::TooLong(OverlongRequest::Repeated)) | None => return false,
            output => output,
        };
        if let Some(failure) = self.preflight(at) {
            self.on_forbidden(failure);
            return true;
        }
        if matches!(overlong, Some(ContextOutput::TooLong(OverlongRequest::OtherModel))) {
            self.request(0, at);
            return true;
        }
        self.compaction(CompactionInput::RequestTooLong, at);
        if self.requests.is_compacting() {
            return true;
        }
        let shorter = self.pass_to_window(ContextInput::HalfDropped).is_some();
        if shorter {
            self.request(0, at);
        }
        shorter
    }

    /// Retries a failed request immediately, at the user's request.
    pub(super) fn retry_now(&mut self, at: InputTime) {
        if let Some(ticket) = self.requests.compactor().ticket() {
            return self.on_timer(ticket, at);
        }
        match self.tasks.phase() {
            Some(Phase::Retrying { ticket, .. }) => self.on_timer(*ticket, at),
            Some(Phase::Paused) => self.cx.out.notice("the task is paused; continue the task to retry the request"),
            Some(Phase::Requesting(_) | Phase::Compacting | Phase::Working(_)) | None => {
                self.cx.out.notice("no request is waiting to be retried");
            }
        }
    }

    pub(super) fn on_timer(&mut self, ticket: u64, at: InputTime) {
        if self.requests.compactor().ticket() == Some(ticket) {
            return self.compaction(CompactionInput::RetryDue, at);
        }
        if let Some(Phase::Retrying { attempt, ticket: waiting }) = self.tasks.phase()
            && *waiting == ticket
        {
            self.request_if_allowed(*attempt, at);
        }
    }
}

/// Compaction.
impl TurnMachine {
    /// Compacts the conversation at the user's request.
    pub(super) fn compact(&mut self, focus: Option<String>, at: InputTime) {
        let runs = self.tasks.current().is_some() && !self.tasks.is_paused();
        let when = if self.rewinds.is_running() {
            CompactionTime::AfterRewind
        } else if runs || self.prompts.is_preparing() {
            CompactionTime::BeforeStep
        } else {
            CompactionTime::Now { forbidden: self.preflight(at) }
        };
        self.compaction(CompactionInput::Requested { focus, when }, at);
    }

    /// Passes an input to the compactor and handles its outputs.
    pub(super) fn compaction(&mut self, input: CompactionInput, at: InputTime) {
        for output in self.requests.handle_compaction(input, self.tasks.continuable_id(), &mut self.cx, at) {
            match output {
                CompactionStep::Begun { precedes_request } => {
                    if precedes_request {
                        self.report_task(TaskInput::Phase(Phase::Compacting));
                    }
                    self.work.add(WorkItem::SummaryBegun);
                }
                CompactionStep::Ready => self.work.add(WorkItem::SummaryDue),
                CompactionStep::Send(call) => self.work.add(WorkItem::SummaryRequest(call)),
                CompactionStep::FallbackNeeded(failure) => self.work.add(WorkItem::SummaryFallback(failure)),
                CompactionStep::TaskPaused(failure) => self.pause(failure),
                CompactionStep::TaskForbidden(failure) => self.on_forbidden(failure),
                CompactionStep::Ended(then) => self.after_compaction(then),
            }
        }
    }

    /// Sends the summary request unless that is forbidden.
    pub(super) fn request_summary_if_allowed(&mut self, at: InputTime) {
        if self.requests.compactor().precedes_request() && self.end_task_at_goal_limit(at) {
            return;
        }
        match self.preflight(at) {
            None => self.allow_summary(at),
            Some(failure) => self.compaction(CompactionInput::Forbidden(failure), at),
        }
    }

    pub(super) fn allow_summary(&mut self, at: InputTime) {
        let obstacle = self.requests.summary_obstacle(self.tasks.usage(), &self.cx, at);
        self.compaction(CompactionInput::Allowed { obstacle }, at);
    }

    pub(super) fn send_summary_request(&mut self, call: SummaryCall) {
        if matches!(self.tasks.phase(), Some(Phase::Compacting)) {
            self.report_task(TaskInput::Status(TaskStatus::WaitingForLlm));
        }
        self.requests.send_summary(call, self.tasks.usage(), &mut self.cx);
    }

    /// Handles the stream of a summary. Its text is not shown as a response, but its usage is counted.
    pub(super) fn on_summary_delta(&mut self, delta: Delta, at: InputTime) {
        let Some(since) = self.requests.compactor().requested_at() else { return };
        self.report_spending(SpendingInput::Received(&delta));
        let Delta::Completed(Completion { content, stop_reason, usage, model }) = delta else { return };
        let (input, end) = (SpendingInput::Responded { usage, content: &content, at }, RequestEnd { model, stop_reason, since });
        let Some(request) = self.complete_request(input, end, at) else { return };
        let spent = request.spent;
        self.report_spending(SpendingInput::Completed(request));
        self.compaction(CompactionInput::Responded { content, stop_reason, spent }, at);
    }

    pub(super) fn on_summary_error(&mut self, error: ModelError, at: InputTime) {
        let compactor = self.requests.compactor();
        let Some((since, attempt)) = compactor.requested_at().zip(compactor.attempt()) else { return };
        let (wasted, delay_ms) = self.count_failed_request(&error, attempt, since, at);
        self.compaction(CompactionInput::Failed { error, wasted, delay_ms }, at);
    }

    /// Opens the next fallback model for a summary request whose retries are exhausted, if there is one.
    pub(super) fn fall_back_for_summary(&mut self, failure: Failure, at: InputTime) {
        let Some(name) = self.requests.next_fallback(&failure, &mut self.cx) else {
            return self.compaction(CompactionInput::NoFallback(failure), at);
        };
        let ticket = self.cx.numbers.next_ticket();
        self.compaction(CompactionInput::FallbackOpening { ticket }, at);
        self.cx.out.effect(Effect::OpenModel { key: None, name });
    }

    fn after_compaction(&mut self, then: AfterSummary) {
        match then {
            AfterSummary::Nothing => self.cx.out.commit(Durability::Process),
            AfterSummary::Request { attempt } => self.work.add(WorkItem::Request { attempt }),
            AfterSummary::Continue => self.work.add(WorkItem::Continue),
            AfterSummary::NextTask => {
                self.cx.out.commit(Durability::Process);
                self.work.add(WorkItem::NextPrompt);
            }
        }
    }

    /// Stops the compaction without changing anything. Returns whether a compaction was in progress that no task's
    /// request was waiting for.
    pub(super) fn stop_compaction(&mut self, at: InputTime) -> bool {
        let compactor = self.requests.compactor();
        let is_outside = compactor.is_running() && !compactor.precedes_request();
        if compactor.requested_at().is_some() {
            self.waste_current_request(at);
        }
        self.compaction(CompactionInput::Stopped, at);
        is_outside
    }

    /// Restores the messages that the last compaction replaced.
    pub(super) fn undo_compaction(&mut self) {
        if self.requests.is_compacting() {
            self.cx.out.special_notice(NoticeKind::CompactionRunning, "compaction is running; stop it first");
        } else if self.rewinds.is_running() {
            self.cx.out.notice("a rewind is restoring files; try again in a moment");
        } else {
            self.pass_to_window(ContextInput::UndoRequested);
        }
    }
}
