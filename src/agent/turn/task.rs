//! Task from its prompt to its end, step by step.

use super::super::limits::STEP_WARNING_PERCENT;
use super::{Approver, CallState, Effect, InputTime, Phase, Stream, Task, TurnMachine};
use crate::ports::{Durability, ModelRequest, Record, TaskEnd};
use crate::protocol::{EventKind, Failure, FailureKind, Part, Role, SessionStatus, StepId, TaskId, TaskStatus, counted};
use crate::session::Totals;

impl TurnMachine {
    pub(super) fn prompt(&mut self, text: String, at: InputTime) {
        if text.trim().is_empty() {
            return;
        }
        let paused = self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Paused));
        if paused {
            // Nothing could start: the session stays paused, and the task with it.
            if let Some(failure) = self.forbids(at) {
                self.give_back(text);
                self.notice("the session is paused; your prompt is back in the draft");
                return self.emit(EventKind::SessionPaused { failure });
            }
            self.notice("session resumed: the paused task ends here, and your prompt starts the next one");
            self.end(TaskEnd::Cancelled);
        }
        if self.is_busy() {
            self.next_after_compaction();
            self.enqueue(text, false);
        } else {
            let outputs = self.queue.stop_steering();
            self.perform(outputs);
            self.begin(text, at);
        }
    }

    pub(super) fn enqueue(&mut self, text: String, steer: bool) {
        let outputs = self.queue.add(text, steer);
        self.perform(outputs);
    }

    /// Moves a message to the draft.
    pub(super) fn give_back(&mut self, text: String) {
        self.perform(self.queue.return_to_draft(text));
    }

    pub(super) fn empty_queue(&mut self) {
        let outputs = self.queue.return_all_to_draft();
        self.perform(outputs);
    }

    /// Sends a message to the model before its next step. In a paused task it waits for `Continue`; if no task runs, or it is being
    /// stopped, the message is a prompt.
    pub(super) fn steer(&mut self, text: String, at: InputTime) {
        match &self.task {
            Some(task) if !task.cancelling => {
                let paused = matches!(task.phase, Phase::Paused);
                self.enqueue(text, true);
                if paused {
                    self.notice("the task is paused; the model gets your message when the task continues");
                }
            }
            // The task has no step yet, but will have.
            None if self.opening.is_some() => self.enqueue(text, true),
            Some(_) | None => self.prompt(text, at),
        }
    }

    /// Adds the steering messages after the results of the previous step. Leaving the queue and becoming a message are one commit, that of
    /// the step.
    fn take_steers(&mut self, at: InputTime) {
        let Some((text, outputs)) = self.queue.take_steering() else { return };
        self.perform(outputs);
        if let Some(message) = self.message(Role::User, vec![Part::Text { text: text.clone() }], at) {
            self.note(Record::Steered { message: message.clone() });
            self.thread.push(message);
        }
        self.emit(EventKind::Steered { text });
    }

    /// Starts the next queued message. Leaving the queue and becoming a task are one commit.
    pub(super) fn start_next(&mut self, at: InputTime) {
        if let Some((text, outputs)) = self.queue.take_next() {
            self.perform(outputs);
            self.begin(text, at);
        }
    }

    /// Returns whether a prompt has to wait.
    pub(super) fn is_busy(&self) -> bool {
        self.task.is_some() || self.opening.is_some() || self.is_compacting() || self.rewinds.is_running()
    }

    /// Returns whether a prompt is waiting for the files it mentions.
    pub(super) fn is_busy_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Starts a task. `attached`: content shown to the model with the prompt.
    pub(super) fn start(&mut self, text: String, attached: Vec<Part>, at: InputTime) {
        self.counters.tasks += 1;
        self.count_anew();
        self.ended = None;
        self.task = Some(Task {
            id: TaskId::new(format!("task_{:03}", self.counters.tasks)),
            step_id: None,
            step_count: 0,
            max_steps: self.options.max_steps,
            totals: Totals::default(),
            phase: Phase::Paused,
            parts: super::Parts::default(),
            cancelling: false,
            guard: super::loop_guard::LoopGuard::default(),
            own: None,
        });
        let max_steps = self.options.max_steps;
        self.note_policy();
        self.note_choices();
        let content = std::iter::once(Part::Text { text: text.clone() }).chain(attached).collect();
        if let Some(message) = self.message(Role::User, content, at) {
            self.note(Record::TaskStarted { prompt: message.clone(), max_steps });
            self.rewinds.add_point(&message, self.counters.tasks, u64::from(self.counters.steps) + 1);
            let message = self.told_of_block(message);
            let message = self.rewinds.with_note(message);
            let message = self.told_of_own(message);
            self.thread.push(message);
        }
        self.emit(EventKind::TaskStarted { prompt: text, max_steps });
        self.enter(TaskStatus::TaskRunning);
        // The prompt is committed with what follows: a step, a denial or a pause.
        self.next_step(at);
    }

    /// Starts a step, or ends the task if it may not continue.
    pub(super) fn next_step(&mut self, at: InputTime) {
        self.enter(TaskStatus::TaskRunning);
        let Some(task) = &self.task else { return };
        if task.cancelling {
            self.end(TaskEnd::Cancelled);
            // The stop returned queued messages to the draft; messages sent since then start now.
            return self.start_next(at);
        }
        if task.step_count >= task.max_steps {
            let (count, limit) = (task.step_count, task.max_steps);
            return self.fail(Failure::new(
                FailureKind::MaxStepsExceeded,
                format!("the task reached its limit of {} ({count} done)", counted(limit.into(), "step", "steps")),
                "continue to allow as many steps again; --max-steps sets the limit",
            ));
        }
        if let Some(failure) = self.budget_check().out_of_steps().or_else(|| self.preflight(at)) {
            return self.forbidden(failure);
        }
        self.take_steers(at);
        self.request_fitted();
        self.counters.steps += 1;
        self.rewinds.count_step();
        let step_id = StepId::new(format!("step_{:04}", self.counters.steps));
        if let Some(task) = &mut self.task {
            task.step_id = Some(step_id.clone());
            let (task_id, step_count) = (task.id.clone(), task.step_count + 1);
            self.note(Record::StepStarted { task_id, step_id, step_count });
            self.commit(Durability::Power);
            self.emit(EventKind::StepStarted { step_count });
        }
        self.request(0, at);
    }

    /// Handles a request that may not be sent.
    pub(super) fn forbidden(&mut self, failure: Failure) {
        match failure.kind {
            FailureKind::PolicyExpired => {
                self.leave_response();
                self.emit(EventKind::PolicyExpired { message: failure.message.clone() });
                self.pause(failure);
            }
            // A user may raise the budget.
            FailureKind::BudgetExceeded if self.options.approver == Approver::Person => self.pause(failure),
            _ => self.fail(failure),
        }
    }

    /// Returns why no request may be sent: an expired policy, a model that is not allowed, a limit that no request can meet, a used-up
    /// budget.
    pub(super) fn preflight(&mut self, at: InputTime) -> Option<Failure> {
        self.forbids(at).or_else(|| self.holds_no_request()).or_else(|| self.over_budget(at))
    }

    /// Returns why no request may be sent, apart from the budgets.
    pub(super) fn forbids(&self, at: InputTime) -> Option<Failure> {
        if let Some(message) = self.policy.expired(at.now) {
            return Some(Failure::new(FailureKind::PolicyExpired, message, "renew the bundle, then continue"));
        }
        if let Err(denial) = self.policy.may_call(&self.options.model.name) {
            return Some(Failure::new(
                FailureKind::Permission,
                format!("{} (rule: {})", denial.reason, denial.rule),
                "choose another model with -m, or add this one to `allowed_models` in the policy",
            ));
        }
        None
    }

    /// Sends the thread, after making space for it; `attempt` counts retries of the same request.
    pub(super) fn request(&mut self, attempt: u32, at: InputTime) {
        if self.make_room(attempt, at) {
            return;
        }
        if let Err(failure) = self.fit_the_window() {
            return self.fail(failure);
        }
        let request = ModelRequest {
            system: self.options.system.clone(),
            messages: self.thread.window(),
            tools: self.options.tools.clone(),
            max_output_tokens: self.output_limit(),
            images: None,
            effort: self.options.effort,
        };
        if let Some(task) = &mut self.task {
            let (unsaved, content) = (String::new(), Vec::new());
            task.phase = Phase::Requesting(Stream { attempt, since: at.now, unsaved, saved_at: at.now, shown: false, content });
        }
        let estimated_input_tokens = self.next_input_tokens();
        self.note_request();
        self.usage.begin_request(self.options.model.clone(), estimated_input_tokens);
        self.enter(TaskStatus::WaitingForLlm);
        self.emit(EventKind::LlmRequestStarted { model: self.options.model.name.clone(), estimated_input_tokens });
        self.out.push(Effect::Request(request));
    }

    /// Continues after a step whose results are in the thread.
    pub(super) fn step_done(&mut self, at: InputTime) {
        let Some(task) = &mut self.task else { return };
        task.step_count += 1;
        let (count, limit) = (task.step_count, task.max_steps);
        self.emit(EventKind::StepCompleted { step_count: count });
        if u64::from(count) == u64::from(limit) * STEP_WARNING_PERCENT / 100 && count < limit {
            self.emit(EventKind::StepLimitApproaching { step_count: count, max_steps: limit });
        }
        self.next_step(at);
    }

    /// Asks the model for the rest of an incomplete response.
    pub(super) fn ask_for_the_rest(&mut self, words: &str, at: InputTime) {
        let Some(message) = self.message(Role::User, vec![Part::Text { text: words.to_owned() }], at) else { return };
        self.complete_step(message, at);
    }

    /// Completes a step with the message that follows its response, then continues.
    pub(super) fn complete_step(&mut self, message: crate::protocol::Message, at: InputTime) {
        if let Some(task) = &self.task
            && let Some(step_id) = task.step_id.clone()
        {
            let (task_id, step_count) = (task.id.clone(), task.step_count + 1);
            self.note(Record::StepCompleted { task_id, step_id, step_count, message: message.clone() });
        }
        self.note_outcomes(&message);
        self.thread.push(message);
        self.step_done(at);
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.end(TaskEnd::Failed { failure });
    }

    /// Ends the task, recorded before it is reported. After a failure, queued messages keep waiting, because the user decides.
    pub(super) fn end(&mut self, end: TaskEnd) {
        self.enter_session(SessionStatus::Running);
        let Some(task) = &self.task else { return };
        let (task_id, step_count, usage, cost_usd) = (task.id.clone(), task.step_count, task.totals.usage, self.task_cost());
        let parts = task.parts.clone();
        self.note_blocked(&end);
        self.note(Record::TaskEnded { task_id, step_count, end: end.clone() });
        self.commit(Durability::Power);
        match end {
            TaskEnd::Completed => {
                let answer = self.thread.last().filter(|message| message.role == Role::Assistant);
                let last = answer.map(crate::protocol::Message::text).unwrap_or_default();
                let text = parts.with(&last);
                self.emit(EventKind::TaskCompleted { text, usage, cost_usd, step_count });
                self.enter(TaskStatus::TaskCompleted);
                self.note_done();
                self.task = None;
            }
            TaskEnd::Failed { failure } => {
                self.emit(EventKind::TaskFailed { failure, step_count });
                self.enter(TaskStatus::TaskFailed);
                self.ended = self.task.take();
            }
            TaskEnd::Cancelled => {
                self.emit(EventKind::TaskCancelled { step_count });
                self.enter(TaskStatus::TaskCancelled);
                self.ended = self.task.take();
            }
        }
        self.enter(TaskStatus::Idle);
    }

    /// Ends a task that the model has finished.
    pub(super) fn complete(&mut self, at: InputTime) {
        if let Some(task) = &mut self.task {
            task.step_count += 1;
            let step_count = task.step_count;
            self.emit(EventKind::StepCompleted { step_count });
        }
        self.end(TaskEnd::Completed);
        if !self.compact_as_wanted(at) {
            self.start_next(at);
        }
    }

    /// Continues on request of the user: a paused task, a task that ended early, or the next queued message.
    pub(super) fn go_on(&mut self, at: InputTime) {
        if self.goes_on_after_compaction() {
            return;
        }
        let paused = self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Paused));
        if self.rewinds.is_running() {
            return self.notice("a rewind is restoring files; try again in a moment");
        }
        if self.is_busy() && !paused {
            let asks = |task: &Task| matches!(&task.phase, Phase::Working(calls) if calls.iter().any(|call| matches!(call.state, CallState::Asking(_) | CallState::Unknown)));
            return self.notice(if self.task.as_ref().is_some_and(asks) {
                "the task is waiting for your answer"
            } else {
                "the task is already running"
            });
        }
        if !paused {
            if let Some(task) = self.ended.take() {
                self.task = Some(task.with_steps(self.options.max_steps));
            } else if self.queue.is_empty() {
                return self.emit(EventKind::Notice { message: "nothing to continue".to_owned() });
            } else {
                return self.start_next(at);
            }
        }
        if let Some(task) = &mut self.task {
            task.cancelling = false;
        }
        self.enter_session(SessionStatus::Running);
        self.note_policy();
        self.note(Record::Continued);
        self.tell_of_continuing();
        self.tell_of_block();
        self.tell_of_own();
        self.next_step(at);
    }
}
