//! Host of the turn machine: performs its effects in order and feeds the results back.

mod arrivals;
pub(super) mod call_timeout;
mod calls;
mod changes;
mod commands;
mod event_sender;
mod follow;
mod guides;
mod mentions;
mod model_client;
mod output_tails;
mod previews;
mod queries;
mod rewind;
mod room;
mod rule_files;
mod sampling;
mod servers;
mod session_journal;
mod setup;
mod stalled;
#[cfg(test)]
mod tests;

use super::limits::{CHANNEL_DEPTH, QUIT_GRACE_MS};
use super::pictures::Pictures;
use super::secrets::LastNet;
use super::turn::{Effect, Input, TurnMachine};
use crate::policy::redact::Redactor;
use crate::ports::ToolRouter;
use crate::protocol::{Command, Event, EventKind, Mode, StepId, TaskId, ToolUses};
use crate::session::SessionState;
use arrivals::{moment, next_delta, next_update};
use calls::Runs;
use commands::next_list;
pub use event_sender::EVENTS;
use event_sender::Teller;
use follow::Follows;
use futures_util::{StreamExt, TryStreamExt};
use guides::Guides;
use model_client::ModelClient;
use previews::Previews;
pub use queries::SessionQueries;
use room::Room;
use rule_files::RuleFiles;
use servers::Servers;
pub use servers::{Remote, Samples, asks};
use session_journal::SessionJournal;
pub use setup::{PolicyUpdate, PolicyUpdates, ReloadRequest, ReloadRequests, Setup};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Runs the session until `Command::Quit`, or until the sender of commands is dropped.
///
/// The caller creates the channels, so that a front end can exist before the session does.
pub fn spawn(mut setup: Setup, commands: mpsc::Receiver<Command>, events: mpsc::UnboundedSender<Event>) -> Running {
    let (router, _) = watch::channel(Arc::clone(&setup.router));
    let (servers, wire) = servers::begin(setup.remote.take());
    let teller = Teller { workspace_id: setup.workspace_id.clone(), session_id: setup.session_id.clone(), events };
    let queries = SessionQueries::new(&teller, router.subscribe(), servers.as_ref());
    let ended = tokio::spawn(run(setup, commands, Links { router, servers, wire, teller }));
    Running { ended, queries }
}

/// Running session.
pub struct Running {
    pub ended: JoinHandle<()>,
    /// Answers queries until the session has ended.
    pub queries: SessionQueries,
}

/// Channels that the session shares with its queries.
struct Links {
    router: watch::Sender<Arc<dyn ToolRouter>>,
    servers: Option<Servers>,
    wire: servers::ServerEvents,
    teller: Teller,
}

struct Host {
    machine: TurnMachine,
    model: ModelClient,
    router: Arc<dyn ToolRouter>,
    /// Current router, for queries.
    shared_router: watch::Sender<Arc<dyn ToolRouter>>,
    journal: SessionJournal,
    rules: RuleFiles,
    teller: Teller,
    /// Task that the tools were told about last.
    task: Option<TaskId>,
    redactor: Arc<Redactor>,
    last_net: LastNet,
    pictures: Pictures,
    guides: Guides,
    reload: Option<ReloadRequests>,
    modes: Option<watch::Sender<Mode>>,
    /// Results of spawned work.
    inputs: mpsc::Sender<Input>,
    kill: CancellationToken,
    /// Fires with `kill`, and when the user interrupts the task.
    interrupt: CancellationToken,
    runs: Runs,
    previews: Previews,
    follows: Follows,
    room: Room,
    servers: Option<Servers>,
    /// Effects that wait for a failed commit.
    stalled: VecDeque<Effect>,
    /// Statistics of completed calls, including earlier runs.
    tool_uses: ToolUses,
    started: Instant,
    /// Time at which the session ends even if calls are running; set when the user quits.
    deadline: Option<tokio::time::Instant>,
    ending: bool,
}

async fn run(setup: Setup, mut commands: mpsc::Receiver<Command>, links: Links) {
    let Links { router: shared_router, servers, mut wire, teller } = links;
    let (inputs, mut receive_inputs) = mpsc::channel(CHANNEL_DEPTH);
    let resumed = !setup.records.is_empty();
    let started = EventKind::SessionStarted {
        model: setup.options.model.name.clone(),
        mode: setup.mode,
        workspace: setup.workspace,
        resumed,
        facts: Some(setup.options.model.clone()),
    };
    let in_force = EventKind::PolicyInForce {
        layers: setup.policy.layers(),
        name: setup.policy_name,
        tools: setup.options.tool_names.clone(),
        message: None,
    };
    let (mut updates, reload, modes) = match setup.policy_updates {
        Some(PolicyUpdates { updates, reload, modes }) => (Some(updates), Some(reload), Some(modes)),
        None => (None, None, None),
    };
    let held: EventKind = setup.sandbox_status.into();
    let (mut running, tell_changes) = (setup.running, setup.tell_changes);
    let kill = CancellationToken::new();
    let mut host = Host {
        machine: TurnMachine::new(setup.policy, setup.options),
        model: ModelClient::new(setup.model, setup.models, inputs.clone(), teller.clone()),
        router: setup.router,
        shared_router,
        journal: SessionJournal::new(setup.journal, teller.clone()),
        rules: RuleFiles::new(setup.rules, inputs.clone()),
        teller,
        task: None,
        redactor: setup.redactor,
        last_net: LastNet::default(),
        pictures: Pictures::new(setup.artifacts),
        guides: Guides::new(setup.guidance),
        reload,
        modes,
        inputs,
        interrupt: kill.child_token(),
        kill,
        runs: Runs::default(),
        previews: Previews::default(),
        follows: None,
        room: Room::of(setup.room),
        servers,
        stalled: VecDeque::new(),
        tool_uses: SessionState::from_records(&setup.records).tool_uses,
        started: Instant::now(),
        deadline: None,
        ending: false,
    };
    host.emit(None, None, started);
    host.emit(None, None, in_force);
    host.emit(None, None, held);
    let begun = host.machine.begin_session();
    host.perform(begun.into()).await;
    if resumed {
        host.machine.know(setup.known);
        let effects = host.machine.restore(setup.records, setup.settled, setup.unfinished, moment());
        host.perform(effects.into()).await;
    }
    host.tell_servers(&mut updates).await;
    host.tell_of_budgets();
    host.model.look_up();
    let mut heard = true;
    while !host.ending {
        host.follow();
        let (deadline, tail_due) = (host.deadline, host.tail_due());
        let mut room = host.room.clone();
        let has_room = room.is_there();
        let input = tokio::select! {
            command = commands.recv(), if heard => {
                heard = command.is_some();
                // A dropped sender after a quit is not a second quit, which would not wait for running calls.
                if !heard && host.deadline.is_some() {
                    continue;
                }
                Input::Command(command.unwrap_or(Command::Quit))
            }
            Some(input) = receive_inputs.recv() => input,
            Some(update) = next_update(&mut updates) => match host.updated(update) {
                Some(change) => Input::PolicyChanged(change),
                None => continue,
            },
            commands = next_list(&mut running) => {
                host.emit(None, None, EventKind::CommandsRunning { commands });
                continue;
            }
            happened = wire.next() => {
                host.of_servers(happened, &mut updates).await;
                continue;
            }
            delta = next_delta(&mut host.model.answer), if has_room => delta,
            () = room.wait(), if !has_room => continue,
            () = tokio::time::sleep_until(tail_due.unwrap_or_else(tokio::time::Instant::now)), if tail_due.is_some() => {
                host.save_tails();
                continue;
            }
            () = tokio::time::sleep_until(deadline.unwrap_or_else(tokio::time::Instant::now)), if deadline.is_some() => break,
        };
        let input = match input {
            // The sandbox of commands follows the rule files, and the next command must use the new state.
            Input::RuleFiles(kept) if kept.changes_what_is_seen() => {
                host.reload_policy(&mut updates).await;
                Input::RuleFiles(kept)
            }
            Input::Command(Command::Resume) => {
                host.reload_policy(&mut updates).await;
                Input::Command(Command::Continue)
            }
            input => input,
        };
        host.take_updates(&mut updates).await;
        host.take(input).await;
    }
    host.save_what_is_stalled().await;
    let (task_count, total_tokens, cost_usd) = host.machine.totals();
    let duration_ms = u64::try_from(host.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tools = host.tool_uses.list();
    host.kill.cancel();
    // No further input is processed, and its senders must not wait.
    drop(receive_inputs);
    host.end_what_runs().await;
    if tell_changes {
        host.tell_changes_at_the_end().await;
    }
    // A paused session is not completed: its last event says that it is paused.
    if !host.machine.is_paused() {
        host.emit(None, None, EventKind::SessionCompleted { task_count, total_tokens, cost_usd, duration_ms, tools });
    }
}

impl Host {
    async fn take(&mut self, input: Input) {
        let input = match input {
            Input::Command(command) if servers::is_for(&command) => return self.for_servers(command),
            input => self.without_secrets(input),
        };
        if let Input::ModelOpened(Ok(facts)) = &input {
            self.learn_window(facts);
        }
        self.note_output(&input);
        self.note_end(&input);
        if matches!(input, Input::Command(Command::Quit)) {
            self.deadline.get_or_insert_with(|| tokio::time::Instant::now() + Duration::from_millis(QUIT_GRACE_MS));
        }
        if matches!(input, Input::Command(Command::GoOnUnsaved)) {
            if self.journal.go_on_unsaved(!self.stalled.is_empty()) {
                self.retry().await;
            }
            return;
        }
        if self.stalled.is_empty() {
            if matches!(input, Input::Command(Command::Continue)) {
                self.journal.save_what_waits_in_memory().await;
            }
            let effects = self.machine.handle(input, moment());
            return self.perform(effects.into()).await;
        }
        self.take_while_stalled(input).await;
    }

    /// Handles an input while saving fails: nothing continues before earlier decisions are saved, and user input retries the save.
    async fn take_while_stalled(&mut self, input: Input) {
        match input {
            Input::Command(Command::Continue) => self.retry().await,
            Input::Command(Command::SaveDraft { text }) => self.act(Effect::SaveDraft(text)).await,
            Input::Command(
                command @ (Command::Prompt { .. }
                | Command::Steer { .. }
                | Command::EditWaiting { .. }
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
                | Command::Decide { .. }
                | Command::Resolve { .. }
                | Command::UndoGrant
                | Command::AskRule { .. }
                | Command::Shell { .. }
                | Command::Preview { .. }
                | Command::ShowProposed { .. }
                | Command::Background { .. }
                | Command::Stop { .. }
                | Command::ListGrants
                | Command::ListRewindPoints
                | Command::PlanRewind { .. }
                | Command::Rewind { .. }
                | Command::GoOnUnsaved
                | Command::AnswerElicitation { .. }
                | Command::ReconnectServer { .. }
                | Command::Cancel
                | Command::Kill
                | Command::Finish),
            ) => self.retry_and_take(command).await,
            Input::Command(Command::Quit) => {
                let effects = self.machine.handle(input, moment());
                self.keep(effects);
                self.call_off_runs(|_, _| Some(stalled::stopped()));
                self.call_off_rules();
            }
            Input::Command(Command::SetMode { .. } | Command::ReloadPolicy | Command::Resume)
            | Input::Delta(_)
            | Input::ModelFailed(_)
            | Input::Planned(_)
            | Input::Previewed { .. }
            | Input::Outdated { .. }
            | Input::PolicyChanged(_)
            | Input::ToolOutput { .. }
            | Input::ToolFinished { .. }
            | Input::RuleFiles(_)
            | Input::ModelOpened(_)
            | Input::MentionsPlanned { .. }
            | Input::MentionsRead { .. }
            | Input::Sampled(_)
            | Input::FilesRewound { .. }
            | Input::Woken { .. } => {
                let effects = self.machine.handle(input, moment());
                self.keep(effects);
            }
        }
    }

    /// Retries the save, then carries out the command: at once if saved, otherwise as soon as it is.
    async fn retry_and_take(&mut self, command: Command) {
        let stops = matches!(command, Command::Cancel | Command::Kill | Command::Finish);
        if !stops {
            self.retry().await;
        }
        let effects = self.machine.handle(Input::Command(command), moment());
        if self.stalled.is_empty() {
            return self.perform(effects.into()).await;
        }
        self.keep(effects);
        if stops {
            self.call_off_runs(|_, _| Some(stalled::stopped()));
            return self.retry().await;
        }
        self.emit(None, None, EventKind::Notice { message: stalled::KEPT.to_owned() });
    }

    /// Performs effects in order, except that events about unsaved records are sent only after the records are saved.
    async fn perform(&mut self, mut effects: VecDeque<Effect>) {
        let mut commits = effects.iter().filter(|effect| matches!(effect, Effect::Commit(..))).count();
        let mut untold = VecDeque::new();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Commit(records, durability) => {
                    if let Err(failure) = self.journal.commit(&records, durability).await {
                        untold.push_front(Effect::Commit(records, durability));
                        untold.append(&mut effects);
                        self.stalled = untold;
                        self.tell_stalled(true);
                        return self.emit(None, None, EventKind::SessionPaused { failure });
                    }
                    commits -= 1;
                    while let Some(told) = untold.pop_front() {
                        self.act(told).await;
                    }
                }
                Effect::Emit { .. } if commits > 0 => untold.push_back(effect),
                other => self.act(other).await,
            }
        }
    }

    async fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(..) => {}
            Effect::Emit { task_id, step_id, kind } => self.emit_and_follow(task_id, step_id, kind),
            Effect::Request(request) => {
                let mut request = self.last_net.hide_in_request(&self.redactor, request);
                if self.model.facts().images {
                    request.images = Some(self.pictures.of(&request.messages).await);
                }
                let redactor = self.redactor.clone();
                let hide = move |error| super::secrets::hide_in_failure(&redactor, error);
                self.model.answer = Some(self.model.stream(request).map_err(hide).boxed());
            }
            Effect::StopModel => self.model.stop(),
            Effect::Plan(calls) => self.plan(calls),
            Effect::PlanOpened { index, call, opens, amendments } => self.plan_opened(index, call, opens, amendments),
            Effect::Amend { index, plan, amendment } => self.amend(index, plan, amendment),
            Effect::Preview { index, plan, permit, ticket } => self.preview(index, plan, permit, ticket),
            Effect::StopPreview { ticket } => self.previews.stop(ticket),
            Effect::Run { index, plan, permit, most_bytes } => self.run(index, plan, permit, most_bytes),
            Effect::Background { tool_call_id } => self.background(tool_call_id.as_ref()),
            Effect::StopCommand { id } => self.router.stop_command(&id),
            Effect::InterruptTools => self.interrupt_tools(),
            Effect::KillTools => self.kill_tools(),
            Effect::Remember { .. } | Effect::Forget(_) | Effect::ListGrants | Effect::Recent { .. } => self.rules.start(effect),
            Effect::Wake { after_ms, ticket } => {
                let inputs = self.inputs.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(after_ms)).await;
                    let _ = inputs.send(Input::Woken { ticket }).await;
                });
            }
            Effect::SaveDraft(text) => self.journal.save_draft(text).await,
            Effect::OpenModel { key, name } => self.model.open(name, key),
            Effect::UseModel { name } => self.use_model(&name),
            Effect::PlanMentions { ticket, calls } => self.plan_mentions(ticket, calls),
            Effect::ReadMentions { ticket, runs, resources } => self.read_mentions(ticket, runs, resources),
            Effect::ListModels { ask } => self.model.list(ask),
            Effect::ReloadPolicy => {
                if let Some(reload) = &self.reload {
                    // A reload does not wait for the result; a closed channel means that nothing reloads any more.
                    let _ = reload.send(ReloadRequest::Files(oneshot::channel().0));
                } else {
                    let message = "this session keeps the policy it started with".to_owned();
                    self.emit(None, None, EventKind::Notice { message });
                }
            }
            Effect::TellRewindPoints { points, can_redo } => self.tell_rewind_points(points, can_redo),
            Effect::PlanRewind { plan, since } => self.plan_rewind(plan, since),
            Effect::Rewind(rewind) => self.rewind(rewind),
            Effect::End => self.ending = true,
        }
    }

    /// Emits an event after updating everything that depends on such events.
    fn emit_and_follow(&mut self, task_id: Option<TaskId>, step_id: Option<StepId>, mut kind: EventKind) {
        self.with_capability(&mut kind);
        if let EventKind::ToolCompleted { tool_call_id, tool_name, status, latency_ms, .. } = &kind {
            self.tool_uses.note(tool_name, *status, *latency_ms);
            self.router.journaled(Some(tool_call_id));
        }
        if let EventKind::Rewound(_) = &kind {
            self.router.journaled(None);
        }
        if let EventKind::ContextCompacted(_) | EventKind::ContextTruncated { .. } | EventKind::Rewound(_) = &kind {
            self.guides.forget();
        }
        if let Some(task) = &task_id {
            self.note_task(task, step_id.as_ref());
        }
        if let (EventKind::ModeChanged { mode }, Some(modes)) = (&kind, &self.modes) {
            modes.send_replace(*mode);
        }
        self.emit(task_id, step_id, self.rules.with_places(kind));
    }

    /// Sets the capability of the tool, even if its call could not be planned. An edit reads first, and is still `File.Write`.
    fn with_capability(&self, kind: &mut EventKind) {
        if let EventKind::ToolRequested { tool_name, capability, .. } = kind
            && let Some(of_tool) = self.router.capability(tool_name)
        {
            *capability = Some(of_tool.to_owned());
        }
    }

    fn emit(&self, task_id: Option<TaskId>, step_id: Option<StepId>, kind: EventKind) {
        self.teller.tell(task_id, step_id, kind);
    }
}
