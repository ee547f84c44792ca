//! Pending approvals requested by agents. Each is decided in the session of its agent.

use crate::protocol::{ApprovalId, Command, EventKind, SessionId};
use std::collections::HashMap;

/// Pending approvals, each with the session of the agent that requested it.
#[derive(Debug, Default)]
pub(super) struct AgentApprovals(HashMap<ApprovalId, SessionId>);

impl AgentApprovals {
    /// Updates the pending approvals with an event that `agent` reports about its own call or about a call made by
    /// one of its agents.
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

    /// Returns the session of the agent that a command is addressed to, or `None` if the command is for this session.
    pub(super) fn agent_of(&self, command: &Command) -> Option<&SessionId> {
        self.0.get(command.approval_id()?)
    }
}
