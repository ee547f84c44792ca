//! The turn machine's host: performs its effects in order and brings back what came of them.

mod arrivals;
mod artifacts;
mod calls;
mod changes;
mod commands;
mod guides;
mod mentions;
mod models;
mod previews;
mod rules;
mod stalled;
mod teller;
#[cfg(test)]
mod tests;

use super::limits::{CHANNEL_DEPTH, QUIT_GRACE_MS};
use super::pictures::Pictures;
use super::secrets::LastNet;
use super::turn::{Effect, Input, Machine, Options, PolicyChange, SandboxStatus, Unfinished};
use crate::policy::Enforcer;
use crate::policy::redact::Redactor;
use crate::ports::{Artifacts, Durability, Guidance, Journal, Model, ModelStream, Models, Record, Rules, ToolRouter};
use crate::protocol::{
    Command, Event, EventKind, Failure, FailureKind, Mode, RunningCommand, SessionId, StepId, TaskId, ToolResult, ToolUses,
    WorkspaceId,
};
use arrivals::{moment, next_delta, next_update, used};
use calls::Runs;
use commands::next_list;
use futures_util::{StreamExt, TryStreamExt};
use guides::Guides;
use models::Opening;
use previews::Previews;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use teller::EVENTS;
use teller::Teller;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Everything a session needs.
pub struct Setup {
    pub policy: Enforcer,
    pub options: Options,
    pub model: Arc<dyn Model>,
    /// Those that can take its place.
    pub models: Arc<dyn Models>,
    pub router: Arc<dyn ToolRouter>,
    /// What the project says of its parts, where it is trusted.
    pub guidance: Option<Arc<dyn Guidance>>,
    /// Where the images lie that results name.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    pub journal: Arc<dyn Journal>,
    pub rules: Arc<dyn Rules>,
    pub workspace_id: WorkspaceId,
    pub session_id: SessionId,
    /// For `session_started`.
    pub workspace: String,
    pub mode: Mode,
    /// What the journal holds already; empty for a new session.
    pub records: Vec<Record>,
    pub unfinished: Unfinished,
    /// What became of calls that were under way when the process before this one ended, where that is known by now.
    pub settled: Vec<ToolResult>,
    /// What holds commands.
    pub sandbox_status: SandboxStatus,
    /// The commands that go on while the agent works, where the tools have such.
    pub running: Option<watch::Receiver<Vec<RunningCommand>>>,
    /// Whether the list of what changed is told at the end without a question.
    pub tell_changes: bool,
    /// Hides what is secret in what the person says and in what commands print while they run.
    pub redactor: Arc<Redactor>,
    /// What the status row calls the policy.
    pub policy_name: String,
    /// Where other policies come from; none for a session that keeps the one it began with.
    pub policy_updates: Option<PolicyUpdates>,
}

/// What becomes of the policy's files while a session runs.
pub struct PolicyUpdates {
    pub updates: mpsc::Receiver<PolicyUpdate>,
    /// Asks for the files to be read again.
    pub reload: Arc<Notify>,
    /// The mode in force: what holds a command follows it.
    pub modes: watch::Sender<Mode>,
}

pub enum PolicyUpdate {
    /// Another policy, and the tools that keep its limits.
    Taken {
        change: Box<PolicyChange>,
        router: Arc<dyn ToolRouter>,
        redactor: Arc<Redactor>,
    },
    /// A file cannot be taken; the policy in force stays.
    Rejected {
        message: String,
    },
    Told {
        message: String,
    },
}

/// Runs the session until `Command::Quit`, or until the sender of commands is dropped.
///
/// The channels are made by the caller, so that a front end can be there before the session is.
pub fn spawn(setup: Setup, commands: mpsc::Receiver<Command>, events: mpsc::UnboundedSender<Event>) -> JoinHandle<()> {
    tokio::spawn(run(setup, commands, events))
}

struct Host {
    machine: Machine,
    model: Arc<dyn Model>,
    models: Arc<dyn Models>,
    opening: Opening,
    router: Arc<dyn ToolRouter>,
    journal: Arc<dyn Journal>,
    rules: Arc<dyn Rules>,
    /// Changes of the person's files come one after the other, and are told in that order.
    rules_in_turn: Arc<tokio::sync::Mutex<()>>,
    teller: Teller,
    /// The task that the tools were told of last.
    task: Option<TaskId>,
    redactor: Arc<Redactor>,
    last_net: LastNet,
    pictures: Pictures,
    guides: Guides,
    reload: Option<Arc<Notify>>,
    modes: Option<watch::Sender<Mode>>,
    /// What spawned work brings back.
    inputs: mpsc::Sender<Input>,
    stream: Option<ModelStream>,
    kill: CancellationToken,
    runs: Runs,
    previews: Previews,
    /// Effects that wait for a commit that failed.
    stalled: VecDeque<Effect>,
    /// Calls that came to an end, those of earlier runs too.
    tool_uses: ToolUses,
    started: Instant,
    /// When the session ends, whatever still runs; set once the person quits.
    deadline: Option<tokio::time::Instant>,
    ending: bool,
}

async fn run(setup: Setup, mut commands: mpsc::Receiver<Command>, events: mpsc::UnboundedSender<Event>) {
    let (inputs, mut receive_inputs) = mpsc::channel(CHANNEL_DEPTH);
    let resumed = !setup.records.is_empty();
    let started = EventKind::SessionStarted {
        model: setup.options.model.name.clone(),
        mode: setup.mode,
        workspace: setup.workspace,
        resumed,
        facts: Some(setup.options.model.clone()),
    };
    let in_force = EventKind::PolicyInForce { layers: setup.policy.layers(), name: setup.policy_name, message: None };
    let (mut updates, reload, modes) = match setup.policy_updates {
        Some(PolicyUpdates { updates, reload, modes }) => (Some(updates), Some(reload), Some(modes)),
        None => (None, None, None),
    };
    let held: EventKind = setup.sandbox_status.into();
    let (mut running, tell_changes) = (setup.running, setup.tell_changes);
    let mut host = Host {
        machine: Machine::new(setup.policy, setup.options),
        model: setup.model,
        models: setup.models,
        opening: Opening::default(),
        router: setup.router,
        journal: setup.journal,
        rules: setup.rules,
        rules_in_turn: Arc::default(),
        teller: Teller { workspace_id: setup.workspace_id, session_id: setup.session_id, events },
        task: None,
        redactor: setup.redactor,
        last_net: LastNet::default(),
        pictures: Pictures::new(setup.artifacts),
        guides: Guides::new(setup.guidance),
        reload,
        modes,
        inputs,
        stream: None,
        kill: CancellationToken::new(),
        runs: Runs::default(),
        previews: Previews::default(),
        stalled: VecDeque::new(),
        tool_uses: used(&setup.records),
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
        let effects = host.machine.restore(setup.records, setup.settled, setup.unfinished, moment());
        host.perform(effects.into()).await;
    }
    host.tell_of_budgets();
    host.look_up();
    let mut heard = true;
    while !host.ending {
        let deadline = host.deadline;
        let input = tokio::select! {
            command = commands.recv(), if heard => {
                heard = command.is_some();
                // Who says quit and goes says it once; a second quit would not wait for what runs.
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
            delta = next_delta(&mut host.stream) => delta,
            () = tokio::time::sleep_until(deadline.unwrap_or_else(tokio::time::Instant::now)), if deadline.is_some() => break,
        };
        host.take(input).await;
    }
    host.save_what_is_stalled().await;
    let (task_count, total_tokens, cost_usd) = host.machine.totals();
    let duration_ms = u64::try_from(host.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tools = host.tool_uses.list();
    host.kill.cancel();
    // Nobody takes what still comes in, and who brings it does not wait.
    drop(receive_inputs);
    host.end_what_runs().await;
    if tell_changes {
        host.tell_changes_at_the_end().await;
    }
    host.emit(None, None, EventKind::SessionCompleted { task_count, total_tokens, cost_usd, duration_ms, tools });
}

impl Host {
    /// What the machine has to know of an update.
    fn updated(&mut self, update: PolicyUpdate) -> Option<Box<PolicyChange>> {
        let told = match update {
            PolicyUpdate::Taken { change, router, redactor } => {
                self.emit(None, None, change.sandbox_status.clone().into());
                self.router = router;
                self.redactor = redactor;
                // It may hide more than the one before.
                self.last_net = LastNet::default();
                return Some(change);
            }
            PolicyUpdate::Rejected { message } => EventKind::PolicyRejected { message },
            PolicyUpdate::Told { message } => EventKind::Notice { message },
        };
        self.emit(None, None, told);
        None
    }

    async fn take(&mut self, input: Input) {
        if let Input::Command(Command::ListChanges { task_id }) = input {
            return self.list_changes(task_id);
        }
        let input = self.without_secrets(input);
        self.note_end(&input);
        if let Input::Command(command @ (Command::ListArtifacts | Command::ReadArtifact { .. })) = input {
            return self.tell_artifacts(command);
        }
        if matches!(input, Input::Command(Command::Quit)) {
            self.deadline.get_or_insert_with(|| tokio::time::Instant::now() + Duration::from_millis(QUIT_GRACE_MS));
        }
        if self.stalled.is_empty() {
            let effects = self.machine.handle(input, moment());
            return self.perform(effects.into()).await;
        }
        // Nothing goes on before what was decided is saved. Whatever the person says tries it again.
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
                | Command::SetEffort { .. }
                | Command::ListModels { .. }
                | Command::Decide { .. }
                | Command::Resolve { .. }
                | Command::UndoGrant
                | Command::Preview { .. }
                | Command::Background { .. }
                | Command::Stop { .. }
                | Command::ListGrants
                | Command::ListArtifacts
                | Command::ReadArtifact { .. }
                | Command::Cancel
                | Command::Kill),
            ) => {
                let stops = matches!(command, Command::Cancel | Command::Kill);
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
                let message = "kept until the session can be saved; /continue tries again".to_owned();
                self.emit(None, None, EventKind::Notice { message });
            }
            Input::Command(Command::Quit) => {
                let effects = self.machine.handle(input, moment());
                self.keep(effects);
                self.call_off_runs(|_, _| Some(stalled::stopped()));
                self.call_off_rules();
            }
            Input::Command(Command::SetMode { .. } | Command::ReloadPolicy | Command::ListChanges { .. })
            | Input::Delta(_)
            | Input::ModelFailed(_)
            | Input::Planned(_)
            | Input::Previewed { .. }
            | Input::PolicyChanged(_)
            | Input::ToolOutput { .. }
            | Input::ToolFinished { .. }
            | Input::Kept(_)
            | Input::ModelOpened(_)
            | Input::MentionsPlanned { .. }
            | Input::MentionsRead { .. }
            | Input::Woken { .. } => {
                let effects = self.machine.handle(input, moment());
                self.keep(effects);
            }
        }
    }

    /// What the person says, before anything of it is kept or sent.
    fn without_secrets(&mut self, input: Input) -> Input {
        let Input::Command(command) = input else { return input };
        let (command, notice) = super::secrets::hide_in_command(&self.redactor, command);
        if let Some(message) = notice {
            self.emit(None, None, EventKind::Notice { message });
        }
        Input::Command(command)
    }

    async fn perform(&mut self, mut effects: VecDeque<Effect>) {
        while let Some(effect) = effects.pop_front() {
            if let Effect::Commit(records, durability) = effect {
                if let Err(failure) = self.commit(&records, durability).await {
                    effects.push_front(Effect::Commit(records, durability));
                    self.stalled = effects;
                    self.emit(None, None, EventKind::SessionPaused { failure });
                    self.tell_stalled(true);
                    return;
                }
            } else {
                self.act(effect).await;
            }
        }
    }

    async fn commit(&mut self, records: &[Record], durability: Durability) -> Result<(), Failure> {
        if records.is_empty() {
            return Ok(());
        }
        self.journal.append(records.to_vec(), durability).await.map_err(|error| {
            tracing::error!(%error, "journal");
            Failure::new(
                FailureKind::Internal,
                format!("{error}; paused before the next step"),
                "make room or mend the data directory, then /continue",
            )
        })
    }

    async fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(..) => {}
            Effect::Emit { task_id, step_id, kind } => {
                if let EventKind::ToolCompleted { tool_name, status, latency_ms, .. } = &kind {
                    self.tool_uses.note(tool_name, *status, *latency_ms);
                }
                if let EventKind::ContextCompacted(_) | EventKind::ContextTruncated { .. } = &kind {
                    self.guides.forget();
                }
                if let Some(task) = &task_id {
                    self.note_task(task);
                }
                if let (EventKind::ModeChanged { mode }, Some(modes)) = (&kind, &self.modes) {
                    modes.send_replace(*mode);
                }
                self.emit(task_id, step_id, self.with_places(kind));
            }
            Effect::Request(request) => {
                let mut request = self.last_net.hide_in_request(&self.redactor, request);
                if self.model.facts().images {
                    request.images = Some(self.pictures.of(&request.messages).await);
                }
                let redactor = self.redactor.clone();
                let hide = move |error| super::secrets::hide_in_failure(&redactor, error);
                self.stream = Some(self.model.stream(request).map_err(hide).boxed());
            }
            Effect::StopModel => self.stream = None,
            Effect::Plan(calls) => self.plan(calls),
            Effect::PlanOpened { index, call, opens } => self.plan_opened(index, call, opens),
            Effect::Preview { index, plan, permit, ticket } => self.preview(index, plan, permit, ticket),
            Effect::StopPreview { ticket } => self.previews.stop(ticket),
            Effect::Run { index, plan, permit } => self.run(index, plan, permit),
            Effect::Background { tool_call_id } => self.background(tool_call_id.as_ref()),
            Effect::StopCommand { id } => self.router.stop_command(&id),
            Effect::KillTools => self.kill_tools(),
            Effect::Remember { .. } | Effect::Forget(_) | Effect::ListGrants => self.keep_rules(effect),
            Effect::Wake { after_ms, ticket } => {
                let inputs = self.inputs.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(after_ms)).await;
                    let _ = inputs.send(Input::Woken { ticket }).await;
                });
            }
            Effect::SaveDraft(text) => {
                if let Err(error) = self.journal.save_draft(text).await {
                    tracing::warn!(%error, "draft");
                }
            }
            Effect::OpenModel { name } => self.open_model(name),
            Effect::UseModel { name } => self.use_model(&name),
            Effect::PlanMentions { ticket, calls } => self.plan_mentions(ticket, calls),
            Effect::ReadMentions { ticket, runs } => self.read_mentions(ticket, runs),
            Effect::ListModels { ask } => self.list_models(ask),
            Effect::ReloadPolicy => {
                if let Some(reload) = &self.reload {
                    reload.notify_one();
                } else {
                    let message = "this session keeps the policy it began with".to_owned();
                    self.emit(None, None, EventKind::Notice { message });
                }
            }
            Effect::End => self.ending = true,
        }
    }

    fn emit(&self, task_id: Option<TaskId>, step_id: Option<StepId>, kind: EventKind) {
        self.teller.tell(task_id, step_id, kind);
    }

    fn teller(&self) -> Teller {
        self.teller.clone()
    }
}
