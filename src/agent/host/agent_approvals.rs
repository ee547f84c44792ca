//! Pending approvals requested by agents. Each is decided in the session of its agent.

use crate::protocol::{ApprovalId, Command, EventKind, SessionId};
use std::collections::HashMap;

const NOT_FOR_AGENTS: &str = "the plan does not apply to agents";

/// Pending approvals, each with the session of the agent that requested it.
#[derive(Debug, Default)]
pub(super) struct AgentApprovals(HashMap<ApprovalId, SessionId>);

impl AgentApprovals {
    /// Updates the pending approvals with an event that `agent` reports about its own call or about a call made by
    /// one of its agents. If this session has an approved plan, adds a note to the approval that the plan does not
    /// apply.
    pub(super) fn note(&mut self, kind: &mut EventKind, agent: &SessionId, has_plan: bool) {
        match kind {
            EventKind::ApprovalRequested(approval) => {
                if has_plan {
                    approval.proposal.notes.push(NOT_FOR_AGENTS.to_owned());
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::fixtures::command_approval;

    #[test]
    fn approvals_of_agents_say_that_the_plan_does_not_apply() {
        for has_plan in [true, false] {
            let mut kind = EventKind::ApprovalRequested(command_approval("a"));
            AgentApprovals::default().note(&mut kind, &SessionId::new("s1"), has_plan);
            let EventKind::ApprovalRequested(approval) = &kind else { unreachable!() };
            assert_eq!(approval.proposal.notes.iter().any(|note| note == NOT_FOR_AGENTS), has_plan);
        }
    }
}
