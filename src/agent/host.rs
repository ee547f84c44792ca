//! Host of the turn machine: performs the machine's effects in order and feeds the results back to it.

mod account;
mod agent_approvals;
mod backpressure;
mod call_context;
pub(super) mod call_timeout;
mod changes;
mod clock;
mod deferred_effects;
mod effects;
mod event_log;
mod event_sender;
mod hooks;
mod mentions;
mod model_client;
mod nested_instructions;
mod output_tail;
mod planning;
mod policy_updates;
mod previews;
mod proposal_watch;
mod queries;
mod rewind;
mod rule_files;
mod sampling;
mod server_queries;
mod server_requests;
mod servers;
mod session_journal;
mod setup;
mod sources;
#[cfg(test)]
mod tests;
mod tool_runs;

use super::limits::{CHANNEL_DEPTH, QUIT_GRACE_MS};
use super::redaction::hide_in_command;
use super::turn::{Input, PolicyChange, TurnMachine};
use crate::ports::ToolRouter;
use crate::protocol::{Command, Event, EventKind, HostCommand, SessionCommand, ToolUses};
use crate::session::SessionState;
pub(crate) use account::{Account, AccountState};
use account::{Charge, ChargedWork};
use agent_approvals::AgentApprovals;
use backpressure::Backpressure;
use call_context::CallContext;
use changes::{ChangeTracker, all_changes};
use clock::moment;
use deferred_effects::DeferredEffects;
pub(crate) use event_log::EVENTS;
use event_sender::EventSender;
use model_client::ModelClient;
use nested_instructions::NestedInstructions;
use policy_updates::PolicySource;
pub(crate) use policy_updates::{PolicyUpdate, PolicyUpdates, ReloadRequest};
use previews::Previews;
use proposal_watch::ProposalWatch;
pub(crate) use queries::SessionQueries;
use rule_files::RuleFiles;
use sampling::{Sampling, SamplingPhase, SamplingQueue};
pub(crate) use server_requests::{SamplingFilter, ServerConnections, request_handler};
use server_requests::{ServerEvent, ServerEvents, ServerRequest};
use servers::ServerStates;
use session_journal::SessionJournal;
pub(crate) use setup::{ModelSetup, PolicySetup, RestoredSession, Setup, SummaryModelSetup};
use sources::{InputSources, Occurrence, Timers};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tool_runs::ToolRuns;

/// Spawns a session that runs until it receives `Command::Quit` or its command sender is dropped.
///
/// The caller creates the channels, which allows a front end to be set up before the session.
pub(crate) fn spawn(
    mut setup: Setup,
    commands: mpsc::Receiver<SessionCommand>,
    events: mpsc::UnboundedSender<Event>,
) -> SessionHandle {
    let (router, _) = watch::channel(Arc::clone(&setup.router));
    let sender = EventSender { workspace_id: setup.workspace_id.clone(), session_id: setup.session_id.clone(), events };
    let (sampling, phases) = SamplingQueue::new();
    let (remote, mut server_events) = match setup.remote.take() {
        Some(ServerConnections { servers, asked }) => (Some(Arc::clone(&servers)), ServerEvents::new(&*servers, asked, phases)),
        None => (None, ServerEvents::default()),
    };
    server_events.questions = setup.questions.take();
    let servers = ServerStates::new(remote, sender.clone());
    let queries = SessionQueries::new(&sender, router.subscribe(), servers.queries());
    let (account, charges) = Account::new();
    let links = SessionChannels { router, servers, sampling, server_events, charges, sender };
    let ended = tokio::spawn(run(setup, commands, links));
    SessionHandle { ended, queries, account }
}

/// Handle to a running session.
pub(crate) struct SessionHandle {
    pub ended: JoinHandle<()>,
    /// Handler for queries, which works until the session has ended.
    pub queries: SessionQueries,
    /// Account that counts requests made by agents and reviews.
    pub account: Account,
}

/// Channels that the session shares with its query handler and its servers.
struct SessionChannels {
    router: watch::Sender<Arc<dyn ToolRouter>>,
    servers: ServerStates,
    sampling: SamplingQueue,
    server_events: ServerEvents,
    charges: mpsc::Receiver<Charge>,
    sender: EventSender,
}

struct Host {
    machine: TurnMachine,
    model: ModelClient,
    context: CallContext,
    runs: ToolRuns,
    previews: Previews,
    proposals: ProposalWatch,
    changes: ChangeTracker,
    policy: PolicySource,
    rules: RuleFiles,
    agent_approvals: AgentApprovals,
    servers: ServerStates,
    sampling: SamplingQueue,
    journal: SessionJournal,
    deferred: DeferredEffects,
    sender: EventSender,
    /// Statistics about completed calls, including those from earlier runs.
    tool_uses: ToolUses,
    started: Instant,
    /// Time at which the session ends even if calls are still running. Set when the user quits.
    deadline: Option<tokio::time::Instant>,
    ending: bool,
}

async fn run(mut setup: Setup, commands: mpsc::Receiver<SessionCommand>, links: SessionChannels) {
    let (inputs, receive_inputs) = mpsc::channel(CHANNEL_DEPTH);
    let (room, report_changes) = (Backpressure::new(setup.room.take()), setup.tell_changes);
    let mut sources = InputSources {
        commands: Some(commands),
        inputs: receive_inputs,
        running: setup.running.take(),
        servers: links.server_events,
        charges: links.charges,
        room: room.clone(),
    };
    for kind in opening_events(&setup) {
        links.sender.send(None, None, kind);
    }
    let context = CallContext::new(links.router, setup.redactor, room, inputs.clone());
    let mut host = Host {
        machine: TurnMachine::new(setup.policy.enforcer, setup.options),
        model: ModelClient::new(setup.models, setup.artifacts, inputs.clone(), links.sender.clone()),
        context,
        runs: ToolRuns::new(NestedInstructions::new(setup.guidance)),
        previews: Previews::default(),
        proposals: ProposalWatch::default(),
        changes: ChangeTracker::default(),
        policy: PolicySource::new(setup.policy.updates),
        rules: RuleFiles::new(setup.rules, inputs),
        agent_approvals: AgentApprovals::default(),
        servers: links.servers,
        sampling: links.sampling,
        journal: SessionJournal::new(setup.journal, links.sender.clone()),
        deferred: DeferredEffects::default(),
        sender: links.sender,
        tool_uses: SessionState::from_records(&setup.restored.records).tool_uses,
        started: Instant::now(),
        deadline: None,
        ending: false,
    };
    host.start(setup.restored).await;
    while !host.ending {
        host.watch_proposals();
        let timers = Timers { tail: host.runs.tail_due(), deadline: host.deadline };
        let occurrence = sources.next(&mut host.model, &mut host.policy, timers).await;
        Box::pin(host.react(occurrence)).await;
    }
    // Unblocks agents and reviews that are waiting for the account.
    drop(sources.charges);
    Box::pin(host.shut_down(sources.inputs, report_changes)).await;
}

/// Returns the events that every session begins with.
fn opening_events(setup: &Setup) -> [EventKind; 3] {
    let started = EventKind::SessionStarted {
        model: setup.options.model.name.clone(),
        mode: setup.mode,
        workspace: setup.workspace.clone(),
        resumed: !setup.restored.records.is_empty(),
        facts: Some(setup.options.model.clone()),
    };
    let in_force = EventKind::PolicyInForce {
        layers: setup.policy.enforcer.layers(),
        name: setup.policy.name.clone(),
        tools: setup.options.tools.names.clone(),
        message: None,
    };
    [started, in_force, setup.sandbox_status.clone().into()]
}

impl Host {
    async fn start(&mut self, restored: RestoredSession) {
        let effects = self.machine.begin_session();
        self.perform(effects).await;
        let RestoredSession { records, known, settled, unfinished } = restored;
        if !records.is_empty() {
            self.machine.set_recovery_info(known);
            let effects = self.machine.restore(records, settled, unfinished, moment());
            self.perform(effects).await;
        }
        self.report_servers().await;
        // Report the budgets to the front end immediately.
        let budgets = self.machine.budgets();
        if !budgets.is_empty() {
            self.emit(EventKind::BudgetShown { budgets });
        }
        self.model.query_facts();
        self.model.query_summary_facts();
    }

    async fn react(&mut self, occurrence: Occurrence) {
        let input = match occurrence {
            Occurrence::Input(input) => input,
            Occurrence::Command(command) => return Box::pin(self.take_host_command(command)).await,
            Occurrence::Policy(update) => match self.update_policy(update) {
                Some(change) => Input::PolicyChanged(change),
                None => return,
            },
            Occurrence::CommandsRunning(commands) => return self.emit(EventKind::CommandsRunning { commands }),
            Occurrence::Server(event) => return self.handle_server_event(event).await,
            Occurrence::Charge(charge) => return Box::pin(self.charge(charge)).await,
            Occurrence::TailsDue => return self.save_tails(),
            Occurrence::Deadline => {
                self.ending = true;
                return;
            }
        };
        let input = match input {
            // The command sandbox depends on the rule files, so reload the policy before the next command.
            Input::RuleFiles(kept) if kept.changes_visible_paths() => {
                self.reload_policy(ReloadRequest::Files).await;
                Input::RuleFiles(kept)
            }
            input => input,
        };
        self.apply_policy_updates().await;
        self.on_input(input).await;
    }

    /// Handles a command that does not concern a turn.
    async fn take_host_command(&mut self, command: HostCommand) {
        if command == HostCommand::Resume {
            self.reload_policy(ReloadRequest::Files).await;
        }
        self.apply_policy_updates().await;
        match command {
            HostCommand::AnswerElicitation { elicitation_id, answer } => self.servers.answer(&elicitation_id, answer),
            HostCommand::ReconnectServer { name } => self.servers.reconnect(&name),
            HostCommand::StopAgent { agent_session_id } => self.context.router().stop_agent(&agent_session_id),
            HostCommand::GoOnUnsaved => {
                if self.journal.continue_unsaved(!self.deferred.is_empty()) {
                    self.retry().await;
                }
            }
            HostCommand::Resume => self.on_input(Input::Command(Command::Continue)).await,
        }
    }

    /// Counts a request made by a review or an agent, and sends the updated account state to the requester.
    async fn charge(&mut self, Charge { spent, event, answer }: Charge) {
        if let Some((mut event, agent)) = event {
            if let Some(agent) = agent {
                self.agent_approvals.note(&mut event, &agent, self.machine.has_mandate());
            }
            self.emit(event);
        }
        match spent {
            Some((spent, ChargedWork::Review)) => self.on_input(Input::Reviewed(spent)).await,
            Some((spent, ChargedWork::Agent)) => self.on_input(Input::AgentSpent(spent)).await,
            None => {}
        }
        let failure = self.machine.request_obstacle(moment());
        let (model, effort, budgets) = self.machine.account();
        let assumed_price = self.machine.assumed_price();
        // Fails harmlessly if the review or agent has already ended.
        let _ = answer.send(AccountState { failure, model, effort, assumed_price, budgets });
    }

    /// Applies all policy updates received so far. They are applied before the next input, which makes a tool
    /// announced by another tool available immediately.
    async fn apply_policy_updates(&mut self) {
        while let Some(update) = self.policy.take_next() {
            self.apply_policy(update).await;
        }
    }

    async fn on_input(&mut self, input: Input) {
        match &input {
            Input::ModelOpened(Ok(facts)) if facts.name == self.model.facts().name => {
                self.servers.set_window(facts.context_window);
            }
            Input::ToolOutput { index, text } => self.runs.add_output(*index, text),
            Input::ToolFinished { index, .. } => self.runs.remove(*index),
            Input::Previewed { ticket, .. } => self.previews.on_ended(*ticket),
            _ => {}
        }
        match input {
            // Both futures are boxed because they are large and would otherwise be part of every caller's future.
            Input::Command(command) => Box::pin(self.take_command(command)).await,
            input => Box::pin(self.take_input(input)).await,
        }
    }

    async fn take_command(&mut self, command: Command) {
        if let Some(agent) = self.agent_approvals.agent_of(&command) {
            return self.context.router().tell_agent(agent, command);
        }
        match command {
            Command::Quit => {
                self.deadline.get_or_insert_with(|| tokio::time::Instant::now() + Duration::from_millis(QUIT_GRACE_MS));
            }
            Command::Continue if self.deferred.is_empty() => self.journal.retry_save().await,
            _ => {}
        }
        // Secrets in user input must neither be saved nor sent to the model.
        let (command, notice) = hide_in_command(&self.context.redactor(), command);
        if let Some(message) = notice {
            self.notify(message);
        }
        self.take_input(Input::Command(command)).await;
    }

    async fn take_input(&mut self, input: Input) {
        if self.deferred.is_empty() {
            let effects = self.machine.handle(input, moment());
            self.perform(effects).await;
        } else {
            self.take_unsaved(input).await;
        }
    }

    /// Watches the files affected by the approvals that are currently pending.
    fn watch_proposals(&mut self) {
        if !self.proposals.is_on(self.machine.pending_changes().map(|(id, _)| id)) {
            let pending = self.machine.pending_changes().map(|(id, places)| (id.clone(), places.to_vec())).collect();
            self.proposals.set(&self.context, pending);
        }
    }

    /// Saves the latest output of running commands, unless earlier records are still unsaved.
    fn save_tails(&mut self) {
        let can_save = self.deferred.is_empty() && !self.journal.is_unsaved();
        for (id, tail) in self.runs.take_due_tails() {
            if can_save {
                self.journal.save_tail(id, tail);
            }
        }
    }

    /// Requests a reload and applies the resulting updates before any other input.
    async fn reload_policy(&mut self, request: impl FnOnce(oneshot::Sender<()>) -> ReloadRequest) {
        let Some(mut reload) = self.policy.reload(request) else { return };
        while let Some(update) = self.policy.next_of(&mut reload).await {
            self.apply_policy(update).await;
        }
    }

    async fn apply_policy(&mut self, update: PolicyUpdate) {
        if let Some(change) = self.update_policy(update) {
            self.take_input(Input::PolicyChanged(change)).await;
        }
    }

    /// Applies a policy update and returns the change that the turn machine needs to know about, if any.
    fn update_policy(&mut self, update: PolicyUpdate) -> Option<Box<PolicyChange>> {
        match update {
            PolicyUpdate::Accepted { change, router, redactor } => {
                self.emit(change.sandbox_status.clone().into());
                self.context.replace(router, redactor);
                self.model.forget_redactions();
                return Some(change);
            }
            PolicyUpdate::Rejected { message } => self.emit(EventKind::PolicyRejected { message }),
            PolicyUpdate::Notice { message } => self.notify(message),
        }
        None
    }

    async fn handle_server_event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Changed => self.report_servers().await,
            ServerEvent::Request(ServerRequest::Elicitation(elicitation, answer)) => {
                self.servers.ask(elicitation, answer);
            }
            ServerEvent::Request(ServerRequest::Sampling(sampling)) => self.sample(sampling),
            ServerEvent::Sampling(SamplingPhase::Approved(approved)) => {
                self.sampling.push(approved);
                self.start_sampling();
            }
            ServerEvent::Sampling(SamplingPhase::Over(sampled)) => {
                self.sampling.on_ended();
                if let Some(sampled) = sampled {
                    self.take_input(Input::Sampled(sampled)).await;
                }
                self.start_sampling();
            }
        }
    }

    /// Reports server states that have changed. When a server becomes ready, its tools are made available before the
    /// report, so a task started in response to the report can use them.
    async fn report_servers(&mut self) {
        // Read the states before the tools: a server that becomes ready in between is reported in the next event.
        let Some(servers) = self.servers.take_changed() else { return };
        self.machine.set_servers(servers.iter().map(|status| status.name.clone()).collect());
        self.reload_policy(ReloadRequest::ServerTools).await;
        self.emit(EventKind::ServersChanged { servers });
    }

    /// Handles a sampling request. The server receives either the result or the reason why the request was refused.
    fn sample(&mut self, sampling: Sampling) {
        let asks = self.machine.may_sample(&sampling.server);
        if let Some((elicitation, answer)) = self.sampling.add(sampling, asks, &self.model.facts()) {
            self.servers.ask(elicitation, answer);
        }
        self.start_sampling();
    }

    fn start_sampling(&mut self) {
        while let Some(next) = self.sampling.take_next() {
            match self.machine.sampling(next.tokens(), next.most_tokens(), moment()) {
                Ok(allowed) => {
                    let (model, context) = (&self.model, &self.context);
                    let stream = |request| model.sample(context.redactor(), request);
                    self.sampling.start(next, allowed, stream, context.kill_token());
                }
                Err(failure) => next.refuse(failure.message),
            }
        }
    }

    async fn shut_down(mut self, inputs: mpsc::Receiver<Input>, report_changes: bool) {
        self.save_the_rest().await;
        let (task_count, total_tokens, cost_usd) = self.machine.totals();
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let tools = self.tool_uses.list();
        self.context.kill();
        // No further input will be processed, so do not let senders of input wait.
        drop(inputs);
        self.end_background_work().await;
        if report_changes && let Some(changed) = all_changes(&*self.context.router()).await {
            self.emit(EventKind::ChangedFiles(changed));
        }
        // A paused session is not completed. Its last event already says that it is paused.
        if !self.machine.is_paused() {
            self.emit(EventKind::SessionCompleted { task_count, total_tokens, cost_usd, duration_ms, tools });
        }
    }

    /// Ends all running commands and servers, and discards all previews.
    async fn end_background_work(&mut self) {
        let router = self.context.router();
        // Servers that are waiting for the model receive an error.
        self.sampling.clear();
        let ended = async { tokio::join!(router.end_commands(), self.previews.end(), self.servers.end()) };
        if tokio::time::timeout(Duration::from_millis(QUIT_GRACE_MS), ended).await.is_err() {
            tracing::warn!("some commands did not end within the time limit");
        }
    }

    fn emit(&self, kind: EventKind) {
        self.sender.send(None, None, kind);
    }

    fn notify(&self, message: impl Into<String>) {
        self.emit(EventKind::notice(message));
    }
}
