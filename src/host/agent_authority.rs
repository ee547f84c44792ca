//! Limits an agent's permissions to those of the session that started it.

use crate::agent::Account;
use crate::host::agent_tree::AgentTree;
use crate::host::policy_layers::Policy;
use crate::policy::Enforcer;
use crate::ports::{ArtifactUploads, Diagnostics};
use crate::protocol::{AskingAgent, Mode, SessionId};
use crate::tools::{ChangeLog, RemoteConfig, SessionAgents, SessionSkills};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// A session's policy, with its mode and its limits on tools.
#[derive(Clone)]
pub(crate) struct Authority {
    pub policy: Policy,
    pub enforcer: Enforcer,
}

/// Connection between a session and the agents it starts. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentLinks {
    /// Agents that can be started, and the service that runs them.
    pub agents: SessionAgents,
    pub authority: Arc<watch::Sender<Authority>>,
    /// Account that pays for the agents, set once the session is running.
    pub account: Arc<OnceLock<Account>>,
}

/// Function that returns the tools of the session's MCP servers that an agent may use under its policy.
pub(crate) type OfferServers = Arc<dyn Fn(&Enforcer) -> RemoteConfig + Send + Sync>;

/// State that an agent's tools share with the session that started the agent. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ParentTools {
    /// Log of file changes, including those made by the agent.
    pub changes: ChangeLog,
    /// Skills in use, which also restrict the agent's calls.
    pub skills: SessionSkills,
    /// MCP servers, or `None` if there are none.
    pub servers: Option<OfferServers>,
    /// Language servers, or `None` if there are none.
    pub diagnostics: Option<Arc<dyn Diagnostics>>,
    /// Uploads of artifacts to the object store, or `None` if no store is configured.
    pub uploads: Option<Arc<dyn ArtifactUploads>>,
}

/// Session that started this one. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ParentSession {
    pub session: SessionId,
    /// Agent that runs in this session.
    pub agent: AskingAgent,
    pub tools: ParentTools,
    /// Entries of the agent's tool list, to which its calls are restricted.
    pub scope: Option<Vec<String>>,
    /// This session's position in the tree of agents.
    pub tree: AgentTree,
    authority: watch::Receiver<Authority>,
}

impl ParentSession {
    pub(crate) fn new(
        (session, agent): (SessionId, AskingAgent),
        (tools, scope): (ParentTools, Option<Vec<String>>),
        (authority, tree): (watch::Receiver<Authority>, AgentTree),
    ) -> Self {
        Self { session, agent, tools, scope, tree, authority }
    }

    /// Returns the ID of this session.
    pub(crate) fn child(&self) -> &SessionId {
        &self.agent.agent_session_id
    }

    /// Returns the parent session's current mode.
    pub(crate) fn mode(&self) -> Mode {
        self.authority.borrow().enforcer.mode()
    }

    /// Returns the parent session's current policy.
    pub(crate) fn policy(&self) -> Policy {
        self.authority.borrow().policy.clone()
    }

    /// Restricts an enforcer to actions that the parent session's enforcer allows too.
    pub(crate) fn narrow(&self, enforcer: Enforcer) -> Enforcer {
        enforcer.within(self.authority.borrow().enforcer.clone())
    }

    /// Waits until the parent session's policy, mode or limits change. Never completes once the parent has ended.
    pub(crate) async fn changed(&mut self) {
        if self.authority.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
