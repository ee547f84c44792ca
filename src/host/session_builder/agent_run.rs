//! Runs an agent in a session of its own.

use super::agent_approvals::RelayedApprovals;
use super::agent_error::{failed, stopped};
use super::front_end::FrontEnd;
use super::{PreparedSession, SessionBuilder};
use crate::agent::{self, Account, AccountState};
use crate::config::{SetEffort, SetLimit};
use crate::host::agent_authority::ParentSession;
use crate::host::blocking::off_thread;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::models::ModelCatalog;
use crate::host::options::{Common, SessionChoice};
use crate::policy::{ToolLimit, ToolNames};
use crate::ports::AgentTask;
use crate::protocol::{
    AgentEvent, AgentState, Budget, BudgetLimit, BudgetScope, BudgetUnit, Command, ErrorCode, Event, EventKind, FailedRequest,
    Failure, Mode, Problem, SessionId, ToolError,
};
use crate::session::{Expense, SessionState, TaskStage, Totals};
use crate::store::{Store, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Name of the agent in the error that is returned if its thread panics.
const WORKER: &str = "the agent";
/// Maximum number of bytes quoted in an error from the text of an unfinished agent.
const PARTIAL_BYTES: usize = 8 << 10;

/// Setup of an agent's session, derived from the parent session.
pub(super) struct ChildSetup {
    pub common: Common,
    pub app: AppContext,
    pub store: Store,
    pub parent: ParentSession,
    /// Account that pays for the agent's requests.
    pub account: Account,
    pub stop: CancellationToken,
    /// Sender for the agent's steps, one per line.
    pub output: mpsc::Sender<String>,
    /// Front end of the parent session, which handles approval prompts.
    pub front_end: FrontEnd,
}

/// An agent while it runs.
pub(super) struct AgentRun {
    setup: ChildSetup,
    task: AgentTask,
    /// Receives approval decisions, which contain the approval IDs of the session that shows them.
    decisions: mpsc::UnboundedReceiver<Command>,
    approvals: RelayedApprovals,
    /// Agents that this agent started, directly or indirectly, and that are still running. Each has its number of
    /// calls.
    below: Vec<(SessionId, u32)>,
}

/// Calls and usage of an agent as seen by this process.
#[derive(Default)]
struct Seen {
    calls: u32,
    totals: Totals,
}

/// Work that an earlier process did for the same call.
enum Earlier {
    Nothing,
    /// A session whose task has not been started.
    Session,
    /// A task that has not ended and will be continued.
    Unfinished,
    Ended(Result<String, ToolError>),
}

impl AgentRun {
    pub(super) fn new(setup: ChildSetup, task: AgentTask, decisions: mpsc::UnboundedReceiver<Command>) -> Self {
        let approvals = RelayedApprovals::new(&setup.parent.agent);
        Self { setup, task, decisions, approvals, below: Vec::new() }
    }

    /// Runs the agent, and returns its last message.
    pub(super) async fn result(mut self) -> Result<String, ToolError> {
        let earlier = match self.earlier().await.map_err(tool_error)? {
            Earlier::Ended(result) => return result,
            earlier => earlier,
        };
        let Some(state) = self.setup.account.state().await else { return Err(failed("the session is ending")) };
        if let Some(failure) = &state.failure {
            return Err(failed(failure.problem().text()));
        }
        let preparing = Box::pin(self.prepare(&state, &earlier));
        let prepared = tokio::select! {
            prepared = preparing => prepared.map_err(tool_error)?,
            () = self.setup.stop.cancelled() => return Err(stopped()),
        };
        self.emit_start().await;
        let mut seen = Seen::default();
        let result = self.drive(prepared, !matches!(earlier, Earlier::Unfinished), &mut seen).await;
        for event in self.approvals.end() {
            self.setup.account.relay(event, self.setup.parent.child()).await;
        }
        // An agent that ends early cannot report the ends of its own agents.
        for (agent_session_id, calls) in std::mem::take(&mut self.below) {
            let state = AgentState::Stopped;
            self.setup.account.emit(AgentEvent::Ended { agent_session_id, state, calls, tokens: 0, cost_usd: None }).await;
        }
        self.emit_end(&result, &seen).await;
        result
    }

    async fn emit_start(&self) {
        let AgentTask { tool_call_id, agent, title, prompt, terms, .. } = &self.task;
        let started = AgentEvent::Started {
            tool_call_id: tool_call_id.clone(),
            agent_session_id: self.setup.parent.child().clone(),
            agent: agent.clone(),
            title: title.clone(),
            prompt: prompt.clone(),
            max_steps: terms.max_steps,
            budget_percent: terms.budget_percent,
            parent_session_id: None,
        };
        self.setup.account.emit(started).await;
    }

    async fn emit_end(&self, result: &Result<String, ToolError>, seen: &Seen) {
        let state = match result {
            Ok(_) => AgentState::Completed,
            Err(error) if error.code == ErrorCode::Cancelled => AgentState::Stopped,
            Err(_) => AgentState::Failed,
        };
        let agent_session_id = self.setup.parent.child().clone();
        let (calls, tokens, cost_usd) = (seen.calls, seen.totals.tokens(), seen.totals.cost_usd);
        self.setup.account.emit(AgentEvent::Ended { agent_session_id, state, calls, tokens, cost_usd }).await;
    }

    /// Finds the work that an earlier process did for this call.
    async fn earlier(&self) -> Result<Earlier, CliError> {
        let (store, id) = (self.setup.store.clone(), self.setup.parent.child().clone());
        off_thread(WORKER, move || {
            let loaded = match store.load(&id) {
                Ok(loaded) => loaded,
                Err(StoreError::NoSession { .. }) => return Ok(Earlier::Nothing),
                Err(error) => return Err(CliError::from(error)),
            };
            let state = SessionState::from_records(&loaded.records);
            Ok(match state.task().map(|task| task.stage) {
                None => Earlier::Session,
                Some(TaskStage::Completed) => Earlier::Ended(Ok(state.last_response().to_owned())),
                Some(TaskStage::Failed | TaskStage::Cancelled) => {
                    let message = with_text("the agent was stopped before aye exited", state.last_response());
                    Earlier::Ended(Err(failed(message)))
                }
                Some(TaskStage::Running | TaskStage::Waiting | TaskStage::Paused) => Earlier::Unfinished,
            })
        })
        .await?
    }

    /// Opens the agent's session.
    async fn prepare(&self, state: &AccountState, earlier: &Earlier) -> Result<PreparedSession, CliError> {
        let (common, app) = (self.common(state), self.app(state));
        let (store, id) = (self.setup.store.clone(), self.setup.parent.child().clone());
        let choice = match earlier {
            Earlier::Session | Earlier::Unfinished => SessionChoice::Id(id.to_string()),
            Earlier::Nothing | Earlier::Ended(_) => SessionChoice::New,
        };
        let front_end = FrontEnd::agent(&self.setup.front_end);
        let builder = off_thread(WORKER, move || SessionBuilder::find(front_end, common, app, store, &choice));
        let builder = builder.await??.with_model().await?;
        let mut claimed = off_thread(WORKER, move || builder.claim()).await??;
        let sandbox = off_thread(WORKER, claimed.sandbox_probe()).await?;
        claimed.set_sandbox(sandbox);
        Ok(Box::pin(claimed.prepare()).await?)
    }

    fn common(&self, state: &AccountState) -> Common {
        let model = match self.task.model.as_deref() {
            None => state.model.clone(),
            Some(name) if name.contains('/') => name.to_owned(),
            // A name of another agent's definition, such as `opus`.
            Some(name) => {
                let models = ModelCatalog::new(&self.setup.app).with_policy(&self.setup.parent.policy());
                models.in_provider_of(&state.model, name).unwrap_or_else(|| state.model.clone())
            }
        };
        Common {
            model: Some(model).filter(|model| !model.is_empty()),
            mode: Some(self.mode()),
            max_steps: Some(self.steps(state)),
            take_over: false,
            ..self.setup.common.clone()
        }
    }

    /// Returns the agent's mode, which is plan mode for a read-only agent and otherwise the parent session's mode.
    fn mode(&self) -> Mode {
        if self.task.reads_only { Mode::Plan } else { self.setup.parent.mode() }
    }

    /// Returns the agent's environment, with its own mode, tools and share of the budgets.
    fn app(&self, state: &AccountState) -> AppContext {
        let mut app = self.setup.app.clone();
        app.mode = self.mode();
        app.parent = Some(self.setup.parent.clone());
        let rule = format!("agent {}", self.task.agent);
        let limit = |names| ToolLimit { rule: rule.clone(), names };
        let (allowed, denied) = (self.task.tools.clone(), self.task.denied_tools.clone());
        app.run_limits = vec![limit(ToolNames::Allowed(allowed)), limit(ToolNames::Disabled(denied))];
        app.settings.limits = shares(&state.budgets, self.task.terms.budget_percent, &rule);
        let effort = self.task.effort.or(state.effort);
        app.settings.effort = effort.map(|effort| SetEffort { effort, by_flag: true });
        let price = state.assumed_price.map(|price| (state.model.clone(), price));
        app.settings.price_of_parent = price.or(app.settings.price_of_parent);
        app
    }

    /// Returns the maximum number of steps, which cannot exceed the steps that remain in the session.
    fn steps(&self, state: &AccountState) -> u32 {
        let left = state.budgets.iter().filter(|budget| budget.unit == BudgetUnit::Steps).map(left);
        let least = left.fold(f64::from(self.task.terms.max_steps), f64::min);
        // At least one step, and no more than remain.
        least.max(1.0) as u32
    }

    /// Runs the session until its task ends, and then closes it.
    async fn drive(&mut self, prepared: PreparedSession, is_new: bool, seen: &mut Seen) -> Result<String, ToolError> {
        let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
        let (events, mut receive_events) = mpsc::unbounded_channel();
        let mut session = prepared.start(receive_commands, events, None);
        if is_new {
            let _ = commands.send(Command::Prompt { text: self.prompt() }.into()).await;
        }
        let mut end = None;
        let mut is_stopping = false;
        loop {
            let event: Option<Event> = tokio::select! {
                event = receive_events.recv() => event,
                Some(decision) = self.decisions.recv() => {
                    if let Some(decision) = self.approvals.restore(decision) {
                        let _ = commands.send(decision.into()).await;
                    }
                    continue;
                }
                () = self.setup.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    let _ = commands.send(Command::Kill.into()).await;
                    let _ = commands.send(Command::Quit.into()).await;
                    continue;
                }
            };
            let Some(Event { kind, .. }) = event else { break };
            if let Some(failure) = self.follow(&kind, seen).await {
                end.get_or_insert(Err(failed(failure.problem().text())));
                let _ = commands.send(Command::Kill.into()).await;
            }
            if kind.is_over() {
                end.get_or_insert_with(|| ended(kind));
                let _ = commands.send(Command::Quit.into()).await;
            }
        }
        session.wait_until_ended().await;
        session.close().await;
        let end = end.unwrap_or_else(|| Err(failed("the agent ended without a result")));
        match end {
            Ok(text) => Ok(text),
            Err(_) if is_stopping => Err(stopped()),
            Err(error) => Err(self.with_partial_text(error).await),
        }
    }

    /// Reports the step that an event describes, or counts the usage that it contains. If no further request may be
    /// sent, returns the reason.
    async fn follow(&mut self, kind: &EventKind, seen: &mut Seen) -> Option<Failure> {
        match kind {
            EventKind::ToolRequested { summary, .. } => {
                // If the channel is full, lines are dropped; the result is complete.
                let _ = self.setup.output.try_send(format!("{summary}\n"));
                seen.calls += 1;
                let (agent_session_id, calls) = (self.setup.parent.child().clone(), seen.calls);
                self.setup.account.emit(AgentEvent::Called { agent_session_id, calls, summary: summary.clone() }).await;
            }
            EventKind::LlmRequestCompleted { usage, cost_usd, estimated, .. }
            | EventKind::LlmRetry(FailedRequest { usage: Some(usage), cost_usd, estimated, .. }) => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                seen.totals.add(spent);
                return self.setup.account.count_agent(spent).await;
            }
            EventKind::Agent(event) => return self.forward(event.clone(), seen).await,
            kind => {
                if let Some(event) = self.approvals.relay(kind) {
                    self.setup.account.relay(event, self.setup.parent.child()).await;
                }
            }
        }
        None
    }

    /// Reports an event from an agent that this agent started, and counts its usage. If no further request may be sent,
    /// returns the reason.
    async fn forward(&mut self, mut event: AgentEvent, seen: &mut Seen) -> Option<Failure> {
        match &mut event {
            AgentEvent::Spent { usage, cost_usd, estimated, .. } => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                seen.totals.add(spent);
                return self.setup.account.count_agent(spent).await;
            }
            AgentEvent::Started { parent_session_id, agent_session_id, .. } => {
                parent_session_id.get_or_insert_with(|| self.setup.parent.child().clone());
                self.below.push((agent_session_id.clone(), 0));
            }
            AgentEvent::Called { agent_session_id, calls, .. } => {
                self.below.iter_mut().filter(|(id, _)| id == agent_session_id).for_each(|(_, known)| *known = *calls);
            }
            AgentEvent::Ended { agent_session_id, .. } => self.below.retain(|(id, _)| id != agent_session_id),
        }
        self.setup.account.emit(event).await;
        None
    }

    /// Adds to the error the text that the agent wrote before its task failed.
    async fn with_partial_text(&self, error: ToolError) -> ToolError {
        let (store, id) = (self.setup.store.clone(), self.setup.parent.child().clone());
        let loaded = off_thread(WORKER, move || store.load(&id)).await;
        let Ok(Ok(loaded)) = loaded else { return error };
        let state = SessionState::from_records(&loaded.records);
        let message = with_text(&error.message, state.last_response());
        ToolError { message, ..error }
    }

    /// Returns the prompt for the agent's task.
    fn prompt(&self) -> String {
        let AgentTask { agent, title, instructions, prompt, .. } = &self.task;
        let tools = if self.mode() == Mode::Plan {
            "Your tools are read-only: calls that would change anything are denied."
        } else {
            "The user may deny a call."
        };
        // The first line is the title of the session.
        format!(
            "Agent {agent}: {title}\n\nYou work on this task for another session. {tools} No user is available to answer \
             questions. Your last message is the result.\n\n{instructions}\n\n# Task\n\n{prompt}"
        )
    }
}

/// Returns the result of a task that has ended.
fn ended(kind: EventKind) -> Result<String, ToolError> {
    match kind {
        EventKind::TaskCompleted { text, .. } if text.trim().is_empty() => Ok("The agent ended without a message.".to_owned()),
        EventKind::TaskCompleted { text, .. } => Ok(text),
        EventKind::TaskFailed { failure, .. }
        | EventKind::PromptBlocked { failure, .. }
        | EventKind::SessionPaused { failure } => Err(failed(failure.problem().text())),
        _ => Err(failed("the agent was interrupted")),
    }
}

fn with_text(message: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return message.to_owned();
    }
    let end = crate::protocol::cut_position_before(text, PARTIAL_BYTES);
    format!("{message}\nIts last text:\n{}", &text[..end])
}

/// Returns the agent's share of what remains of each budget.
fn shares(budgets: &[Budget], percent: u32, set_by: &str) -> Vec<SetLimit> {
    let share = |unit: BudgetUnit| {
        let amounts = budgets.iter().filter(|budget| budget.unit == unit).map(left);
        let least = amounts.fold(f64::INFINITY, f64::min);
        let limit = BudgetLimit { scope: BudgetScope::Session, unit, limit: least * f64::from(percent) / 100.0 };
        least.is_finite().then(|| SetLimit { limit, set_by: set_by.to_owned(), by_flag: true })
    };
    [BudgetUnit::CostUsd, BudgetUnit::Tokens].into_iter().filter_map(share).collect()
}

fn left(budget: &Budget) -> f64 {
    (budget.limit - budget.used).max(0.0)
}

fn tool_error(error: CliError) -> ToolError {
    let problem: Problem = error.into_problem();
    failed(problem.with_location("the agent could not be started").text())
}
