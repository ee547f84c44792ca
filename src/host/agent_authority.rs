//! Authority of an agent: at most the permissions of the session that started it.

use crate::agent::Account;
use crate::host::agent_tree::AgentTree;
use crate::host::policy_layers::Policy;
use crate::policy::Enforcer;
use crate::ports::{ArtifactUploads, Diagnostics};
use crate::protocol::{AskingAgent, Mode, SessionId};
use crate::tools::{ChangeLog, RemoteConfig, SessionAgents, SessionSkills};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// The policy of a session, with its mode and its limits on tools.
#[derive(Clone)]
pub(crate) struct Authority {
    pub policy: Policy,
    pub enforcer: Enforcer,
}

/// The connection between a session and its agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentLinks {
    /// The agents that can be started, and the service that runs them.
    pub agents: SessionAgents,
    pub authority: Arc<watch::Sender<Authority>>,
    /// The account that pays for the agents; set once the session runs.
    pub account: Arc<OnceLock<Account>>,
}

/// Returns the tools of the session's MCP servers for an agent, under its policy.
pub(crate) type OfferServers = Arc<dyn Fn(&Enforcer) -> RemoteConfig + Send + Sync>;

/// State that the tools of an agent share with the session that started it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ParentTools {
    /// The file changes, including those made by the agent.
    pub changes: ChangeLog,
    /// The skills in use, which also restrict the calls of the agent.
    pub skills: SessionSkills,
    /// The MCP servers; `None` if there are none.
    pub servers: Option<OfferServers>,
    /// The language servers; `None` if there are none.
    pub diagnostics: Option<Arc<dyn Diagnostics>>,
    /// Copies of artifacts in the object store; `None` if there are none.
    pub uploads: Option<Arc<dyn ArtifactUploads>>,
}

/// The session that started this one. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ParentSession {
    pub session: SessionId,
    /// The agent of this session.
    pub agent: AskingAgent,
    pub tools: ParentTools,
    /// Entries of the agent's tool list, which limit its calls.
    pub scope: Option<Vec<String>>,
    /// Position of this session in the tree of agents.
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

    /// Returns the current mode of the parent.
    pub(crate) fn mode(&self) -> Mode {
        self.authority.borrow().enforcer.mode()
    }

    /// Returns the current policy of the parent.
    pub(crate) fn policy(&self) -> Policy {
        self.authority.borrow().policy.clone()
    }

    /// Returns an enforcer whose verdicts also require a matching verdict of the parent.
    pub(crate) fn narrow(&self, enforcer: Enforcer) -> Enforcer {
        enforcer.within(self.authority.borrow().enforcer.clone())
    }

    /// Waits until the authority of the parent changes; never completes once the parent has ended.
    pub(crate) async fn changed(&mut self) {
        if self.authority.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
