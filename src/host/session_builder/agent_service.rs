//! Starts the agents of a session, enforces limits on them, and shuts them down.

use super::agent_error::{failed, stopped};
use super::agent_run::{AgentRun, ChildSetup};
use super::front_end::FrontEnd;
use crate::agent::Account;
use crate::config::AgentSettings;
use crate::host::agent_authority::{Authority, ParentSession, ParentTools};
use crate::host::agent_tree::{AgentTree, MAX_AGENTS};
use crate::host::context::AppContext;
use crate::host::options::Common;
use crate::ports::{AgentRunner, AgentTask, AgentTerms, BoxFuture, RunContext};
use crate::protocol::{AskingAgent, Command, ErrorCode, Mode, SessionId, ToolError, format_count};
use crate::store::Store;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Agents of a session. Cheap to clone.
#[derive(Clone)]
pub(super) struct AgentService {
    inner: Arc<Inner>,
}

struct Inner {
    front_end: FrontEnd,
    common: Common,
    app: AppContext,
    store: Store,
    /// Session that starts the agents.
    session: SessionId,
    authority: Arc<watch::Sender<Authority>>,
    /// Account that pays for the agents, set once the session is running.
    account: Arc<OnceLock<Account>>,
    tools: ParentTools,
    limits: AgentSettings,
    /// The session's position in the tree of agents.
    tree: AgentTree,
    state: Mutex<State>,
    /// Token that is cancelled when the session ends.
    end: CancellationToken,
}

#[derive(Default)]
struct State {
    /// The session's current step, and the number of agents started in it.
    step: u64,
    in_response: usize,
    /// Agents that were started in this process, by session ID.
    children: HashMap<SessionId, Child>,
    tasks: Vec<JoinHandle<()>>,
}

/// An agent that was started in this process.
struct Child {
    /// Sender for decisions on the agent's approvals.
    decisions: mpsc::UnboundedSender<Command>,
}

impl AgentService {
    /// Creates the service for a session in this environment.
    pub(super) fn new(
        (front_end, common): (FrontEnd, Common),
        app: AppContext,
        store: Store,
        (session, tools): (SessionId, ParentTools),
        (limits, tree): (AgentSettings, AgentTree),
        (authority, account): (&Arc<watch::Sender<Authority>>, &Arc<OnceLock<Account>>),
    ) -> Self {
        let inner = Inner {
            front_end,
            common,
            app,
            store,
            session,
            authority: Arc::clone(authority),
            account: Arc::clone(account),
            tools,
            limits,
            tree,
            state: Mutex::default(),
            end: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl AgentRunner for AgentService {
    fn terms(&self, max_steps: Option<u32>) -> AgentTerms {
        let limits = self.inner.limits;
        AgentTerms { max_steps: limits.steps_of(max_steps), budget_percent: limits.budget_percent }
    }

    fn mode(&self) -> Mode {
        self.inner.authority.borrow().enforcer.mode()
    }

    fn run(&self, task: AgentTask, context: RunContext) -> BoxFuture<'static, Result<String, ToolError>> {
        Arc::clone(&self.inner).run(task, context).boxed()
    }

    fn stepped(&self, step: u64) {
        let mut state = self.inner.state();
        if state.step != step {
            (state.step, state.in_response) = (step, 0);
        }
    }

    fn stop(&self, agent: &SessionId) {
        self.inner.tree.stop(agent);
    }

    fn pass_command(&self, agent: &SessionId, command: Command) {
        if let Some(child) = self.inner.state().children.get(agent) {
            // An agent that has ended needs no decision.
            let _ = child.decisions.send(command);
        }
    }

    fn end_all(&self) -> BoxFuture<'static, ()> {
        self.inner.end.cancel();
        let tasks = std::mem::take(&mut self.inner.state().tasks);
        async move {
            for task in tasks {
                let _ = task.await;
            }
        }
        .boxed()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>, task: AgentTask, context: RunContext) -> Result<String, ToolError> {
        let (child, stop, decisions) = self.admit(&task)?;
        let Some(account) = self.account.get().cloned() else {
            return Err(failed("the session has not started"));
        };
        let slot = tokio::select! {
            slot = self.tree.slot() => slot.map_err(|_| failed("the session is ending"))?,
            () = context.interrupt.cancelled() => return Err(stopped()),
            () = stop.cancelled() => return Err(stopped()),
        };
        // Dropping this future stops the agent, and its session is still closed.
        let guard = stop.clone().drop_guard();
        let agent = AskingAgent { name: task.agent.clone(), agent_session_id: child };
        let shared = (self.tools.clone(), task.scope.clone());
        let parent = ParentSession::new((self.session.clone(), agent), shared, (self.authority.subscribe(), self.tree.below()));
        let setup = ChildSetup {
            common: self.common.clone(),
            app: self.app.clone(),
            store: self.store.clone(),
            parent,
            account,
            stop: stop.clone(),
            output: context.output.clone(),
            front_end: self.front_end,
        };
        let (answer, mut answered) = tokio::sync::oneshot::channel();
        let run = AgentRun::new(setup, task, decisions);
        let work = tokio::spawn(async move {
            // The result of an abandoned call is not needed.
            let _ = answer.send(Box::pin(run.result()).await);
            drop(slot);
        });
        self.add(work);
        let result = tokio::select! {
            result = &mut answered => result,
            () = context.interrupt.cancelled() => {
                stop.cancel();
                answered.await
            }
        };
        drop(guard);
        result.unwrap_or_else(|_| Err(failed("the agent crashed")))
    }

    /// Registers an agent. Returns the ID of its session, a token that stops it, and a receiver for decisions on its
    /// approvals. The same call always results in the same ID, even after a crash.
    fn admit(&self, task: &AgentTask) -> Result<(SessionId, CancellationToken, mpsc::UnboundedReceiver<Command>), ToolError> {
        let mut state = self.state();
        if self.end.is_cancelled() {
            return Err(failed("the session is ending"));
        }
        let most = self.limits.per_response;
        if state.in_response >= most {
            let agents = format_count(most as u64, "agent", "agents");
            let message = format!("one response can start at most {agents}; start the others after these have ended");
            return Err(ToolError::new(ErrorCode::InvalidRequest, message));
        }
        let ids = (0_u32..).map(|number| child_id(&self.session, task, number));
        let Some(id) = ids.into_iter().find(|id| !state.children.contains_key(id)) else {
            return Err(failed("too many agents"));
        };
        let stop = self.end.child_token();
        if !self.tree.admit(id.clone(), stop.clone()) {
            let message =
                format!("a session and its agents can start at most {MAX_AGENTS} agents; do the rest yourself with your tools");
            return Err(ToolError::new(ErrorCode::InvalidRequest, message));
        }
        state.in_response += 1;
        let (decisions, receive) = mpsc::unbounded_channel();
        state.children.insert(id.clone(), Child { decisions });
        Ok((id, stop, receive))
    }

    fn add(&self, work: JoinHandle<()>) {
        let mut state = self.state();
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(work);
    }
}

/// Returns the ID for an agent's session. `number` is the number of earlier agents with the same call and prompt.
fn child_id(session: &SessionId, task: &AgentTask, number: u32) -> SessionId {
    let mut hash = blake3::Hasher::new();
    let number = number.to_string();
    for part in [session.as_str(), task.tool_call_id.as_str(), &task.agent, &task.prompt, &number] {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    SessionId::new(hash.finalize().to_hex()[..32].to_owned())
}
