//! Delivers each event to the front end and to the log.

use super::event_log::log;
use crate::protocol::{Event, EventKind, SessionId, StepId, TaskId, WorkspaceId};
use jiff::Timestamp;
use tokio::sync::mpsc;

/// Sends events, adding the session to each of them.
#[derive(Clone)]
pub(super) struct EventSender {
    pub workspace_id: WorkspaceId,
    pub session_id: SessionId,
    pub events: mpsc::UnboundedSender<Event>,
}

impl EventSender {
    pub(crate) fn send(&self, task_id: Option<TaskId>, step_id: Option<StepId>, kind: EventKind) {
        let event = Event {
            workspace_id: self.workspace_id.clone(),
            session_id: self.session_id.clone(),
            task_id,
            step_id,
            timestamp: Timestamp::now(),
            kind,
        };
        log(&event);
        // Work continues even if there is no front end.
        let _ = self.events.send(event);
    }
}
