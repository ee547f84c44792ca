//! Reactions of the host to events from the session.

use super::answers::WaitCondition;
use super::live::LiveSession;
use super::{ClientConnection, ConnectionAction, ConnectionStage, unknown_approval, value};
use crate::protocol::{
    ApprovalId, Command, Decision, ElicitationAnswer, Event, EventKind, GoalReason, GoalState, HostCommand, HostResponse,
    Resolution, SessionStatus,
};
use crate::serve::fault::{FaultCode, RpcError};
use crate::serve::message::Outgoing;
use crate::serve::methods::{ActionDecided, ActionDecision, MemoryListed, ShutdownResult, TaskBegun};
use crate::serve::patches;
use serde_json::Value;

impl ClientConnection {
    /// Handles a session event. Returns the actions to be performed.
    pub(crate) fn event(&mut self, mut event: Event) -> Vec<ConnectionAction> {
        event.kind = match event.kind {
            EventKind::ApprovalRequested(approval) => EventKind::ApprovalRequested(approval.into_question()),
            kind => kind,
        };
        let told = self.learn(&event.kind);
        if let (EventKind::StepCompleted { .. }, Some(step_id), ConnectionStage::Live(live)) =
            (&event.kind, &event.step_id, &mut self.stage)
        {
            live.opened.step_cursor = Some(step_id.clone());
        }
        if let (EventKind::TaskStarted { .. }, Some(task_id)) = (&event.kind, &event.task_id) {
            let begun = TaskBegun { task_id: task_id.to_string() };
            self.settle_first(|wait| matches!(wait, WaitCondition::Begin), Ok(value(&begun)));
        }
        if let EventKind::PromptBlocked { failure, .. } = &event.kind {
            let fault = RpcError::new(FaultCode::PromptBlocked, failure.message.clone());
            self.settle_first(|wait| matches!(wait, WaitCondition::Begin), Err(fault));
        }
        if let (EventKind::SessionPaused { failure }, true, ConnectionStage::Live(live)) = (&event.kind, told, &self.stage) {
            let fault = live.pause_before_start_fault(failure);
            self.settle_first(|wait| matches!(wait, WaitCondition::Begin), Err(fault));
        }
        if let EventKind::GoalChanged(GoalState { reason: Some(GoalReason::Rejected), message, .. }) = &event.kind {
            let why = message.clone().unwrap_or_default();
            self.settle_first(|wait| matches!(wait, WaitCondition::Begin), Err(RpcError::new(FaultCode::InvalidParams, why)));
        }
        let named = match (&event.kind, &self.stage) {
            (EventKind::SessionCompleted { .. }, ConnectionStage::Live(live)) if live.status == SessionStatus::Failed => {
                let reason = live.failed_by.clone().unwrap_or_else(|| "cannot save the end of the session".to_owned());
                Some(("session_failed", Some(reason)))
            }
            (EventKind::SessionCompleted { .. }, ConnectionStage::Live(live)) if live.cancelled => {
                Some(("session_cancelled", None))
            }
            _ => None,
        };
        let mut after = std::mem::take(&mut self.acts);
        if told {
            let event = Box::new(self.mark_cancelled_end(event));
            let message = match named {
                Some((name, reason)) => Outgoing::Named { name, reason, event },
                None => Outgoing::Event(event),
            };
            self.acts.push(ConnectionAction::Send(message));
        }
        self.acts.append(&mut after);
        std::mem::take(&mut self.acts)
    }

    /// If ending the session cancelled a task, changes the session's final status to cancelled.
    fn mark_cancelled_end(&self, mut event: Event) -> Event {
        if let (EventKind::StateChanged { session_status, .. }, ConnectionStage::Live(live)) = (&mut event.kind, &self.stage)
            && *session_status == SessionStatus::Completed
            && live.cancelled
        {
            *session_status = SessionStatus::Cancelled;
        }
        event
    }

    /// Updates the state and reacts to an event. Returns whether the event should be forwarded to the client.
    fn learn(&mut self, kind: &EventKind) -> bool {
        let ConnectionStage::Live(live) = &mut self.stage else { return true };
        live.learn(kind);
        match kind {
            EventKind::StateChanged { .. }
                if self.leaving.is_some() && (!live.is_running() || live.status == SessionStatus::Paused) =>
            {
                live.quit(&mut self.acts);
            }
            // No method of this protocol can answer a form. aye declines it, so that the server does not wait.
            EventKind::ElicitationRequested(asked) if !asked.is_question() => {
                let (elicitation_id, answer) = (asked.elicitation_id.clone(), ElicitationAnswer::Decline);
                self.acts.push(ConnectionAction::DoInHost(HostCommand::AnswerElicitation { elicitation_id, answer }));
            }
            EventKind::ApprovalTimeout { approval_id, .. } => {
                self.settle_approval(approval_id, || Err(unknown_approval(approval_id.as_str())));
            }
            EventKind::ApprovalResolved { approval_id, decision, .. } => {
                let status = match decision {
                    Decision::Denied(_) => ActionDecision::Denied,
                    Decision::Previewed => ActionDecision::RunAgain,
                    _ => ActionDecision::Approved,
                };
                self.settle_approval(approval_id, || Ok(value(&ActionDecided { status })));
            }
            EventKind::ToolInterrupted { tool_call_id, .. } => {
                let resolution = Resolution::TellModel;
                self.acts.push(ConnectionAction::Do(Command::Resolve { tool_call_id: tool_call_id.clone(), resolution }));
            }
            EventKind::ChangedFiles(changed) => {
                let found = patches::preview(live.approvals.iter(), changed.clone(), &live.opened.workspace);
                return !self.settle_first(|wait| matches!(wait, WaitCondition::Changes), Ok(value(&found)));
            }
            EventKind::LookedUp(HostResponse::Memory { proposals, notice, failed }) => {
                let outcome = match failed {
                    Some(problem) => Err(RpcError::new(FaultCode::InvalidParams, problem.one_line())),
                    None => Ok(value(&MemoryListed { proposals: proposals.clone(), notice: notice.clone() })),
                };
                return !self.settle_memory(outcome);
            }
            EventKind::LookedUp(HostResponse::Failed { problem }) => {
                let fault = RpcError::new(FaultCode::Internal, problem.one_line());
                return !self.settle_memory(Err(fault));
            }
            EventKind::BudgetShown { .. } => return !self.consume_mark(),
            // The task continues before the session is ready, so the client need not react.
            EventKind::SessionPaused { .. } => return !live.continues_soon(),
            // If saving fails, the mark does not arrive. The notice is sent as the reason.
            EventKind::Notice { .. } if live.status == SessionStatus::Paused => {
                self.consume_mark();
            }
            _ => {}
        }
        true
    }

    /// Sends all responses that are waiting for a decision on this approval.
    fn settle_approval(&mut self, id: &ApprovalId, outcome: impl Fn() -> Result<Value, RpcError>) {
        self.respond_waiting(
            |wait| matches!(wait, WaitCondition::Decided { approval_id } if approval_id == id.as_str()),
            |_| outcome(),
        );
    }

    /// Handles the response to one of the host's marks. Returns whether there was a mark, in which case the event is
    /// not forwarded.
    fn consume_mark(&mut self) -> bool {
        let ConnectionStage::Live(live) = &mut self.stage else { return false };
        if live.marks == 0 {
            return false;
        }
        live.marks -= 1;
        if live.ready.is_none() || live.marks > 0 {
            return true;
        }
        let open = live.status == SessionStatus::Paused && live.is_running();
        if open && live.opened.resumed && !std::mem::replace(&mut live.went_on, true) {
            self.acts.push(ConnectionAction::Do(Command::Continue));
            live.mark(&mut self.acts);
            return true;
        }
        if let Some(slot) = live.ready.take() {
            let told = live.ready_message();
            let notices = std::mem::take(&mut live.opened.notices);
            self.answer(slot, Ok(told));
            for event in notices {
                self.send(Outgoing::Event(Box::new(event)));
            }
        }
        true
    }

    /// Handles the end of the session, after all of its events have been handled.
    pub(crate) fn on_session_end(&mut self) -> Vec<ConnectionAction> {
        let ConnectionStage::Live(live) = std::mem::take(&mut self.stage) else { return Vec::new() };
        let LiveSession { status, cancelled, ready, .. } = *live;
        self.look_ups.clear();
        for (slot, _) in std::mem::take(&mut self.waiting) {
            self.answer(slot, Err(RpcError::new(FaultCode::NoSession, "the session has ended")));
        }
        if let Some(slot) = ready {
            self.answer(slot, Err(RpcError::new(FaultCode::Internal, "the session ended unexpectedly; see stderr and the log")));
        }
        if let Some(slot) = self.leaving.take() {
            let status = match status {
                SessionStatus::Completed if cancelled => SessionStatus::Cancelled,
                status => status,
            };
            self.answer(slot, Ok(value(&ShutdownResult { status })));
        }
        self.acts.push(ConnectionAction::End);
        std::mem::take(&mut self.acts)
    }
}
