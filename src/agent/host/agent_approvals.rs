//! Pending approvals of agents, each decided in the session of its agent.

use crate::protocol::{ApprovalId, Command, EventKind, SessionId};
use std::collections::HashMap;

/// Pending approvals of agents, with the session of each agent.
#[derive(Debug, Default)]
pub(super) struct AgentApprovals(HashMap<ApprovalId, SessionId>);

impl AgentApprovals {
    /// Updates the pending approvals from an event that an agent reports. It is about a call of this agent, or of an agent below it.
    pub(super) fn note(&mut self, kind: &EventKind, agent: &SessionId) {
        match kind {
            EventKind::ApprovalRequested(approval) => {
                self.0.insert(approval.approval_id.clone(), agent.clone());
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
