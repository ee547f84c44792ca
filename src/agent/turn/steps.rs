//! Turn from a prompt to its end: steps, goal rounds, requests, responses and compactions, as permitted by the
//! sub-machines.

use super::super::limits::STEP_WARNING_PERCENT;
use super::call_batch::CallBatch;
use super::compaction::{AfterSummary, SummaryCall, SummaryOutcome, SummaryRequest};
use super::completed_request::CompletedRequest;
use super::context_window::OverlongRequest;
use super::goals::{CheckOutcome, NextRound};
use super::io::{Effect, InputTime};
use super::machine::TurnMachine;
use super::options::Approver;
use super::prompt_hooks::PromptVerdict;
use super::response::{
    Continuation, ResponseStream, continuation, discard_reason, final_failure, retry_event, with_unique_call_ids,
    without_empty_text,
};
use super::summary_model::report_replacement;
use super::tasks::{Phase, Task};
use super::user_command::UserCommand;
use crate::agent::thread::is_interruption;
use crate::ports::{Completion, Delta, Durability, ModelError, ModelRequest, Plan, Record, TaskEnd};
use crate::protocol::{
    COMPACTION_IS, ChangedFiles, CompactionTrigger, EventHooks, EventKind, Failure, FailureKind, GoalReason, HookEvent, Message,
    ModelFacts, NOT_COMPACTED, Part, Remedy, Role, SessionStatus, StopReason, TaskStatus, ToolCall, ToolError, ToolResult, Usage,
    format_count,
};
use crate::session::Expense;
use jiff::Timestamp;

/// Note to the model after an interruption, if the same task continues.
const CONTINUED: &str = "[The user wants you to continue.]";

/// Prompts.
impl TurnMachine {
    pub(super) fn prompt(&mut self, text: String, at: InputTime) {
        if text.trim().is_empty() {
            return;
        }
        if self.tasks.is_paused() {
            // Nothing could start: the session stays paused, and the task with it.
            if let Some(failure) = self.cx.request_failure(at.now) {
                self.queue.return_to_draft(text, &mut self.cx.out);
                self.cx.out.notice("the session is paused; your prompt is back in the draft");
                return self.cx.out.event(EventKind::SessionPaused { failure });
            }
            self.cx.out.notice("session resumed: the paused task has ended, and your prompt starts a new task");
            self.end_task(TaskEnd::Cancelled);
        }
        if self.is_busy() {
            self.compactor.start_next_after();
            self.queue.add(text, false, &mut self.cx.out);
        } else {
            self.queue.stop_steering(&mut self.cx.out);
            self.begin_task(text, at);
        }
    }

    /// Sends a message to the model before its next step. In a paused task, the message waits for `Continue`. If no
    /// task is running, or the task is being stopped, the message becomes a prompt.
    pub(super) fn steer(&mut self, text: String, at: InputTime) {
        if self.tasks.current().is_some_and(|task| !task.is_cancelling()) {
            self.queue.add(text, true, &mut self.cx.out);
            if self.tasks.is_paused() {
                self.cx.out.notice("the task is paused; the model gets your message when the task continues");
            }
        } else if self.tasks.current().is_none() && (self.mentions.is_reading() || self.prompt_hooks.is_running()) {
            // The task has no step yet, but will have.
            self.queue.add(text, true, &mut self.cx.out);
        } else {
            self.prompt(text, at);
        }
    }

    /// Starts the next queued message, or the next action of the goal. Removing a message from the queue and starting
    /// its task are one commit.
    pub(super) fn start_next(&mut self, at: InputTime) {
        if let Some(text) = self.queue.take_next(&mut self.cx.out) {
            return self.begin_task(text, at);
        }
        self.advance_goal(at);
    }

    /// Returns whether a prompt must wait.
    pub(super) fn is_busy(&self) -> bool {
        let prepares = self.mentions.is_reading() || self.prompt_hooks.is_running();
        self.tasks.current().is_some() || prepares || self.compactor.is_running() || self.rewinds.is_running()
    }

    /// Starts a task with this prompt, after its hooks have run and the files it mentions are read.
    pub(super) fn begin_task(&mut self, text: String, at: InputTime) {
        if self.prompt_hooks.run_before_prompt(&self.cx) {
            let id = self.queue.add_first(text.clone(), &mut self.cx.out);
            return self.prompt_hooks.begin(id, text, &mut self.cx);
        }
        self.read_mentions(text, at);
    }

    /// Continues after the hooks of an event, unless their prompt or task was removed.
    pub(super) fn hooked(&mut self, ticket: u64, outcome: EventHooks, at: InputTime) {
        if self.stop_hooks.finish(ticket) {
            return self.stop_hooked(outcome, at);
        }
        let Some(hooked) = self.prompt_hooks.finish(ticket) else { return };
        let Some(text) = self.queue.take(hooked.id, &mut self.cx.out) else {
            return self.start_next(at);
        };
        if text != hooked.text {
            // The text was edited since then.
            return self.begin_task(text, at);
        }
        match self.prompt_hooks.settle(outcome, &mut self.cx) {
            PromptVerdict::Start => self.read_mentions(text, at),
            PromptVerdict::Block(failure) => {
                self.queue.return_to_draft(text, &mut self.cx.out);
                let goal_waits = self.pause_goal(GoalReason::TaskFailed, "goal paused: a hook blocked its prompt");
                self.cx.out.commit(Durability::Process);
                self.cx.out.event(EventKind::TaskFailed { failure, step_count: 0 });
                if goal_waits.is_some() {
                    self.report_goal(goal_waits);
                }
            }
        }
    }

    /// Starts a task with this prompt, after the files it mentions are read.
    pub(super) fn read_mentions(&mut self, text: String, at: InputTime) {
        let named = self.mentions.find(&text);
        if named.is_empty() {
            return self.start(text, Vec::new(), at);
        }
        let id = self.queue.add_first(text, &mut self.cx.out);
        if !self.mentions.begin(id, named, &mut self.cx.out) {
            self.on_mentions_planned(id, Vec::new(), at);
        }
    }

    pub(super) fn on_mentions_planned(&mut self, ticket: u64, plans: Vec<Result<Plan, ToolError>>, at: InputTime) {
        if self.mentions.on_plans(ticket, plans, &mut self.cx, at) {
            self.on_mentions_read(ticket, Vec::new(), at);
        }
    }

    /// Starts the task with the mentioned files, unless the user removed the prompt in the meantime.
    pub(super) fn on_mentions_read(&mut self, ticket: u64, results: Vec<ToolResult>, at: InputTime) {
        let Some(prompt) = self.mentions.finish(ticket) else { return };
        let Some(text) = self.queue.take(ticket, &mut self.cx.out) else {
            return self.start_next(at);
        };
        if !prompt.has_mentions(&self.mentions.find(&text)) {
            // The text was edited since then and mentions other files.
            return self.begin_task(text, at);
        }
        let attached = prompt.attachments(results, &mut self.cx);
        self.start(text, attached, at);
    }

    /// Starts a task. `attached`: content shown to the model with the prompt.
    pub(super) fn start(&mut self, text: String, attached: Vec<Part>, at: InputTime) {
        self.use_chosen_model();
        let (task_id, max_steps) = (self.cx.numbers.next_task(), self.cx.options.max_steps);
        self.spending.begin_task();
        self.stop_hooks.begin_task();
        let introduction = self.goals.introduction();
        self.goals.on_task_start(&task_id);
        self.tasks.begin(task_id, max_steps, &mut self.cx.out);
        self.cx.record_policy();
        self.cx.record_choices();
        let attached = attached.into_iter().chain(introduction).chain(self.prompt_hooks.take_context());
        let content = std::iter::once(Part::Text { text: text.clone() }).chain(attached).collect();
        if let Some(message) = self.message(Role::User, content, at) {
            self.cx.out.record(Record::TaskStarted { prompt: message.clone(), max_steps });
            self.add_prompt(message);
        }
        self.cx.out.event(EventKind::TaskStarted { prompt: text, max_steps });
        self.cx.set_planned_steps(Vec::new());
        self.grants.drop_mandate(&mut self.cx);
        self.tasks.set_task_status(TaskStatus::TaskRunning, &mut self.cx.out);
        // The prompt is committed with what follows: a step, a denial or a pause.
        self.next_step(at);
    }

    /// Adds a prompt to the thread, with notes about changes since the last message of the model.
    pub(super) fn add_prompt(&mut self, prompt: Message) {
        self.rewinds.add_point(&prompt, self.cx.numbers.tasks(), u64::from(self.cx.numbers.steps()) + 1);
        let prompt = self.guardrail.add_to_prompt(prompt);
        let prompt = self.rewinds.with_note(prompt);
        let prompt = self.command_outputs.add_to_prompt(prompt);
        self.window.push(prompt);
    }

    /// Adds notes for the model to the thread when the same task continues.
    pub(super) fn add_continuation(&mut self) {
        let thread = self.window.thread_mut();
        if thread.last().is_some_and(is_interruption) {
            thread.amend_last(|message| message.content.push(Part::Text { text: format!("\n\n{CONTINUED}") }));
        }
        self.guardrail.add_to_thread(thread);
    }
}

/// Steps.
impl TurnMachine {
    /// Adds the steering messages after the results of the previous step. One commit removes them from the queue and
    /// adds them to the step.
    fn take_steers(&mut self, at: InputTime) {
        let Some(text) = self.queue.take_steering(&mut self.cx.out) else { return };
        if let Some(message) = self.message(Role::User, vec![Part::Text { text: text.clone() }], at) {
            self.cx.out.record(Record::Steered { message: message.clone() });
            self.window.push(message);
        }
        self.cx.out.event(EventKind::Steered { text });
    }

    /// Starts a step, or ends the task if it must not continue.
    fn next_step(&mut self, at: InputTime) {
        self.tasks.set_task_status(TaskStatus::TaskRunning, &mut self.cx.out);
        let Some(task) = self.tasks.current() else { return };
        if task.is_cancelling() {
            self.end_task(TaskEnd::Cancelled);
            // The stop returned queued messages to the draft; messages sent since then start now.
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
        if let Some(failure) = self.spending.step_failure(&self.tasks, &self.cx).or_else(|| self.preflight(at)) {
            return self.on_forbidden(failure);
        }
        if std::mem::take(&mut self.cx.wants_clean_context) {
            self.window.drop_earlier(&mut self.cx);
        }
        self.take_steers(at);
        self.window.on_request_fitted();
        let step_id = self.cx.numbers.next_step();
        self.rewinds.count_step();
        self.tasks.set_step(Some(step_id.clone()), &mut self.cx.out);
        if let Some(task) = self.tasks.current() {
            let (task_id, step_count) = (task.id().clone(), task.step_count() + 1);
            self.cx.out.record(Record::StepStarted { task_id, step_id, step_count });
            self.cx.out.commit(Durability::Power);
            self.cx.out.event(EventKind::StepStarted { step_count });
        }
        self.request(0, at);
    }

    /// Plans calls that waited for an earlier one, and closes the step when all calls are done.
    pub(super) fn advance(&mut self, at: InputTime) {
        let results = self.with_calls(|batch, runner| batch.advance(runner)).flatten();
        self.tasks.set_status_for_calls(&mut self.cx.out);
        let Some(results) = results else { return };
        if self.tasks.is_user_command() {
            return self.end_user_command(at);
        }
        if let Some(message) = self.message(Role::Tool, results, at) {
            self.complete_step(message, at);
        }
    }

    /// Completes a step with the message that follows its response, then continues.
    pub(super) fn complete_step(&mut self, message: Message, at: InputTime) {
        if let Some(task) = self.tasks.current()
            && let Some(step_id) = task.step_id().cloned()
        {
            let (task_id, step_count) = (task.id().clone(), task.step_count() + 1);
            self.cx.out.record(Record::StepCompleted { task_id, step_id, step_count, message: message.clone() });
        }
        self.tasks.note_outcomes(&message);
        self.window.push(message);
        let Some((count, limit)) = self.tasks.complete_step() else { return };
        self.cx.out.event(EventKind::StepCompleted { step_count: count });
        if u64::from(count) == u64::from(limit) * STEP_WARNING_PERCENT / 100 && count < limit {
            self.cx.out.event(EventKind::StepLimitApproaching { step_count: count, max_steps: limit });
        }
        self.next_step(at);
    }

    /// Ends the open calls and closes the step with their results, so that no call in the thread lacks one.
    pub(super) fn close_calls(&mut self, at: InputTime) {
        self.with_calls(|batch, runner| batch.close(runner));
        self.close_step(at);
    }

    /// Closes the step with the results of its calls, without starting the next one.
    pub(super) fn close_step(&mut self, at: InputTime) {
        let results = self.with_calls(|batch, runner| batch.results(&runner.cx.options)).unwrap_or_default();
        if results.is_empty() || self.tasks.is_user_command() {
            return;
        }
        let Some(message) = self.message(Role::Tool, results, at) else { return };
        self.tasks.note_outcomes(&message);
        self.window.push(message.clone());
        self.tasks.set_phase(Phase::Paused);
        self.record_completed_step(message);
    }

    /// Counts and records a completed step.
    pub(super) fn record_completed_step(&mut self, message: Message) {
        let Some((step_count, _)) = self.tasks.complete_step() else { return };
        if let Some((task_id, Some(step_id))) = self.tasks.message_scope() {
            self.cx.out.record(Record::StepCompleted { task_id, step_id, step_count, message });
            self.cx.out.event(EventKind::StepCompleted { step_count });
        }
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.end_task(TaskEnd::Failed { failure });
    }

    /// Records the end of the task, then reports it. After a failure, queued messages wait for the user's decision.
    pub(super) fn end_task(&mut self, end: TaskEnd) {
        self.tasks.set_session_status(SessionStatus::Running, &mut self.cx.out);
        let Some(task) = self.tasks.current() else { return };
        let (task_id, step_count, totals) = (task.id().clone(), task.step_count(), task.totals());
        self.guardrail.on_task_end(&end);
        self.cx.out.record(Record::TaskEnded { task_id, step_count, end: end.clone() });
        let goal_waits = self.end_task_of_goal(&end);
        self.cx.out.commit(Durability::Power);
        let Some(task) = self.tasks.current() else { return };
        let (event, status) = match end.clone() {
            TaskEnd::Completed => {
                let answer = self.window.thread().last().filter(|message| message.role == Role::Assistant);
                let text = task.response_text(&answer.map(Message::text).unwrap_or_default());
                let (usage, cost_usd) = (totals.usage, totals.whole_cost_usd());
                (EventKind::TaskCompleted { text, usage, cost_usd, step_count }, TaskStatus::TaskCompleted)
            }
            TaskEnd::Failed { failure } => (EventKind::TaskFailed { failure, step_count }, TaskStatus::TaskFailed),
            TaskEnd::Cancelled => (EventKind::TaskCancelled { step_count }, TaskStatus::TaskCancelled),
        };
        self.cx.out.event(event);
        self.tasks.set_task_status(status, &mut self.cx.out);
        if end == TaskEnd::Completed {
            self.spending.end_task(&self.tasks);
        }
        self.tasks.end(&end, &mut self.cx.out);
        self.grants.drop_mandate(&mut self.cx);
        self.tasks.set_task_status(TaskStatus::Idle, &mut self.cx.out);
        if goal_waits.is_some() {
            self.report_goal(goal_waits);
        }
    }

    /// Ends a task that the model has finished, after its hooks have run.
    fn complete_after_hooks(&mut self, at: InputTime) {
        let is_stopping = self.tasks.current().is_none_or(Task::is_cancelling);
        let response = self.window.thread().last().filter(|message| message.role == Role::Assistant).map(Message::text);
        if is_stopping || !self.stop_hooks.begin(response.unwrap_or_default(), &mut self.cx) {
            return self.complete(at);
        }
        self.tasks.set_phase(Phase::Working(CallBatch::default()));
    }

    /// Ends a task that the model has finished.
    pub(super) fn complete(&mut self, at: InputTime) {
        self.end_completed();
        // A compaction requested during the task runs before the next one.
        let compacts =
            self.compactor.take_request().is_some_and(|wanted| self.compact_now(wanted.focus, AfterSummary::NextTask, at));
        if !compacts {
            self.start_next(at);
        }
    }

    /// Ends the task that the model has finished, or continues it with the message of a hook.
    fn stop_hooked(&mut self, outcome: EventHooks, at: InputTime) {
        let Some(text) = self.stop_hooks.settle(outcome, &mut self.cx) else { return self.complete(at) };
        if let Some(message) = self.message(Role::User, vec![Part::Text { text }], at) {
            self.complete_step(message, at);
        }
    }

    /// Ends a task that the model has finished, without starting the next action.
    pub(super) fn end_completed(&mut self) {
        if let Some((step_count, _)) = self.tasks.complete_step() {
            self.cx.out.event(EventKind::StepCompleted { step_count });
        }
        self.end_task(TaskEnd::Completed);
    }

    /// Pauses the task until the user continues it. All records are committed.
    pub(super) fn pause(&mut self, failure: Failure) {
        self.tasks.set_phase(Phase::Paused);
        self.leave_response();
        self.spending.set_paused(failure.kind == FailureKind::BudgetExceeded);
        self.cx.out.record(Record::Paused { failure: failure.clone() });
        let goal_waits = self.pause_goal(GoalReason::TaskFailed, "goal paused: its task is paused");
        self.cx.out.commit(Durability::Power);
        self.cx.out.event(EventKind::SessionPaused { failure });
        self.tasks.set_session_status(SessionStatus::Paused, &mut self.cx.out);
        if goal_waits.is_some() {
            self.report_goal(goal_waits);
        }
    }

    /// Handles a request with an overlong conversation when no budget is left to shorten it.
    fn leave_response(&mut self) {
        if self.tasks.task_status() == TaskStatus::ProcessingResponse {
            self.tasks.set_task_status(TaskStatus::TaskRunning, &mut self.cx.out);
        }
    }

    /// Continues at the request of the user: a paused task, a task that ended early, or the next queued message.
    pub(super) fn continue_on_request(&mut self, at: InputTime) {
        if self.compactor.continue_after(&mut self.cx) {
            return;
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
        if !paused && !self.tasks.continue_ended_task(self.cx.options.max_steps, &mut self.cx.out) {
            if self.queue.is_empty() {
                if !self.continue_goal(at) {
                    self.cx.out.notice("nothing to continue");
                }
                return;
            }
            self.resume_goal();
            return self.start_next(at);
        }
        self.use_chosen_model();
        self.tasks.stop_cancelling();
        self.tasks.set_session_status(SessionStatus::Running, &mut self.cx.out);
        self.cx.record_policy();
        self.resume_goal();
        self.cx.out.record(Record::Continued);
        self.goals.on_task_continued();
        self.add_continuation();
        self.command_outputs.add_to_thread(self.window.thread_mut());
        self.next_step(at);
    }
}

/// Rounds of the goal.
impl TurnMachine {
    /// Reports the goal, if one was set.
    pub(super) fn report_goal(&mut self, message: Option<String>) {
        if let Some(state) = self.goals.state(self.spending.totals().cost_usd, message) {
            self.cx.out.event(EventKind::GoalChanged(state));
        }
    }

    /// Starts the next action of the goal, if nothing else runs.
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
        self.report_goal(None);
        self.begin_user_command(command);
    }

    /// Handles the end of the check. Its outcome and the changed files determine how the goal continues.
    pub(super) fn end_check(&mut self, at: InputTime) {
        let compares = self.goals.is_running() && !self.tasks.is_cancelling();
        match self.check_outcome() {
            CheckOutcome::Passed | CheckOutcome::Failed { .. } if compares => self.goals.begin_comparison(&mut self.cx),
            _ => self.conclude_check(None, at),
        }
    }

    pub(super) fn on_changes_listed(&mut self, ticket: u64, files: Option<&ChangedFiles>, at: InputTime) {
        if self.goals.end_comparison(ticket) && self.tasks.is_check() {
            self.conclude_check(files, at);
        }
    }

    fn conclude_check(&mut self, files: Option<&ChangedFiles>, at: InputTime) {
        self.goals.drop_comparison();
        let message = if self.goals.is_running() { self.settle_check(files) } else { None };
        self.finish_user_command();
        self.report_goal(message);
        self.start_next(at);
    }

    /// Records the result of the check for the goal. Returns the message for the user.
    fn settle_check(&mut self, files: Option<&ChangedFiles>) -> Option<String> {
        let check = self.goals.check().unwrap_or_default().to_owned();
        let outcome = if self.tasks.is_cancelling() { CheckOutcome::Interrupted } else { self.check_outcome() };
        let (reason, why) = match outcome {
            CheckOutcome::Passed => {
                let unknown = if files.is_none() { "; which files changed is unknown" } else { "" };
                let why = format!("goal reached: `{check}` passed{}{unknown}", self.check_time());
                return self.goals.end(GoalReason::CheckPassed, why, files, &mut self.cx);
            }
            CheckOutcome::Failed { ended, output } => match self.goals.fail(&ended, &output, files, &mut self.cx) {
                None => return Some(format!("check failed: `{check}` ({ended}){}", self.check_time())),
                Some((GoalReason::Blocked, why)) => (GoalReason::Blocked, why),
                Some((reason, why)) => return self.goals.end(reason, why, files, &mut self.cx),
            },
            CheckOutcome::DidNotRun(why) => (GoalReason::CheckDidNotRun, format!("goal paused: `{check}` did not run: {why}")),
            CheckOutcome::Interrupted => (GoalReason::Interrupted, "goal paused: you interrupted the check".to_owned()),
        };
        self.goals.pause(reason, why.clone(), &mut self.cx);
        Some(why)
    }

    fn check_outcome(&self) -> CheckOutcome {
        let result = self.tasks.calls().and_then(|batch| batch.calls().first()?.result());
        result.map_or(CheckOutcome::Interrupted, |result| CheckOutcome::from_result(&result))
    }

    /// Formats the duration of the check.
    fn check_time(&self) -> String {
        format!(" in {:.1} s", self.goals.check_ms() as f64 / 1_000.0)
    }
}

/// Commands of the user.
impl TurnMachine {
    /// Runs a command if nothing else is running. A paused task waits until the command has ended.
    pub(super) fn run_user_command(&mut self, line: &str, shared: bool) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.is_busy() && !self.tasks.is_paused() {
            self.cx.out.notice("a task is running: your command is in the draft, send it again when the task is done");
            let text = format!("{}{line}", if shared { "!" } else { "!!" });
            return self.queue.return_to_draft(text, &mut self.cx.out);
        }
        self.begin_user_command(UserCommand::from_line(line, shared));
    }

    /// Starts a command of the user, or the check of the goal.
    pub(super) fn begin_user_command(&mut self, command: UserCommand) {
        let (task_id, step_id) = (self.cx.numbers.next_task(), self.cx.numbers.next_step());
        let (line, shared, check) = (command.line().to_owned(), command.is_shared(), command.is_check());
        let call = command.call(self.cx.numbers.tasks());
        self.tasks.begin_user_command((task_id.clone(), step_id.clone()), call.clone(), command, &mut self.cx.out);
        self.cx.record_policy();
        self.cx.record_choices();
        self.cx.out.record(Record::OwnStarted { task_id, step_id, call: call.clone(), shared, check });
        self.cx.out.commit(Durability::Process);
        self.tasks.set_session_status(SessionStatus::Running, &mut self.cx.out);
        let tool_call_id = call.tool_call_id.clone();
        self.cx.out.event(EventKind::OwnCommandStarted { tool_call_id, line, shared, check });
        self.tasks.set_task_status(TaskStatus::TaskRunning, &mut self.cx.out);
        self.tasks.set_status_for_calls(&mut self.cx.out);
        self.cx.out.effect(Effect::Plan(vec![(0, call)]));
    }

    /// Ends the command. Its result is saved for the next message; a paused task stays paused, and waiting work starts.
    fn end_user_command(&mut self, at: InputTime) {
        if self.tasks.is_check() {
            return self.end_check(at);
        }
        self.finish_user_command();
        if self.tasks.current().is_none() {
            return self.start_next(at);
        }
        if self.queue.is_empty() {
            return self.tasks.set_session_status(SessionStatus::Paused, &mut self.cx.out);
        }
        // A message sent in the meantime ends the paused task, like a prompt.
        self.end_task(TaskEnd::Cancelled);
        self.start_next(at);
    }

    /// Records and reports the end of the command, and returns to the task that was set aside.
    pub(super) fn finish_user_command(&mut self) {
        let said = self.user_command_report();
        let Some(task_id) = self.tasks.current().map(|task| task.id().clone()) else { return };
        let first = self.tasks.calls().and_then(|batch| batch.calls().first());
        let tool_call_id = first.map(|call| call.call.tool_call_id.clone());
        self.tasks.set_task_status(TaskStatus::TaskRunning, &mut self.cx.out);
        self.cx.out.record(Record::OwnEnded { task_id, said: said.clone(), waits: self.tasks.has_aside() });
        self.cx.out.commit(Durability::Process);
        if let Some(tool_call_id) = tool_call_id {
            self.cx.out.event(EventKind::OwnCommandEnded { tool_call_id, shared: said.is_some() });
        }
        self.tasks.set_task_status(TaskStatus::TaskCompleted, &mut self.cx.out);
        self.tasks.drop_current(&mut self.cx.out);
        self.tasks.set_task_status(TaskStatus::Idle, &mut self.cx.out);
        self.command_outputs.add(said);
        self.tasks.end_user_command(&mut self.cx.out);
    }

    /// Returns the command and its output for the thread, if the command ran and is shared with the model.
    pub(super) fn user_command_report(&self) -> Option<String> {
        let task = self.tasks.current()?;
        let result = self.tasks.calls().and_then(|batch| batch.calls().first()?.result());
        task.user_command()?.report(result, self.cx.options.result_bytes(1))
    }
}

/// Requests.
impl TurnMachine {
    /// Handles a request that must not be sent.
    fn on_forbidden(&mut self, failure: Failure) {
        match failure.kind {
            FailureKind::PolicyExpired => {
                self.leave_response();
                self.cx.out.event(EventKind::PolicyExpired { message: failure.message.clone() });
                self.pause(failure);
            }
            // A user may raise the budget.
            FailureKind::BudgetExceeded if self.cx.options.approver == Approver::User => self.pause(failure),
            _ => self.fail(failure),
        }
    }

    /// Returns the reason why no request may be sent: an expired policy, a model that is not allowed, a limit that no
    /// request can meet, or an exhausted budget.
    fn preflight(&self, at: InputTime) -> Option<Failure> {
        self.cx.request_failure(at.now).or_else(|| self.window.window_failure(&self.cx)).or_else(|| self.budget_failure(at))
    }

    /// Returns the reason why the next request may not be sent, if its estimate would exceed a budget.
    pub(super) fn budget_failure(&self, at: InputTime) -> Option<Failure> {
        self.spending.request_failure(&self.next_request(at), &self.tasks, &self.cx)
    }

    /// Returns the estimated usage of the next request.
    pub(super) fn next_request(&self, at: InputTime) -> Usage {
        self.spending.next_request(self.window.next_input_tokens(&self.cx), &self.cx, at)
    }

    /// Sends the request unless it is forbidden.
    pub(super) fn request_if_allowed(&mut self, attempt: u32, at: InputTime) {
        if self.end_task_at_goal_limit(at) {
            return;
        }
        match self.preflight(at) {
            None => self.request(attempt, at),
            Some(failure) => self.on_forbidden(failure),
        }
    }

    /// Sends the thread after making space for it. `attempt` counts retries of the same request.
    fn request(&mut self, attempt: u32, at: InputTime) {
        if self.make_room(attempt, at) {
            return;
        }
        if let Err(failure) = self.window.fit(&mut self.cx) {
            return self.fail(failure);
        }
        self.choice.report_effort(&mut self.cx);
        let request = ModelRequest {
            system: self.cx.options.system.clone(),
            messages: self.window.thread().window(),
            tools: self.cx.options.tools.clone(),
            max_output_tokens: self.window.output_limit(&self.cx),
            images: None,
            effort: self.cx.options.effort,
        };
        self.tasks.set_phase(Phase::Requesting(ResponseStream::new(attempt, at.now)));
        self.window.begin_request(&self.cx);
        self.tasks.set_task_status(TaskStatus::WaitingForLlm, &mut self.cx.out);
        let model = self.cx.options.model.clone();
        self.announce_request(model, self.window.next_input_tokens(&self.cx));
        self.cx.out.effect(Effect::Request(request));
    }

    /// Records and reports a request before it is sent.
    fn announce_request(&mut self, model: ModelFacts, estimated_input_tokens: u64) {
        self.prices.record(&model, &mut self.cx);
        let name = model.name.clone();
        self.spending.begin_request(model, estimated_input_tokens);
        self.cx.out.event(EventKind::LlmRequestStarted { model: name, estimated_input_tokens });
    }

    pub(super) fn on_delta(&mut self, delta: Delta, at: InputTime) {
        self.spending.on_delta(&delta);
        match (delta, self.tasks.stream_mut()) {
            (Delta::Text(text), Some((stream, step_id))) => stream.on_text(text, step_id, &mut self.cx.out, at.now),
            (Delta::Reasoning(text), Some((stream, _))) => stream.on_reasoning(text, &mut self.cx.out),
            (Delta::ToolCallProgress { tool_name, bytes }, Some(_)) => {
                self.cx.out.event(EventKind::ToolCallProgress { tool_name, bytes });
            }
            (Delta::Completed(completion), Some(_)) => self.on_response(completion, at),
            // The response no longer counts.
            (_, None) => {}
        }
    }

    fn on_response(&mut self, completion: Completion, at: InputTime) {
        let Some(stream) = self.tasks.stream() else { return };
        let latency_ms = at.millis_since(stream.requested_at());
        self.tasks.set_task_status(TaskStatus::ProcessingResponse, &mut self.cx.out);
        let Completion { content, stop_reason, usage, model } = completion;
        self.window.learn(usage);
        let model = model.unwrap_or_else(|| self.spending.request_model(&self.cx));
        let spent = self.spending.end_request(usage, &content, &mut self.tasks, &self.cx, at);
        let request = CompletedRequest { spent, stop_reason, latency_ms, model };
        if let Some(failure) = discard_reason(stop_reason) {
            return self.on_rejected_response(failure, request, at);
        }
        self.window.on_request_fitted();
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
            // An empty response is recorded for its cost, but not sent back, because providers refuse it.
            self.cx.out.record(request.record(message.clone()));
            self.tasks.add_response(&message, stop_reason);
            if !empty {
                self.window.push(message);
            }
        }
        self.spending.report(request, &self.tasks, &mut self.cx);
        if calls.is_empty() {
            self.on_text_response(stop_reason, empty, at);
        } else {
            self.on_call_response(calls, stop_reason, at);
        }
    }

    /// Discards a response that the provider withdrew. It is not added to the thread, where it would look like the model's own text.
    fn on_rejected_response(&mut self, failure: Failure, request: CompletedRequest, at: InputTime) {
        self.discard_response(&failure.message);
        if let Some(message) = self.message(Role::Assistant, Vec::new(), at) {
            self.cx.out.record(request.record(message));
        }
        self.spending.report(request, &self.tasks, &mut self.cx);
        self.on_request_failed(failure, at);
    }

    /// Discards a response that was already partly shown.
    fn discard_response(&mut self, reason: &str) {
        if let Some((stream, step_id)) = self.tasks.stream_mut().filter(|(stream, _)| stream.is_shown()) {
            stream.discard(reason, step_id, &mut self.cx.out);
        }
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
        self.tasks.set_task_status(TaskStatus::CheckingPolicy, &mut self.cx.out);
        let rows = self.tasks.guard_mut().map(|guard| guard.count(&calls)).unwrap_or_default();
        let batch = CallBatch::from_response(calls, rows, stop_reason == StopReason::MaxTokens);
        let to_plan = batch.to_plan();
        self.tasks.set_phase(Phase::Working(batch));
        if to_plan.is_empty() {
            self.on_planned(Vec::new(), at);
        } else if self.cx.options.hooks.contains(HookEvent::PreToolUse) {
            self.cx.out.effect(Effect::HookCalls(to_plan));
        } else {
            self.cx.out.effect(Effect::Plan(to_plan));
        }
    }

    pub(super) fn on_model_error(&mut self, error: ModelError, at: InputTime) {
        let Some(stream) = self.tasks.stream() else { return };
        let (attempt, since) = (stream.attempt() + 1, stream.requested_at());
        self.discard_response(&error.failure.message);
        let (wasted, delay_ms) = self.count_failed_request(&error, attempt, since, at);
        if !error.failure.retryable {
            return self.on_request_failed(error.failure, at);
        }
        let Some(delay_ms) = delay_ms else {
            return self.fall_back_or_pause(final_failure(error, attempt, &self.cx.options.backoff));
        };
        let ticket = self.cx.numbers.next_ticket();
        self.tasks.set_phase(Phase::Retrying { attempt, ticket });
        self.report_retry(error, attempt, delay_ms, wasted);
        self.spending.warn(&self.tasks, &mut self.cx);
        self.cx.out.effect(Effect::Wake { after_ms: delay_ms, ticket });
    }

    /// Counts the usage of a failed request, and reports it unless the request is retried. Returns the usage, and the
    /// delay before the retry.
    fn count_failed_request(
        &mut self,
        error: &ModelError,
        attempt: u32,
        since: Timestamp,
        at: InputTime,
    ) -> (Option<Expense>, Option<u64>) {
        let model = self.spending.request_model(&self.cx);
        let wasted = self.spending.waste(Some(error), &mut self.tasks, &mut self.cx);
        let delay_ms = self.cx.options.backoff.delay_ms(attempt, error.retry_after, at.jitter);
        if !error.failure.retryable || delay_ms.is_none() {
            self.report_waste(wasted, model, StopReason::Error, at.millis_since(since));
        }
        (wasted, delay_ms)
    }

    fn report_retry(&mut self, error: ModelError, attempt: u32, delay_ms: u64, wasted: Option<Expense>) {
        let max_attempts = self.cx.options.backoff.max_retries;
        self.cx.out.commit(Durability::Process);
        self.cx.out.event(retry_event(error, (attempt, max_attempts), delay_ms, wasted));
    }

    /// Reports the usage of a failed request that is not retried. For a retried request, the retry event reports it.
    fn report_waste(&mut self, wasted: Option<Expense>, model: String, stop_reason: StopReason, latency_ms: u64) {
        let Some(spent) = wasted else { return };
        self.spending.report(CompletedRequest { spent, stop_reason, latency_ms, model }, &self.tasks, &mut self.cx);
    }

    /// Counts the request in progress, if there is one, before it is stopped.
    pub(super) fn waste_current_request(&mut self, at: InputTime) {
        let of_task = self.tasks.stream().map(ResponseStream::requested_at);
        if let Some(since) = self.compactor.requested_at().or(of_task) {
            let model = self.spending.request_model(&self.cx);
            let wasted = self.spending.waste(None, &mut self.tasks, &mut self.cx);
            self.report_waste(wasted, model, StopReason::Cancelled, at.millis_since(since));
        }
    }

    /// Handles a request that failed permanently. An overlong request is shortened once.
    fn on_request_failed(&mut self, failure: Failure, at: InputTime) {
        if failure.kind != FailureKind::ContextTooLong {
            return self.fail(failure);
        }
        if !self.shorten(at) {
            self.fail(self.window.with_hint(failure, &self.cx));
        }
    }

    /// Shortens a request that the provider rejected as too long, and retries it. Returns whether it was sent.
    fn shorten(&mut self, at: InputTime) -> bool {
        let overlong = self.window.on_overlong_request(&self.cx);
        if overlong == OverlongRequest::Repeated {
            return false;
        }
        if let Some(failure) = self.preflight(at) {
            self.on_forbidden(failure);
            return true;
        }
        if overlong == OverlongRequest::OtherModel {
            self.request(0, at);
            return true;
        }
        let then = AfterSummary::Request { attempt: 0 };
        if self.begin_compaction(CompactionTrigger::TooLong, None, then, at).is_ok() {
            return true;
        }
        let shorter = self.window.drop_half(&mut self.cx);
        if shorter {
            self.request(0, at);
        }
        shorter
    }

    /// Retries a failed request immediately, at the request of the user.
    pub(super) fn retry_now(&mut self, at: InputTime) {
        if let Some(ticket) = self.compactor.ticket() {
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
        if self.on_summary_timer(ticket, at) {
            return;
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
    /// Compacts the conversation at the request of the user.
    pub(super) fn compact(&mut self, focus: Option<String>, at: InputTime) {
        let focus = focus.map(|focus| focus.trim().to_owned()).filter(|focus| !focus.is_empty());
        if self.compactor.is_running() {
            return self.cx.out.notice(format!("{COMPACTION_IS}already running"));
        }
        if self.rewinds.is_running() {
            return self.cx.out.notice("a rewind is restoring files; try again in a moment");
        }
        let runs = self.tasks.current().is_some() && !self.tasks.is_paused();
        if runs || self.mentions.is_reading() || self.prompt_hooks.is_running() {
            self.compactor.request_later(focus);
            return self.cx.out.notice("the conversation will be compacted before the next step");
        }
        self.compact_now(focus, AfterSummary::Nothing, at);
    }

    /// Starts a compaction now. Returns whether it started.
    fn compact_now(&mut self, focus: Option<String>, then: AfterSummary, at: InputTime) -> bool {
        if let Some(failure) = self.preflight(at) {
            self.cx.out.notice(failure.problem().with_location(NOT_COMPACTED).one_line());
            return false;
        }
        match self.begin_compaction(CompactionTrigger::Asked, focus, then, at) {
            Ok(()) => true,
            Err(why) => {
                self.cx.out.notice(why);
                false
            }
        }
    }

    /// Starts a compaction before a request if one is due. Returns whether it started; the request then follows it.
    fn make_room(&mut self, attempt: u32, at: InputTime) -> bool {
        let then = AfterSummary::Request { attempt };
        if let Some(SummaryRequest { focus }) = self.compactor.take_request() {
            match self.begin_compaction(CompactionTrigger::Asked, focus, then, at) {
                Ok(()) => return true,
                Err(why) => self.cx.out.notice(why),
            }
        }
        if !self.window.is_full(&self.cx) {
            return false;
        }
        let begun = self.begin_compaction(CompactionTrigger::Threshold, None, then, at).is_ok();
        if !begun {
            self.window.pause_auto_compaction(&self.cx);
        }
        begun
    }

    /// Starts a compaction. The error explains why a compaction would not help.
    fn begin_compaction(
        &mut self,
        trigger: CompactionTrigger,
        focus: Option<String>,
        then: AfterSummary,
        at: InputTime,
    ) -> Result<(), String> {
        let task = self.tasks.continuable_id();
        self.compactor.begin((trigger, focus, then), task.as_ref(), &self.window, &mut self.cx, at)?;
        if self.compactor.precedes_request() {
            self.tasks.set_phase(Phase::Compacting);
        }
        self.compactor.write_with(self.summaries.next(&self.prices, &self.cx));
        self.request_summary(at);
        Ok(())
    }

    fn request_summary(&mut self, at: InputTime) {
        if let Some(why) = self.summary_obstacle(at) {
            self.replace_summary_model(&why);
        }
        let Some(call) = self.compactor.request(&self.window, &self.cx, at) else { return };
        let SummaryCall { request, model, estimated_input_tokens } = call;
        if matches!(self.tasks.phase(), Some(Phase::Compacting)) {
            self.tasks.set_task_status(TaskStatus::WaitingForLlm, &mut self.cx.out);
        }
        let is_other = model.is_some();
        self.announce_request(model.unwrap_or_else(|| self.cx.options.model.clone()), estimated_input_tokens);
        self.cx.out.effect(if is_other { Effect::RequestSummary(request) } else { Effect::Request(request) });
    }

    /// Returns the reason why the summary model cannot write the current summary.
    fn summary_obstacle(&self, at: InputTime) -> Option<String> {
        let model = self.compactor.model()?;
        if let Err(denial) = self.cx.policy.check_model(&model.name) {
            return Some(format!("{} (rule: {})", denial.reason, denial.rule));
        }
        let messages = self.compactor.message_tokens(&self.window);
        let Some(tokens) = self.window.summary_input(model, messages, &self.cx) else {
            return Some("the messages do not fit its context window".to_owned());
        };
        let over_budget = self.spending.other_request_failure(model, tokens, &self.tasks, &self.cx, at)?;
        Some(match over_budget.remedy {
            Some(Remedy::AssumePrice) => "its price is unknown, and there is a budget in dollars".to_owned(),
            _ => over_budget.text().to_owned(),
        })
    }

    /// Lets the model in use write the summary, and reports the reason.
    fn replace_summary_model(&mut self, why: &str) {
        if let Some(name) = self.compactor.model().map(|model| model.name.clone()) {
            report_replacement(&name, why, &mut self.cx);
            self.compactor.write_with(None);
        }
    }

    /// Handles the stream of a summary. Its text is not shown as a response, but its usage is counted.
    pub(super) fn on_summary_delta(&mut self, delta: Delta, at: InputTime) {
        let Some(since) = self.compactor.requested_at() else { return };
        self.spending.on_delta(&delta);
        let Delta::Completed(Completion { content, stop_reason, usage, model }) = delta else { return };
        let model = model.unwrap_or_else(|| self.spending.request_model(&self.cx));
        let spent = self.spending.end_request(usage, &content, &mut self.tasks, &self.cx, at);
        let request = CompletedRequest { spent, stop_reason, latency_ms: at.millis_since(since), model };
        self.spending.report(request, &self.tasks, &mut self.cx);
        let response = (content.as_slice(), stop_reason);
        let outcome = self.compactor.on_response(response, spent, &mut self.window, &mut self.cx, at);
        match outcome {
            SummaryOutcome::Done => self.after_compaction(at),
            SummaryOutcome::TooLong | SummaryOutcome::Failed(_) if self.compactor.model().is_some() => {
                let why = outcome.reason();
                self.replace_summary_model(why);
                self.cx.out.commit(Durability::Process);
                self.request_summary_if_allowed(at);
            }
            SummaryOutcome::TooLong => self.shorten_summary(at),
            SummaryOutcome::Failed(why) => self.give_up_compaction(why, at),
        }
    }

    pub(super) fn on_summary_error(&mut self, error: ModelError, at: InputTime) {
        let Some(since) = self.compactor.requested_at() else { return };
        let Some(attempt) = self.compactor.count_attempt() else { return };
        let (wasted, delay_ms) = self.count_failed_request(&error, attempt, since, at);
        let delay_ms = delay_ms.filter(|_| error.failure.retryable);
        if self.compactor.model().is_some() && delay_ms.is_none() {
            self.replace_summary_model(&error.failure.message);
            self.cx.out.commit(Durability::Process);
            return self.request_summary_if_allowed(at);
        }
        if error.failure.kind == FailureKind::ContextTooLong {
            return self.shorten_summary(at);
        }
        let Some(delay_ms) = delay_ms else {
            if !error.failure.retryable {
                return self.give_up_compaction(&error.failure.message, at);
            }
            return self.fall_back_or_end_summary(error.failure, at);
        };
        let ticket = self.cx.numbers.next_ticket();
        self.compactor.wait_for(ticket);
        self.report_retry(error, attempt, delay_ms, wasted);
        self.cx.out.effect(Effect::Wake { after_ms: delay_ms, ticket });
    }

    /// Opens the next fallback model for a summary whose retries are exhausted. If there is none, the task waits for
    /// the user.
    pub(super) fn fall_back_or_end_summary(&mut self, failure: Failure, at: InputTime) {
        if let Some(name) = self.fallbacks.next(&failure, &self.cx) {
            let ticket = self.cx.numbers.next_ticket();
            self.compactor.wait_for_model(ticket);
            return self.cx.out.effect(Effect::OpenModel { key: None, name });
        }
        if !self.compactor.precedes_request() {
            return self.give_up_compaction(&failure.message, at);
        }
        // The request of the task would fail too.
        self.compactor.finish();
        self.pause(failure);
    }

    /// Shortens a summary request that does not fit.
    fn shorten_summary(&mut self, at: InputTime) {
        if !self.compactor.shorten(&self.window) {
            return self.give_up_compaction("the messages to summarize do not fit the context window either", at);
        }
        self.cx.out.commit(Durability::Process);
        self.request_summary_if_allowed(at);
    }

    /// Retries the summary request after its delay. Returns whether the ticket belongs to that delay.
    pub(super) fn on_summary_timer(&mut self, ticket: u64, at: InputTime) -> bool {
        let is_for_it = self.compactor.ticket() == Some(ticket);
        if is_for_it {
            self.request_summary_if_allowed(at);
        }
        is_for_it
    }

    /// Sends the summary request unless it is forbidden. If it is, a task that needs the summary waits or fails. Other
    /// cases are reported when the compaction starts.
    pub(super) fn request_summary_if_allowed(&mut self, at: InputTime) {
        if self.compactor.precedes_request() && self.end_task_at_goal_limit(at) {
            return;
        }
        let Some(failure) = self.preflight(at) else { return self.request_summary(at) };
        if self.compactor.precedes_request() {
            self.compactor.finish();
            return self.on_forbidden(failure);
        }
        self.cx.out.notice(failure.problem().with_location(NOT_COMPACTED).one_line());
        self.cx.out.record(Record::CompactionGivenUp);
        self.after_compaction(at);
    }

    fn give_up_compaction(&mut self, why: &str, at: InputTime) {
        self.compactor.give_up(why, &mut self.window, &mut self.cx);
        self.after_compaction(at);
    }

    fn after_compaction(&mut self, at: InputTime) {
        match self.compactor.finish() {
            None => {}
            Some(AfterSummary::Nothing) => self.cx.out.commit(Durability::Process),
            Some(AfterSummary::Request { attempt }) => self.request_if_allowed(attempt, at),
            Some(AfterSummary::Continue) => self.continue_on_request(at),
            Some(AfterSummary::NextTask) => {
                self.cx.out.commit(Durability::Process);
                self.start_next(at);
            }
        }
    }

    /// Stops the compaction without changes. Returns whether one was in progress outside a running task.
    pub(super) fn stop_compaction(&mut self, at: InputTime) -> bool {
        let is_requested = self.compactor.requested_at().is_some();
        if is_requested {
            self.waste_current_request(at);
        }
        let Some(then) = self.compactor.finish() else { return false };
        if is_requested {
            self.cx.out.effect(Effect::StopModel);
        }
        self.cx.out.record(Record::CompactionGivenUp);
        self.cx.out.commit(Durability::Process);
        self.window.pause_auto_compaction(&self.cx);
        self.cx.out.notice(format!("{NOT_COMPACTED}: stopped by you; the conversation is unchanged"));
        !matches!(then, AfterSummary::Request { .. })
    }

    /// Restores the messages that the last compaction replaced.
    pub(super) fn undo_compaction(&mut self) {
        if self.compactor.is_running() {
            return self.cx.out.notice(format!("{COMPACTION_IS}running; stop it first"));
        }
        if self.rewinds.is_running() {
            return self.cx.out.notice("a rewind is restoring files; try again in a moment");
        }
        if !self.window.thread().has_summary() {
            return self.cx.out.notice("nothing to undo: this conversation has not been compacted");
        }
        self.cx.out.record(Record::CompactionUndone);
        self.cx.out.commit(Durability::Power);
        self.window.undo_summary(&self.cx);
        let tokens = self.window.next_input_tokens(&self.cx);
        self.cx.out.event(EventKind::CompactionUndone { tokens });
        let limit = self.window.input_limit(&self.cx);
        if tokens > limit {
            self.cx.out.notice(format!(
                "the messages are restored: about {}, of which {limit} fit; the next request drops the oldest",
                format_count(tokens, "token", "tokens")
            ));
        }
    }
}
