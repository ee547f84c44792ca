//! Session in an editor, which handles prompts one at a time, requests approvals and sends updates.

mod asking;
mod setting;

use super::blocks;
use super::buffers::EditorBuffers;
use super::calls;
use super::client::Client;
use super::commands::{self, ParsedPrompt, Registry};
use super::diffs::{self, Direction};
use super::host::{FileProvider, RunningSession};
use super::options::Options;
use super::rpc::{INTERNAL, Reply, TASK_RUNNING, invalid_params, refuse, reply};
use super::slash::{self, AwaitedEvent, SlashContext, SlashOutcome};
use super::turn::{Turn, TurnEnd, end_of_turn};
use super::update_mapper::{EventTime, UpdateMapper};
use crate::protocol::{
    ApprovalId, Command, CustomCommand, Effort, Elicitation, ElicitationAnswer, ElicitationKind, Event, EventKind, GOAL_FORM,
    GoalState, HostCommand, HostRequest, HostResponse, Mode, PolicyLayer, Query, ReviewQuery, RunningCommand, SessionCommand,
    SessionId,
};
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandsUpdate, ConfigOptionUpdate, NoticeSeverity, PromptRequest, PromptResponse, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason,
};
use agent_client_protocol::{Error, RequestCancellation};
use asking::PendingQuestions;
use futures_util::future::BoxFuture;
use setting::PendingSettings;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum number of requests to a session that can be queued.
pub(crate) const ASKS: usize = 32;
/// Interval at which output of running commands is sent.
const INTERVAL: Duration = Duration::from_millis(150);
/// Maximum time to wait for the model list and similar data when a session starts. After that, the session starts
/// without it.
const BEGIN: Duration = Duration::from_secs(5);
/// Maximum time for a session to be saved.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// Request that an editor makes to a session.
pub(crate) enum Ask {
    Prompt(PromptRequest, Reply),
    Cancel,
    Mode(SetSessionModeRequest, Reply),
    Option(SetSessionConfigOptionRequest, Reply),
    /// Close the session. `gone` is whether the client has disconnected, in which case a running task is saved in its
    /// current state.
    Close {
        gone: bool,
        closed: oneshot::Sender<()>,
    },
}

/// Completes when the editor withdraws its request. Never completes if the request cannot be withdrawn.
async fn wait_for_withdrawal(withdrawn: Option<RequestCancellation>) {
    match withdrawn {
        Some(withdrawn) => withdrawn.cancelled().await,
        None => std::future::pending().await,
    }
}

pub(crate) struct EditorSession {
    client: Client,
    id: SessionId,
    registry: Registry,
    commands: mpsc::Sender<SessionCommand>,
    queries: mpsc::Sender<Query>,
    events: mpsc::UnboundedReceiver<Event>,
    files: Arc<dyn FileProvider>,
    buffers: Option<EditorBuffers>,
    ended: BoxFuture<'static, ()>,
    mapper: UpdateMapper,
    options: Options,
    own: Vec<CustomCommand>,
    advertised: Vec<AvailableCommand>,
    layers: Vec<PolicyLayer>,
    sandbox: String,
    running: Vec<RunningCommand>,
    /// Active goal, if there is one.
    goal: Option<GoalState>,
    turn: Option<Turn>,
    /// Prompt that arrived while the previous one was still being stopped.
    next: Option<(PromptRequest, Reply)>,
    asking: PendingQuestions,
    setting: PendingSettings,
    /// Time at which to send output of running commands next.
    due: Option<Instant>,
    held_back: VecDeque<Event>,
    /// Number of rewind confirmations so far, used to give each a unique ID.
    rewinds: u64,
}

impl EditorSession {
    /// Starts the session, and returns once its options are known.
    pub(crate) async fn start(
        mut client: Client,
        buffers: Option<EditorBuffers>,
        registry: Registry,
        opened: RunningSession,
    ) -> (Self, Vec<Event>, Vec<String>) {
        let RunningSession {
            id,
            directory,
            laxest,
            title,
            effort,
            commands,
            queries,
            events,
            history,
            notices,
            files,
            room,
            ended,
        } = opened;
        client.flow = Some(Arc::new(room));
        if let Some(buffers) = &buffers {
            buffers.set_session(&id);
        }
        let mapper = UpdateMapper::new(client.looks, client.understands(), directory, title);
        let options = Options {
            mode: Mode::default(),
            laxest,
            model: String::new(),
            effort,
            efforts: Effort::ALL.to_vec(),
            models: Vec::new(),
        };
        let mut session = Self {
            client,
            id,
            registry,
            commands,
            queries,
            events,
            files,
            buffers,
            ended,
            mapper,
            options,
            own: Vec::new(),
            advertised: Vec::new(),
            layers: Vec::new(),
            sandbox: String::new(),
            running: Vec::new(),
            goal: None,
            turn: None,
            next: None,
            asking: PendingQuestions::default(),
            setting: PendingSettings::default(),
            due: None,
            held_back: VecDeque::new(),
            rewinds: 0,
        };
        let _ = session.queries.send(Query::LookUp(HostRequest::Commands)).await;
        session.send(Command::ListModels { ask: false }).await;
        let _ = timeout(BEGIN, session.learn()).await;
        (session, history, notices)
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    async fn learn(&mut self) {
        let (mut commands, mut models) = (false, false);
        while !(commands && models) {
            let Some(event) = self.events.recv().await else { return };
            match &event.kind {
                EventKind::LookedUp(HostResponse::Commands { .. }) => commands = true,
                EventKind::ModelsListed { .. } => models = true,
                _ => {}
            }
            self.update_state(&event.kind);
            self.held_back.push_back(event);
        }
    }

    /// Updates the session state from an event.
    fn update_state(&mut self, kind: &EventKind) {
        match kind {
            EventKind::SessionStarted { model, mode, facts, .. } => {
                (self.options.model, self.options.mode) = (model.clone(), *mode);
                if let Some(facts) = facts {
                    self.options.efforts = facts.supported_efforts().to_vec();
                }
            }
            EventKind::ModelsListed { models, .. } => {
                self.options.models =
                    models.iter().filter(|model| model.lacks.is_none()).map(|model| model.facts.name.clone()).collect();
            }
            EventKind::ModelChanged { facts, effort, .. } => {
                (self.options.model, self.options.effort) = (facts.name.clone(), *effort);
                self.options.efforts = facts.supported_efforts().to_vec();
            }
            EventKind::ModeChanged { mode } => self.options.mode = *mode,
            EventKind::PolicyInForce { layers, .. } => self.layers.clone_from(layers),
            EventKind::SandboxInForce { words, .. } => self.sandbox.clone_from(words),
            EventKind::CommandsRunning { commands } => self.running.clone_from(commands),
            EventKind::GoalChanged(goal) => self.goal = Some(goal.clone()).filter(GoalState::is_active),
            EventKind::LookedUp(HostResponse::Commands { commands, .. }) => self.own.clone_from(commands),
            _ => {}
        }
    }

    /// Sends the history. Calls that have no recorded end are closed.
    pub(crate) async fn send_history(&mut self, history: Vec<Event>) {
        for event in history {
            let (updates, changed) = self.mapper.map(&event, EventTime::Before);
            self.update_all(updates).await;
            if let Some(changed) = changed {
                // The current file content may differ from the content at the time of the event.
                let paths = (&changed.proposal.paths[..], self.mapper.directory());
                let (content, _) = diffs::contents(&changed.proposal.diff, paths, &super::host::NoFiles, Direction::Back).await;
                self.client.update(&self.id, changed.into_update(content)).await;
            }
        }
        let open = self.mapper.close_open_calls();
        self.update_all(open).await;
    }

    /// Sends the first updates. This must happen after the editor has received the session ID.
    pub(crate) async fn introduce(&mut self, notices: Vec<String>) {
        self.advertise().await;
        for notice in notices {
            let update = self.mapper.notice(NoticeSeverity::Warning, &notice);
            self.client.update(&self.id, update).await;
        }
        while let Some(event) = self.held_back.pop_front() {
            self.on_event(event).await;
        }
        if let Some(usage) = self.mapper.usage() {
            self.client.update(&self.id, usage).await;
        }
    }

    async fn advertise(&mut self) {
        let commands = commands::available_commands(self.registry, &self.own);
        if commands == self.advertised {
            return;
        }
        self.advertised.clone_from(&commands);
        self.client.update(&self.id, SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))).await;
    }

    async fn update_all(&mut self, updates: Vec<SessionUpdate>) {
        for update in updates {
            self.client.update(&self.id, update).await;
        }
    }

    async fn send(&mut self, command: impl Into<SessionCommand>) {
        // If the session has ended, its events report that.
        let _ = self.commands.send(command.into()).await;
    }

    /// Runs the session until it ends or is closed.
    pub(crate) async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        loop {
            let deadline = self.setting.deadline();
            let withdrawn = self.turn.as_ref().and_then(Turn::cancellation);
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(Ask::Prompt(request, reply)) => self.prompt(request, reply).await,
                    Some(Ask::Cancel) => self.cancel().await,
                    Some(Ask::Mode(request, reply)) => self.set_mode(&request, reply).await,
                    Some(Ask::Option(request, reply)) => self.set_option(&request, reply).await,
                    Some(Ask::Close { gone, closed }) => {
                        self.close(gone).await;
                        let _ = closed.send(());
                        return;
                    }
                    None => return self.close(true).await,
                },
                event = self.events.recv() => match event {
                    Some(event) => self.on_event(event).await,
                    None => return self.end_pending_requests("the session has ended"),
                },
                Some(answer) = self.asking.next() => self.on_answer(answer).await,
                () = wait_for_withdrawal(withdrawn) => self.cancel().await,
                () = sleep_until(self.due.unwrap_or_else(Instant::now)), if self.due.is_some() => {
                    self.due = None;
                    let updates = self.mapper.output_updates();
                    self.update_all(updates).await;
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => self.setting.give_up(),
            }
        }
    }

    async fn prompt(&mut self, request: PromptRequest, to: Reply) {
        match &self.turn {
            Some(turn) if turn.cancelled && self.next.is_none() => self.next = Some((request, to)),
            Some(_) => refuse(
                to,
                TASK_RUNNING,
                "a prompt is already running in this session; cancel it first, or \
                wait for it to end",
            ),
            None => self.begin_turn(request, to).await,
        }
    }

    async fn begin_turn(&mut self, request: PromptRequest, to: Reply) {
        if let Some(buffers) = &self.buffers {
            buffers.start_prompt();
        }
        let text = match blocks::prompt(request.prompt, self.mapper.directory(), &*self.files).await {
            Ok(text) => text,
            Err(message) => return reply::<PromptResponse>(to, Err(invalid_params(message))),
        };
        match commands::parse_prompt(text, self.registry, &self.own) {
            ParsedPrompt::Prompt(text) => {
                self.turn = Some(Turn::task(to));
                self.send(Command::Prompt { text }).await;
            }
            ParsedPrompt::BuiltIn(name, behind) => self.begin_own(name, &behind, to).await,
            ParsedPrompt::Invalid(why) => self.reply_and_end(&why, to).await,
        }
    }

    async fn begin_own(&mut self, name: &'static str, behind: &str, to: Reply) {
        let begun = {
            let (registry, own) = (self.registry, &self.own);
            let known = SlashContext {
                help: &|| commands::help(registry, own),
                status: &|| self.status(),
                cost: &|| self.cost(),
                policy: &|| self.layers.iter().map(|layer| format!("- {layer}")).collect::<Vec<_>>().join("\n"),
                running: &|| self.list_running(),
                goal: &|| self.describe_goal(),
                options: &self.options,
            };
            slash::start(name, behind, &known)
        };
        match begun {
            Ok(SlashOutcome::Reply(text)) | Err(text) => self.reply_and_end(&text, to).await,
            Ok(SlashOutcome::Request(command, waits)) => {
                let stops = matches!(command, Command::Stop { .. });
                self.turn = Some(Turn::for_command(to, waits));
                self.send(command).await;
                if stops {
                    // The list of background commands shows the outcome, because no event follows if nothing has
                    // changed.
                    self.finish("stopping; `/ps` lists the commands that are still running").await;
                }
            }
            Ok(SlashOutcome::Query(query, waits)) => {
                self.turn = Some(Turn::for_command(to, waits));
                let _ = self.queries.send(query).await;
            }
            Ok(SlashOutcome::Goal(command)) if self.goal.is_none() && !matches!(command, Command::SetGoal { .. }) => {
                self.reply_and_end("no goal is active", to).await;
            }
            Ok(SlashOutcome::Goal(command)) => {
                self.turn = Some(Turn::for_goal(to));
                self.send(command).await;
            }
            Ok(SlashOutcome::Continue) => {
                self.turn = Some(Turn::continuing(to));
                self.send(Command::Continue).await;
            }
        }
    }

    async fn reply_and_end(&mut self, text: &str, to: Reply) {
        let update = self.mapper.text_update(text);
        self.client.update(&self.id, update).await;
        reply(to, Ok(PromptResponse::new(StopReason::EndTurn)));
    }

    fn status(&self) -> String {
        let mut lines = vec![
            format!("- session `{}`", self.id),
            format!("- workspace `{}`", self.mapper.directory().display()),
            format!("- model `{}`, effort {}", self.options.model, self.options.effort.map_or("auto", Effort::as_str)),
            format!("- mode {}", self.options.mode.as_str()),
        ];
        lines.extend(self.layers.iter().map(|layer| format!("- policy {layer}")));
        if !self.sandbox.is_empty() {
            lines.push(format!("- {}", self.sandbox));
        }
        lines.push(format!("- {}", self.cost()));
        lines.join("\n")
    }

    fn cost(&self) -> String {
        let cost = self.mapper.cost.map_or_else(|| "price unknown".to_owned(), |cost| format!("${cost:.4} in this session"));
        format!("{} of {} tokens in the context window; {cost}", self.mapper.used, self.mapper.window)
    }

    fn describe_goal(&self) -> String {
        match &self.goal {
            None => format!("no goal is set: `{GOAL_FORM}`"),
            Some(goal) => format!("{}\n- check: `{}`\n- goal: {}", goal.progress("·"), goal.goal.check, goal.goal.text),
        }
    }

    fn list_running(&self) -> String {
        if self.running.is_empty() {
            return "no background commands".to_owned();
        }
        let line = |one: &RunningCommand| format!("- {}: `{}`", one.id, calls::title(&one.line));
        self.running.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Reports an option that has changed, either in the response to the request that changed it, or otherwise in an
    /// update.
    async fn report_option(&mut self, kind: &EventKind) {
        let is_known = self.setting.complete(kind, &self.options);
        if !is_known {
            let update = ConfigOptionUpdate::new(self.options.config());
            self.client.update(&self.id, SessionUpdate::ConfigOptionUpdate(update)).await;
        }
    }

    /// Declines a form requested by an MCP server, because the editor cannot display forms.
    async fn decline(&mut self, asked: &Elicitation) {
        let words = format!(
            "the MCP server `{}` asks: {}\naye declined, because this editor cannot show its forms; run `aye \
            --resume={}` in a terminal to answer them.",
            asked.server, asked.message, self.id
        );
        let update = self.mapper.notice(NoticeSeverity::Warning, &words);
        self.client.update(&self.id, update).await;
        let (elicitation_id, answer) = (asked.elicitation_id.clone(), ElicitationAnswer::Decline);
        self.send(HostCommand::AnswerElicitation { elicitation_id, answer }).await;
    }

    async fn cancel(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        turn.cancelled = true;
        let waits = turn.waits;
        self.asking.forget_all();
        match waits {
            Some(AwaitedEvent::Summary) | None => {
                self.send(Command::Cancel).await;
                // The response arrives after the cancellation took effect. A prompt that has not started by then never
                // will.
                self.send(Command::ShowBudget).await;
            }
            Some(AwaitedEvent::Review) => {
                let _ = self.queries.send(Query::Review(ReviewQuery::Stop)).await;
                self.end_turn(Ok(StopReason::Cancelled)).await;
            }
            Some(_) => self.end_turn(Ok(StopReason::Cancelled)).await,
        }
    }

    async fn on_event(&mut self, event: Event) {
        self.update_state(&event.kind);
        let (mut updates, changed) = self.mapper.map(&event, EventTime::Now);
        let waited = self.turn.as_ref().and_then(|turn| slash::answer(turn.waits?, &event.kind));
        if waited.is_some() {
            // The response already contains this text.
            updates.retain(|update| !matches!(update, SessionUpdate::Notice(_) | SessionUpdate::AgentThoughtChunk(_)));
        }
        self.update_all(updates).await;
        if let Some(changed) = changed {
            let paths = (&changed.proposal.paths[..], self.mapper.directory());
            let (content, _) = diffs::contents(&changed.proposal.diff, paths, &*self.files, Direction::Back).await;
            self.client.update(&self.id, changed.into_update(content)).await;
        }
        if self.mapper.has_pending() && self.due.is_none() {
            self.due = Some(Instant::now() + INTERVAL);
        }
        match &event.kind {
            EventKind::ApprovalRequested(approval) => self.ask(approval).await,
            EventKind::ApprovalResolved { approval_id, .. } | EventKind::ApprovalTimeout { approval_id, .. } => {
                self.withdraw(approval_id);
            }
            EventKind::RewindPlanned(plan) if self.turn.as_ref().is_some_and(|turn| turn.waits == Some(AwaitedEvent::Rewind)) => {
                self.ask_rewind(plan).await;
            }
            EventKind::ModeChanged { .. } | EventKind::ModelChanged { .. } => self.report_option(&event.kind).await,
            EventKind::Notice { message, .. } => self.setting.reject(message),
            EventKind::ElicitationRequested(asked) => match &asked.wanted {
                ElicitationKind::Question { options, .. } => self.ask_for_model(asked, options),
                ElicitationKind::Form { .. } | ElicitationKind::Visit { .. } => self.decline(asked).await,
            },
            EventKind::ElicitationEnded { elicitation_id, .. } => self.asking.withdraw_question(elicitation_id),
            EventKind::LookedUp(HostResponse::Commands { .. }) => self.advertise().await,
            _ => {}
        }
        if let Some(text) = waited {
            return self.finish(&text).await;
        }
        let Some(turn) = &mut self.turn else { return };
        match end_of_turn(turn, &event) {
            TurnEnd::No => {}
            TurnEnd::With(stopped) => self.end_turn(Ok(stopped)).await,
            TurnEnd::Failed(error) => self.end_turn(Err(error)).await,
        }
    }

    /// Sends the output of a slash command, and ends its turn.
    async fn finish(&mut self, text: &str) {
        let update = self.mapper.text_update(text);
        self.client.update(&self.id, update).await;
        let stopped =
            if self.turn.as_ref().is_some_and(|turn| turn.cancelled) { StopReason::Cancelled } else { StopReason::EndTurn };
        self.end_turn(Ok(stopped)).await;
    }

    async fn end_turn(&mut self, result: Result<StopReason, Error>) {
        self.asking.withdraw_all();
        let updates = self.mapper.output_updates();
        self.update_all(updates).await;
        if let Some(turn) = self.turn.take() {
            reply(turn.reply, result.map(PromptResponse::new));
        }
        if let Some((request, to)) = self.next.take() {
            Box::pin(self.begin_turn(request, to)).await;
        }
    }

    fn withdraw(&mut self, approval: &ApprovalId) {
        self.asking.withdraw(approval);
    }

    /// Answers all requests that are still pending when the session ends.
    fn end_pending_requests(&mut self, why: &str) {
        self.asking.withdraw_all();
        self.setting.reject(why);
        if let Some(turn) = self.turn.take() {
            let cancelled = turn.cancelled;
            let result = if cancelled { Ok(PromptResponse::new(StopReason::Cancelled)) } else { Err(Error::new(INTERNAL, why)) };
            reply(turn.reply, result);
        }
        if let Some((_, to)) = self.next.take() {
            reply(to, Ok(PromptResponse::new(StopReason::Cancelled)));
        }
    }

    async fn close(&mut self, gone: bool) {
        if let Some(turn) = &mut self.turn {
            turn.cancelled = true;
        }
        if !gone {
            self.send(Command::Kill).await;
        }
        self.send(Command::Quit).await;
        let _ = timeout(SHUTDOWN_TIMEOUT, &mut self.ended).await;
        self.end_pending_requests("the session was closed");
    }
}
