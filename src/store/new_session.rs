//! New sessions, which have no records and therefore no row yet.

use super::lock_ignoring_poison;
use crate::protocol::{SessionId, WorkspaceId};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// Data of a session before its first record.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub id: SessionId,
    pub workspace_id: WorkspaceId,
    /// Canonical path of the workspace.
    pub workspace: PathBuf,
    /// Model of the session: `anthropic/claude-sonnet-5`.
    pub model: String,
    /// Parent session, if this session belongs to an agent. Such a session is not listed.
    pub started_by: Option<SessionId>,
    /// True if a command of aye wrote the prompt, such as `aye review`. Such a session is never the latest one.
    pub is_of_command: bool,
}

/// The new sessions of this process.
#[derive(Default)]
pub(super) struct UnwrittenSessions(Mutex<HashMap<SessionId, NewSession>>);

impl UnwrittenSessions {
    pub(super) fn add(&self, session: NewSession) {
        lock_ignoring_poison(&self.0).insert(session.id.clone(), session);
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<NewSession> {
        lock_ignoring_poison(&self.0).get(id).cloned()
    }

    /// Removes a session whose row was written or never will be.
    pub(super) fn remove(&self, id: &SessionId) {
        lock_ignoring_poison(&self.0).remove(id);
    }
}
