//! New sessions, which have no row in the database yet because they have no records.

use super::lock_ignoring_poison;
use crate::protocol::{SessionId, WorkspaceId};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// Session data before the first record exists.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub id: SessionId,
    pub workspace_id: WorkspaceId,
    /// Canonical path of the session's workspace.
    pub workspace: PathBuf,
    /// The session's model, such as `anthropic/claude-sonnet-5`.
    pub model: String,
    /// For an agent's session, the session that started the agent. Such sessions are not listed.
    pub started_by: Option<SessionId>,
    /// True if a command of aye wrote the prompt, such as `aye review`. Such a session is never the latest one.
    pub is_of_command: bool,
}

/// New sessions created by this process.
#[derive(Default)]
pub(super) struct UnwrittenSessions(Mutex<HashMap<SessionId, NewSession>>);

impl UnwrittenSessions {
    pub(super) fn add(&self, session: NewSession) {
        lock_ignoring_poison(&self.0).insert(session.id.clone(), session);
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<NewSession> {
        lock_ignoring_poison(&self.0).get(id).cloned()
    }

    /// Removes a session whose row has been written or will never be written.
    pub(super) fn remove(&self, id: &SessionId) {
        lock_ignoring_poison(&self.0).remove(id);
    }
}
