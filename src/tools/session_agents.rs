//! A session's agents: those that are available, and the service that runs them.

use crate::ports::AgentRunner;
use crate::subagents::AgentSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the tool that starts an agent.
pub(crate) const AGENT: &str = "Agent";

/// A session's agents. Cheap to clone, and all clones share them.
#[derive(Clone)]
pub(crate) struct SessionAgents {
    set: Arc<Mutex<Arc<AgentSet>>>,
    runner: Arc<dyn AgentRunner>,
}

impl SessionAgents {
    pub(crate) fn new(set: Arc<AgentSet>, runner: Arc<dyn AgentRunner>) -> Self {
        Self { set: Arc::new(Mutex::new(set)), runner }
    }

    /// Replaces the agents that subsequent calls can use.
    pub(crate) fn replace(&self, set: Arc<AgentSet>) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = set;
    }

    pub(in crate::tools) fn set(&self) -> Arc<AgentSet> {
        Arc::clone(&self.set.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(in crate::tools) fn runner(&self) -> &Arc<dyn AgentRunner> {
        &self.runner
    }
}
