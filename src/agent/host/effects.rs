//! Performs the turn machine's effects in order. Records are saved first; as long as they cannot be saved, effects
//! are deferred.

use super::clock::moment;
use super::deferred_effects::stopped_error;
use super::tool_runs::RunRequest;
use super::{Host, changes, hooks, mentions, planning, rewind};
use crate::agent::turn::{Effect, Input};
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{CallId, Command, EventKind, StepId, TaskId, ToolResult};
use std::collections::VecDeque;
use std::time::Duration;

/// Notice shown for input that arrives while records cannot be saved.
const QUEUED: &str = "queued until the session can be saved";

impl Host {
    /// Performs effects in order, except that events about unsaved records are held back until those records are
    /// saved.
    pub(super) async fn perform(&mut self, effects: impl Into<VecDeque<Effect>>) {
        let mut effects = effects.into();
        let mut commits = effects.iter().filter(|effect| matches!(effect, Effect::Commit(..))).count();
        let mut untold = VecDeque::new();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Commit(records, durability) => {
                    if let Err(failure) = self.journal.commit(&records, durability).await {
                        untold.push_front(Effect::Commit(records, durability));
                        untold.append(&mut effects);
                        self.deferred.set(untold);
                        self.report_saving(true);
                        return self.emit(EventKind::SessionPaused { failure });
                    }
                    commits -= 1;
                    while let Some(told) = untold.pop_front() {
                        self.execute(told).await;
                    }
                }
                Effect::Emit { .. } if commits > 0 => untold.push_back(effect),
                other => self.execute(other).await,
            }
        }
    }

    pub(super) async fn execute(&mut self, effect: Effect) {
        match effect {
            // `perform` has already saved these records.
            Effect::Commit(..) => {}
            Effect::Emit { task_id, step_id, kind } => self.emit_and_follow(task_id, step_id, kind),
            Effect::Request(request) => self.model.request(self.context.redactor(), request).await,
            Effect::RequestSummary(request) => self.model.request_summary(self.context.redactor(), request).await,
            Effect::StopModel => self.model.stop(),
            Effect::Plan(calls) => planning::plan(&self.context, calls),
            Effect::HookCalls(calls) => hooks::before_calls(&self.context, calls),
            Effect::Hook { ticket, occasion } => hooks::on_occasion(&self.context, ticket, occasion),
            Effect::PlanOpened { index, call, opens, amendments } => {
                planning::replan_with_access(&self.context, index, call, opens, amendments);
            }
            Effect::Amend { index, plan, amendment } => planning::amend(&self.context, index, plan, amendment),
            Effect::Preview { index, plan, permit, ticket } => self.previews.start(&self.context, index, plan, permit, ticket),
            Effect::ReopenLayer { index, call, digest, ticket } => {
                self.previews.reopen(&self.context, index, call, digest, ticket);
            }
            Effect::StopPreview { ticket } => self.previews.stop(ticket),
            Effect::Run { index, plan, permit, max_bytes } => {
                // If directory access was allowed for the project, save the rule before the command runs again, so
                // later commands have the access too.
                let after = if plan.opens.is_empty() { None } else { Some(self.rules.changes_done()) };
                self.runs.start(&self.context, RunRequest { index, plan, permit, max_bytes, after });
            }
            Effect::Background { tool_call_id } => self.move_to_background(tool_call_id.as_ref()),
            Effect::StopCommand { id } => self.context.router().stop_command(&id),
            Effect::InterruptTools => self.context.interrupt(),
            Effect::KillTools => self.context.kill(),
            Effect::Remember { .. } | Effect::Forget(_) | Effect::ListGrants | Effect::Recent { .. } => self.rules.start(effect),
            Effect::Wake { after_ms, ticket } => self.wake(after_ms, ticket),
            Effect::SaveDraft(text) => self.journal.save_draft(text).await,
            Effect::OpenModel { key, name } => self.model.open(name, key),
            Effect::UseModel { name } => {
                if self.model.switch_to(&name) {
                    self.servers.set_window(self.model.facts().context_window);
                    self.context.router().model_changed(self.model.web_search());
                    self.model.query_facts();
                    // The user may have entered an API key that was missing.
                    self.model.open_summary_model();
                }
            }
            Effect::ListChanges { ticket, since, check } => changes::list(&self.context, ticket, since, check),
            Effect::PlanMentions { ticket, calls } => mentions::plan(&self.context, ticket, calls),
            Effect::ReadMentions { ticket, runs, resources } => {
                let (redactor, kill) = (self.context.redactor(), self.context.kill_token());
                let resources = self.servers.read_resources(resources, redactor, kill);
                mentions::read(&self.context, ticket, runs, resources);
            }
            Effect::ListModels { ask } => self.model.list(ask),
            Effect::ReloadPolicy => {
                if !self.policy.reload_later() {
                    self.notify("this session keeps the policy it started with");
                }
            }
            Effect::TellRewindPoints { points, can_redo } => {
                rewind::report_points(&self.context, self.sender.clone(), points, can_redo);
            }
            Effect::PlanRewind { plan, since } => rewind::report_plan(&self.context, self.sender.clone(), plan, since),
            Effect::Rewind(rewind) => rewind::restore_files(&self.context, rewind),
            Effect::End => self.ending = true,
        }
    }

    fn move_to_background(&self, id: Option<&CallId>) {
        if !self.runs.move_to_background(id) {
            self.notify("no running command can be moved to the background");
        }
    }

    fn wake(&self, after_ms: u64, ticket: u64) {
        let inputs = self.context.inputs();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            let _ = inputs.send(Input::Woken { ticket }).await;
        });
    }

    /// Emits an event after updating all state that depends on events.
    fn emit_and_follow(&mut self, task_id: Option<TaskId>, step_id: Option<StepId>, mut kind: EventKind) {
        let router = self.context.router();
        hooks::follow(&self.context, &kind);
        match &mut kind {
            // Set the tool's capability even if its call could not be planned. An edit first reads the file, but is
            // still `File.Write`.
            EventKind::ToolRequested { tool_name, capability, .. } => {
                *capability = router.capability(tool_name).map(str::to_owned).or(capability.take());
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, status, latency_ms, .. } => {
                self.tool_uses.note(tool_name, *status, *latency_ms);
                router.outcome_persisted(Some(tool_call_id));
            }
            EventKind::Rewound(_) => {
                router.outcome_persisted(None);
                self.runs.forget_instructions();
            }
            EventKind::ContextCompacted(_) | EventKind::ContextTruncated { .. } => self.runs.forget_instructions(),
            EventKind::ModeChanged { mode } => self.policy.set_mode(*mode),
            EventKind::TaskStarted { prompt, .. } => router.begin_prompt(prompt),
            EventKind::Steered { text } => router.add_message(text),
            EventKind::TaskCompleted { .. } | EventKind::TaskFailed { .. } | EventKind::TaskCancelled { .. } => {
                router.task_ended();
            }
            _ => {}
        }
        if let Some(task) = &task_id {
            self.changes.note(&*router, task, step_id.as_ref());
        }
        self.sender.send(task_id, step_id, self.rules.with_places(kind));
    }

    /// Handles an input while records cannot be saved. Nothing continues until earlier decisions are saved, and user
    /// input triggers another attempt to save.
    pub(super) async fn take_unsaved(&mut self, input: Input) {
        match input {
            Input::Command(Command::Continue) => self.retry().await,
            Input::Command(Command::SaveDraft { text }) => self.execute(Effect::SaveDraft(text)).await,
            Input::Command(Command::Quit) => {
                let effects = self.machine.handle(input, moment());
                self.defer(effects);
                self.cancel_deferred_runs();
                for result in self.deferred.cancel_rules() {
                    let effects = self.machine.handle(Input::RuleFiles(result), moment());
                    self.defer(effects);
                }
            }
            Input::Command(Command::SetMode { .. } | Command::ReloadPolicy) => {
                let effects = self.machine.handle(input, moment());
                self.defer(effects);
            }
            Input::Command(command) => self.retry_and_take(command).await,
            input => {
                let effects = self.machine.handle(input, moment());
                self.defer(effects);
            }
        }
    }

    /// Retries saving and then carries out the command: immediately if saving succeeds, and otherwise once it
    /// succeeds later. A command that stops work takes effect before the retry.
    async fn retry_and_take(&mut self, command: Command) {
        let stops = matches!(command, Command::Cancel | Command::Kill | Command::Finish);
        if !stops {
            self.retry().await;
        }
        let effects = self.machine.handle(Input::Command(command), moment());
        if self.deferred.is_empty() {
            return self.perform(effects).await;
        }
        self.defer(effects);
        if stops {
            self.cancel_deferred_runs();
            return self.retry().await;
        }
        self.notify(QUEUED);
    }

    pub(super) async fn retry(&mut self) {
        // The calls were allowed, but since then the policy may have changed or rules may have expired.
        let at = moment();
        let machine = &self.machine;
        let denied = |plan: &Plan| {
            let denial = machine.current_denial(plan, at)?;
            Some(denial.to_error(""))
        };
        let cancelled = self.deferred.cancel_runs(denied);
        self.finish_cancelled(cancelled);
        let effects = self.deferred.take();
        self.perform(effects).await;
        if self.deferred.is_empty() {
            self.report_saving(false);
        }
    }

    fn cancel_deferred_runs(&mut self) {
        let cancelled = self.deferred.cancel_runs(|_| Some(stopped_error()));
        self.finish_cancelled(cancelled);
    }

    fn finish_cancelled(&mut self, cancelled: Vec<(usize, ToolResult)>) {
        for (index, result) in cancelled {
            let effects = self.machine.handle(Input::ToolFinished { index, result, latency_ms: 0 }, moment());
            self.defer(effects);
        }
    }

    /// Queues effects behind the failed commit, but stops calls immediately.
    fn defer(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match &effect {
                Effect::StopModel => self.model.stop(),
                Effect::InterruptTools => self.context.interrupt(),
                Effect::KillTools => self.context.kill(),
                Effect::End => self.ending = true,
                Effect::StopPreview { ticket } => {
                    self.deferred.cancel_preview(*ticket);
                    self.previews.stop(*ticket);
                }
                // These effects do not change any saved state.
                Effect::Background { tool_call_id } => {
                    self.move_to_background(tool_call_id.as_ref());
                    continue;
                }
                Effect::StopCommand { id } => {
                    self.context.router().stop_command(id);
                    continue;
                }
                _ => {}
            }
            self.deferred.push(effect);
        }
    }

    /// Reports the session's state when saving starts to fail or works again. Once the user has quit, failures are no
    /// longer reported.
    fn report_saving(&mut self, stalled: bool) {
        if self.deadline.is_some() && stalled {
            return;
        }
        if let Some(kind) = self.machine.set_stalled(stalled) {
            self.sender.send(self.changes.task(), None, kind);
        }
    }

    /// Makes a final attempt to save all unsaved records when the session ends. If it fails, the session has failed.
    pub(super) async fn save_the_rest(&mut self) {
        let deferred = self.deferred.take_records();
        let records: Vec<Record> = self.journal.take_unsaved().into_iter().chain(deferred).collect();
        let saved = self.journal.commit(&records, Durability::Power).await;
        if let Err(failure) = &saved {
            self.notify(failure.message.clone());
        } else {
            self.report_saving(false);
        }
        let effects = self.machine.end_session(saved.is_ok());
        self.perform(effects).await;
    }
}
