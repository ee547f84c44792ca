//! Resuming after a crash: open work is ended, continued, or shown to the user.

use super::restore::Unfinished;
use super::sandbox_escalation::BlockedRun;
use super::{Approver, Call, CallState, Effect, InputTime, Phase, Task, TurnMachine};
use crate::ports::{Durability, Record, TaskEnd};
use crate::protocol::{Arguments, ErrorCode, EventKind, Failure, Role, SessionStatus, TaskStatus};

impl TurnMachine {
    /// Settles everything that the previous process left open.
    pub(super) fn take_up(&mut self, failure: Failure, unfinished: Unfinished, at: InputTime) {
        if self.finish_rewind(unfinished) {
            return;
        }
        self.settle_own(unfinished, at);
        self.end_what_was_answered();
        if !self.queue.is_empty() {
            self.emit(self.queue.event());
        }
        if self.task.is_none() {
            return self.take_up_nothing(unfinished, at);
        }
        if unfinished == Unfinished::Replace {
            self.close_calls(at);
            return self.end_unsaid(TaskEnd::Cancelled);
        }
        self.limit_to_this_run(unfinished);
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

    /// Applies the step limit of this run to the restored task. If nobody can raise the limit, or the task has used it up, it gets that
    /// many steps in addition to the completed ones.
    fn limit_to_this_run(&mut self, unfinished: Unfinished) {
        let max_steps = self.options.max_steps;
        self.task = self.task.take().map(|task| {
            if unfinished == Unfinished::GoOn || task.step_count >= max_steps {
                task.with_steps(max_steps)
            } else {
                Task { max_steps, ..task }
            }
        });
    }

    /// Ends a task that was being stopped. It does not continue automatically, but can be continued.
    fn end_stopped(&mut self, unfinished: Unfinished, at: InputTime) {
        self.with_calls(|runner, calls| {
            let in_a_layer =
                |call: &&mut Call| call.previewed && call.layered && !call.is_done() && !matches!(call.state, CallState::Running);
            calls.iter_mut().filter(in_a_layer).for_each(|call| runner.discard_layer(call));
        });
        self.close_calls(at);
        let stopped = self.task.take();
        if let Some(task) = &stopped {
            let (task_id, step_count) = (task.id.clone(), task.step_count);
            self.note(Record::TaskEnded { task_id, step_count, end: TaskEnd::Cancelled });
        }
        self.commit(Durability::Process);
        self.ended = stopped;
        if unfinished == Unfinished::Wait {
            self.notice("the task was being stopped when aye exited, so it ended there; it can be continued");
        }
        self.take_up_nothing(unfinished, at);
    }

    /// Ends a task whose response contains no calls, even if the record of its end cannot be read.
    fn end_what_was_answered(&mut self) {
        let answered = self.thread.last().is_some_and(|message| message.role == Role::Assistant);
        if answered && self.task.as_ref().is_some_and(|task| !task.cancelling) && self.calls_mut().is_empty() {
            self.end_unsaid(TaskEnd::Completed);
        }
    }

    /// Ends a task of the previous process without an event, because listeners wait for tasks of this one.
    fn end_unsaid(&mut self, end: TaskEnd) {
        let Some(task) = self.task.take() else { return };
        // As in the journal: an unfinished task can be continued, and its queued messages are kept until then.
        let is_done = end == TaskEnd::Completed;
        self.note(Record::TaskEnded { task_id: task.id.clone(), step_count: task.step_count, end });
        self.ended = Some(task).filter(|_| !is_done);
        self.commit(Durability::Process);
    }

    /// Resumes a session without an open task.
    pub(super) fn take_up_nothing(&mut self, unfinished: Unfinished, at: InputTime) {
        let nothing = self.ended.is_none() && self.queue.is_empty();
        match unfinished {
            Unfinished::GoOn => {
                self.go_on(at);
                if nothing {
                    self.out.push(Effect::End);
                }
            }
            Unfinished::Wait if self.ended.is_none() && !nothing => {
                let message = match self.queue.len() {
                    1 => "1 queued prompt waits until you continue the session".to_owned(),
                    count => format!("{count} queued prompts wait until you continue the session"),
                };
                self.emit(EventKind::Notice { message });
            }
            Unfinished::Wait | Unfinished::Replace => {}
        }
    }

    /// Ends the step with the results of its calls, so that every call in the thread has one.
    pub(super) fn close_calls(&mut self, at: InputTime) {
        self.with_calls(|runner, calls| {
            for call in calls.iter_mut().filter(|call| !call.is_done()) {
                runner.announce(call, &[]);
                if call.changes && matches!(call.state, CallState::Running) {
                    super::tool_calls::outcome_unknown(call);
                } else {
                    call.refuse(ErrorCode::Cancelled, "the task ended before this call ran");
                }
                runner.report(call, 0);
            }
        });
        self.close_step(at);
    }

    /// Completes the step with the results of its calls, without starting the next one.
    pub(super) fn close_step(&mut self, at: InputTime) {
        let results = self.results();
        if results.is_empty() || self.is_own() {
            return;
        }
        let Some(message) = self.message(Role::Tool, results, at) else { return };
        self.note_outcomes(&message);
        self.thread.push(message.clone());
        let Some(task) = &mut self.task else { return };
        task.step_count += 1;
        task.phase = Phase::Paused;
        let (task_id, step_count) = (task.id.clone(), task.step_count);
        if let Some(step_id) = task.step_id.clone() {
            self.note(Record::StepCompleted { task_id, step_id, step_count, message });
            self.emit(EventKind::StepCompleted { step_count });
        }
    }

    /// Resumes calls: those that ran and may have changed something are shown to the user; all others are planned and judged again.
    fn take_up_calls(&mut self, at: InputTime) {
        if self.calls_mut().is_empty() {
            return;
        }
        self.enter(TaskStatus::CheckingPolicy);
        self.with_calls(|runner, calls| {
            let (mut plans, mut reopened) = (Vec::new(), Vec::new());
            for (index, call) in calls.iter_mut().enumerate() {
                match &call.state {
                    CallState::Done(_) => {}
                    CallState::Running if call.changes => runner.interrupted(call),
                    CallState::Running
                    | CallState::Planning
                    | CallState::Deferred
                    | CallState::Asking(_)
                    | CallState::Previewing(_)
                    | CallState::Unknown => {
                        if call.previewed && call.layered {
                            runner.discard_layer(call);
                            continue;
                        }
                        if call.previewed {
                            runner.drop_preview(call);
                            let message = format!("the preview of `{}` was discarded when aye exited", call.summary);
                            runner.out.notice(message);
                        }
                        if let Arguments::Malformed(_) = call.call.arguments {
                            runner.announce(call, &[]);
                            call.refuse(ErrorCode::InvalidRequest, "the arguments are not a JSON object, so nothing was run");
                            runner.report(call, 0);
                        } else if (call.held.is_some() || !call.amended.by.is_empty())
                            && runner.options.approver == Approver::Person
                        {
                            reopened.push(index);
                        } else if call.held.as_ref().is_some_and(BlockedRun::waits) {
                            call.refuse(ErrorCode::NoApprover, "no one to ask");
                            runner.report(call, 0);
                        } else {
                            call.state = CallState::Planning;
                            plans.push((index, call.call.clone()));
                        }
                    }
                }
            }
            runner.out.commit(Durability::Process);
            if !plans.is_empty() {
                runner.out.effect(Effect::Plan(plans));
            }
            for index in reopened {
                runner.plan_again(&mut calls[index], index);
            }
        });
        self.advance(at);
    }
}
