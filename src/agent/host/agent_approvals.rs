//! Pending approvals of agents, each decided in the session of its agent.

use crate::protocol::{ApprovalId, Command, EventKind, SessionId};
use std::collections::HashMap;

/// Pending approvals of agents, with the session of each agent.
#[derive(Debug, Default)]
pub(super) struct AgentApprovals(HashMap<ApprovalId, SessionId>);

impl AgentApprovals {
    /// Updates the pending approvals from an event of an agent.
    pub(super) fn note(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ApprovalRequested(approval) => {
                if let Some(agent) = &approval.agent {
                    self.0.insert(approval.approval_id.clone(), agent.agent_session_id.clone());
                }
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                self.0.remove(approval_id);
            }
            _ => {}
        }
    }

    /// Returns the session of the agent that a command addresses; `None` if it addresses this session.
    pub(super) fn agent_of(&self, command: &Command) -> Option<&SessionId> {
        self.0.get(command.approval_id()?)
    }
}
