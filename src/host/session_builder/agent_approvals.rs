//! Relays the approvals of an agent's calls to the session that started the agent, where they are shown and decided.

use crate::protocol::{ApprovalId, AskingAgent, CallId, Command, Decision, Denier, EventKind, NoticeKind};

/// Number of characters of the agent's session ID that are included in an approval ID.
const SESSION_CHARS: usize = 12;
/// Reason for the denial if the agent ends before a decision is made.
const AGENT_ENDED: &str = "the agent ended";

/// Pending approvals of an agent. In the session that shows them they have different IDs, because every session numbers
/// its own approvals.
pub(super) struct RelayedApprovals {
    prefix: String,
    open: Vec<(ApprovalId, CallId)>,
}

impl RelayedApprovals {
    pub(super) fn new(agent: &AskingAgent) -> Self {
        let id: String = agent.agent_session_id.as_str().chars().take(SESSION_CHARS).collect();
        Self { prefix: format!("agent_{id}_"), open: Vec::new() }
    }

    /// Converts one of the agent's events to an event of the session that shows the approval. Returns `None` if the
    /// event does not concern approvals.
    pub(super) fn relay(&mut self, kind: &EventKind) -> Option<EventKind> {
        if let EventKind::Notice { kind: subject, .. } = kind {
            return (*subject == Some(NoticeKind::RuleSaved)).then(|| kind.clone());
        }
        let mut kind = kind.clone();
        let id = kind.approval_id_mut()?;
        *id = ApprovalId::new(format!("{}{}", self.prefix, id.as_str()));
        match &kind {
            EventKind::ApprovalRequested(approval) => {
                self.open.retain(|(id, _)| *id != approval.approval_id);
                self.open.push((approval.approval_id.clone(), approval.tool_call_id.clone()));
            }
            EventKind::ApprovalResolved { approval_id, .. } => self.open.retain(|(id, _)| id != approval_id),
            _ => {}
        }
        Some(kind)
    }

    /// Converts a command so that it can be sent to the agent's session. Returns `None` if it does not concern one of
    /// this agent's approvals.
    pub(super) fn restore(&self, command: Command) -> Option<Command> {
        let own = ApprovalId::new(command.approval_id()?.as_str().strip_prefix(&self.prefix)?);
        Some(command.with_approval_id(own))
    }

    /// Returns events that close the pending approvals after the agent has ended.
    pub(super) fn end(&mut self) -> Vec<EventKind> {
        let decision = Decision::denied_by(Denier::AgentEnd, AGENT_ENDED);
        let resolved = |(approval_id, tool_call_id)| EventKind::ApprovalResolved {
            approval_id,
            tool_call_id,
            decision: decision.clone(),
            latency_ms: 0,
        };
        self.open.drain(..).map(resolved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SessionId;

    fn approvals() -> RelayedApprovals {
        let agent_session_id = SessionId::new("0123456789abcdef0123456789abcdef");
        RelayedApprovals::new(&AskingAgent { name: "fixer".to_owned(), agent_session_id })
    }

    fn outdated(id: &str) -> EventKind {
        let (approval_id, tool_call_id) = (ApprovalId::new(id), CallId::new("c1"));
        EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated: true }
    }

    #[test]
    fn a_decision_returns_to_the_approval_that_was_shown() {
        let mut approvals = approvals();
        let shown = approvals.relay(&outdated("appr_001")).unwrap();
        assert_eq!(shown, outdated("agent_0123456789ab_appr_001"));
        let decide = |id: &str| Command::Decide { approval_id: ApprovalId::new(id), decision: Decision::Approved };
        assert_eq!(approvals.restore(decide("agent_0123456789ab_appr_001")), Some(decide("appr_001")));
        for other in ["appr_001", "agent_000000000000_appr_001", ""] {
            assert_eq!(approvals.restore(decide(other)), None, "{other}");
        }
        assert_eq!(approvals.restore(Command::Kill), None);
    }

    #[test]
    fn other_agent_events_are_not_forwarded() {
        let mut approvals = approvals();
        let message = "always allowed in this project: exactly `make`".to_owned();
        assert_eq!(approvals.relay(&EventKind::notice(message.clone())), None, "its words do not make it a notice about a rule");
        assert!(approvals.relay(&EventKind::Notice { message, kind: Some(NoticeKind::RuleSaved) }).is_some());
        assert_eq!(approvals.relay(&EventKind::StepCompleted { step_count: 1 }), None);
        assert!(approvals.end().is_empty());
    }
}
