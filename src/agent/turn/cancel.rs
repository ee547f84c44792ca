//! Interrupts by the user, and the end of the session.

use super::approval::waited;
use super::response::CompletedRequest;
use super::{Call, CallState, Effect, Input, InputTime, Phase, TurnMachine};
use crate::agent::thread::{INTERRUPTED, is_interruption};
use crate::ports::{Durability, Record, TaskEnd};
use crate::protocol::{Command, ErrorCode, EventKind, Part, Role, StopReason};

/// Note to the model after the interruption mark, if the same task continues.
const CONTINUED: &str = "[The user wants you to continue.]";

impl TurnMachine {
    /// Stops the model and starts nothing new; the task ends when the running calls have ended.
    pub(super) fn cancel(&mut self, at: InputTime) {
        if self.stop_compaction(at) {
            return self.empty_queue();
        }
        if self.opening.take().is_some() {
            return self.empty_queue();
        }
        if !self.keep_response(at) {
            self.waste_what_streams(at);
        }
        let Some(task) = &mut self.task else { return };
        let first = !std::mem::replace(&mut task.cancelling, true);
        // Messages sent after a stop start once the task has ended, so a second stop does not return them to the draft.
        if first {
            self.empty_queue();
        }
        let Some(task) = &self.task else { return };
        match &task.phase {
            Phase::Requesting(_) => {
                self.out.push(Effect::StopModel);
                self.end(TaskEnd::Cancelled);
            }
            Phase::Retrying { .. } | Phase::Compacting | Phase::Paused => self.end(TaskEnd::Cancelled),
            Phase::Working(_) => self.stop_calls(first, at),
        }
    }

    /// Keeps the part of a response that streamed before the user interrupted it, and marks the interruption for the model. Incomplete
    /// calls are dropped. Returns whether anything had streamed.
    fn keep_response(&mut self, at: InputTime) -> bool {
        let Some(Phase::Requesting(stream)) = self.task.as_mut().map(|task| &mut task.phase) else { return false };
        let (content, since) = (std::mem::take(&mut stream.content), stream.since);
        let model = self.asked_model().to_owned();
        let Some(spent) = self.usage.end_without_answer(None, &self.options.model) else { return false };
        self.count(spent.usage, spent.cost_usd);
        let request = CompletedRequest { spent, stop_reason: StopReason::Cancelled, latency_ms: waited(since, at), model };
        let is_empty = content.is_empty();
        let Some(message) = self.message(Role::Assistant, content, at) else { return true };
        self.note(request.record(message.clone()));
        if !is_empty {
            self.thread.push(message);
        }
        self.tell_of_request(request);
        self.mark_interruption(at);
        true
    }

    /// Ends the step with a message that marks the interruption.
    fn mark_interruption(&mut self, at: InputTime) {
        let Some(message) = self.message(Role::User, vec![Part::Text { text: INTERRUPTED.to_owned() }], at) else { return };
        self.thread.push(message.clone());
        let Some(task) = &mut self.task else { return };
        task.step_count += 1;
        let (task_id, step_count) = (task.id.clone(), task.step_count);
        if let Some(step_id) = task.step_id.clone() {
            self.note(Record::StepCompleted { task_id, step_id, step_count, message });
            self.emit(EventKind::StepCompleted { step_count });
        }
    }

    /// Tells the model that the same task continues after an interrupted response.
    pub(super) fn tell_of_continuing(&mut self) {
        if self.thread.last().is_some_and(is_interruption) {
            self.thread.amend_last(|message| message.content.push(Part::Text { text: format!("\n\n{CONTINUED}") }));
        }
    }

    /// Withdraws calls that wait for the user or for another call. `first`: the task was not being stopped before.
    fn stop_calls(&mut self, first: bool, at: InputTime) {
        let task_id = self.task.as_ref().map(|task| task.id.clone()).filter(|_| first);
        self.with_calls(|runner, calls| {
            for call in calls.iter_mut() {
                match call.state {
                    // The model gets the output so far.
                    CallState::Previewing(_) if call.layered => {}
                    CallState::Deferred | CallState::Asking(_) | CallState::Previewing(_) => {
                        runner.stop_preview(call);
                        runner.announce_scope(call);
                        runner.withdraw_question(call, at);
                        call.refuse(ErrorCode::Cancelled, "the task was stopped before this call ran");
                        runner.report(call, 0);
                    }
                    CallState::Unknown => {
                        super::tool_calls::outcome_unknown(call);
                        runner.report(call, 0);
                    }
                    CallState::Planning | CallState::Running | CallState::Done(_) => {}
                }
            }
            if let Some(task_id) = task_id
                && calls.iter().any(|call| !call.is_done())
            {
                runner.out.record(Record::Stopping { task_id });
            }
            runner.out.commit(Durability::Process);
        });
        self.advance(at);
    }

    /// Ends the session and keeps the state of its task. Running calls that change something are stopped, and their outcomes are saved, so
    /// that nobody has to guess them later.
    pub(super) fn quit(&mut self, at: InputTime) {
        self.quitting = true;
        if let Some(task) = &mut self.task
            && let Phase::Requesting(stream) = &mut task.phase
            && !stream.unsaved.is_empty()
            && let Some(step_id) = task.step_id.clone()
        {
            let text = std::mem::take(&mut stream.unsaved);
            self.out.push(Effect::StopModel);
            self.note(Record::PartialAnswer { step_id, text });
        }
        // What was saved of the response is counted too.
        self.waste_what_streams(at);
        self.commit(Durability::Process);
        self.stop_previews();
        if self.changes_run() {
            self.out.push(Effect::KillTools);
        }
        self.end_if_nothing_runs();
    }

    /// Stops the previews. Nothing was applied, so nothing is lost: they are asked about again.
    fn stop_previews(&mut self) {
        self.with_calls(|runner, calls| calls.iter().for_each(|call| runner.stop_preview(call)));
    }

    /// Ends the session once all changing calls have outcomes, and all rules to be saved are saved or reported as failed.
    fn end_if_nothing_runs(&mut self) {
        if !self.changes_run() && !self.grants.is_saving() && !self.rewinds.is_running() {
            self.out.push(Effect::End);
        }
    }

    /// Handles the inputs that still matter while the session ends.
    pub(super) fn wind_down(&mut self, input: Input, at: InputTime) {
        match input {
            Input::ToolFinished { index, result, latency_ms } => {
                self.settle_run(index, result, latency_ms);
                // A step whose calls all have results is completed, even if no other step follows.
                if self.calls_mut().iter().all(Call::is_done) {
                    self.close_step(at);
                    self.commit(Durability::Process);
                    // The end of the session pauses the task, and records that.
                    if let Some(task) = &mut self.task {
                        task.phase = Phase::Working(Vec::new());
                    }
                }
                self.end_if_nothing_runs();
            }
            Input::ToolOutput { index, text } => self.tool_output(index, text),
            Input::Command(Command::SaveDraft { text }) => self.out.push(Effect::SaveDraft(text)),
            // Too late to start, but kept.
            Input::Command(Command::Prompt { text }) => self.enqueue(text, false),
            Input::Command(Command::Steer { text }) => self.enqueue(text, true),
            Input::Command(Command::EditWaiting { id, text }) => {
                let outputs = self.queue.edit(id, text);
                self.perform(outputs);
            }
            Input::Command(Command::Quit) => self.out.push(Effect::End),
            Input::RuleFiles(kept) => {
                self.rules_changed(kept);
                self.end_if_nothing_runs();
            }
            Input::Sampled(sampled) => self.sampled(sampled),
            Input::FilesRewound { number, outcome } => {
                self.rewound(number, outcome);
                self.end_if_nothing_runs();
            }
            Input::Command(
                Command::Decide { .. }
                | Command::Shell { .. }
                | Command::UndoGrant
                | Command::AskRule { .. }
                | Command::ListGrants
                | Command::AnswerElicitation { .. }
                | Command::ReconnectServer { .. }
                | Command::ListRewindPoints
                | Command::PlanRewind { .. }
                | Command::Rewind { .. }
                | Command::Resolve { .. }
                | Command::Cancel
                | Command::Kill
                | Command::Finish
                | Command::Preview { .. }
                | Command::ShowProposed { .. }
                | Command::Background { .. }
                | Command::Stop { .. }
                | Command::Continue
                | Command::GoOnUnsaved
                | Command::RetryNow
                | Command::Compact { .. }
                | Command::UndoCompaction
                | Command::ShowContext
                | Command::ShowBudget
                | Command::SetBudget { .. }
                | Command::SetModel { .. }
                | Command::AddKey { .. }
                | Command::SetEffort { .. }
                | Command::ListModels { .. }
                | Command::SetMode { .. }
                | Command::ReloadPolicy
                | Command::Resume,
            )
            | Input::Delta(_)
            | Input::ModelFailed(_)
            | Input::Planned(_)
            | Input::Previewed { .. }
            | Input::Outdated { .. }
            | Input::PolicyChanged(_)
            | Input::ModelOpened(_)
            | Input::MentionsPlanned { .. }
            | Input::MentionsRead { .. }
            | Input::Woken { .. } => {}
        }
    }

    fn changes_run(&self) -> bool {
        self.task.as_ref().is_some_and(|task| match &task.phase {
            Phase::Working(calls) => calls.iter().any(|call| call.changes && matches!(call.state, CallState::Running)),
            Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting | Phase::Paused => false,
        })
    }

    /// Interrupts the task: the model stops, commands are interrupted, and changes of files finish.
    pub(super) fn interrupt(&mut self, at: InputTime) {
        if self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Working(_))) {
            self.out.push(Effect::InterruptTools);
        }
        self.cancel(at);
    }

    /// Cancels the task and kills running commands. The host abandons whatever does not end within its grace period, so the task ends
    /// whatever a tool does.
    pub(super) fn kill(&mut self, at: InputTime) {
        self.out.push(Effect::KillTools);
        self.cancel(at);
    }
}
