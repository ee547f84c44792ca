//! Ends of sessions, which are stored as outbox rows so that an unavailable service can be notified later.

use crate::ports::ServiceSession;
use crate::session::SessionActivity;
use crate::store::{ClaimResult, OutboxEntry, OutboxSink, Store};
use serde_json::{Value, json};

/// Kind of an outbox row that reports the end of a session.
const END: &str = "end";
/// Maximum number and total size in bytes of rows to read at a time.
const BATCH: (usize, usize) = (64, 64 << 10);

/// Reason why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceEndReason {
    Completed,
    /// The session ended with an unfinished task.
    Cancelled,
}

impl ServiceEndReason {
    /// Returns the reason that corresponds to the status with which a session ended.
    pub(crate) fn for_status(status: Option<SessionActivity>) -> Self {
        match status {
            Some(SessionActivity::Idle) | None => Self::Completed,
            Some(SessionActivity::Running | SessionActivity::Waiting | SessionActivity::Paused) => Self::Cancelled,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "session_completed",
            Self::Cancelled => "session_cancelled",
        }
    }
}

/// Returns an outbox entry that reports the end of a session.
pub(in super::super) fn end_entry(session: &ServiceSession, reason: ServiceEndReason) -> OutboxEntry {
    let body = json!({"url": session.url, "sessionId": session.session_id, "reason": reason.as_str()});
    OutboxEntry { sink: OutboxSink::Sessions, kind: END, body: body.to_string().into_bytes() }
}

/// Returns whether the outbox contains the end of this session. Also returns `true` if this cannot currently be
/// determined.
pub(in super::super) fn is_end_queued(store: &Store, session: &ServiceSession) -> bool {
    let claim = match store.claim_sink(OutboxSink::Sessions, true) {
        Ok(ClaimResult::Taken(claim)) => claim,
        Ok(ClaimResult::Empty) => return false,
        Ok(ClaimResult::HeldBy(_) | ClaimResult::NotBefore(_)) | Err(_) => return true,
    };
    let path = cancel_path(&session.session_id);
    let ends_it = |row: &[u8]| cancel_request(row).is_some_and(|(url, of, _)| url == session.url && of == path);
    let mut after = 0;
    loop {
        let Ok(rows) = claim.rows(after, BATCH.0, BATCH.1) else { return true };
        let Some(last) = rows.last() else { return false };
        after = last.key;
        if rows.iter().any(|row| ends_it(&row.body)) {
            return true;
        }
    }
}

fn cancel_path(id: &str) -> String {
    format!("/sessions/{id}/cancel")
}

/// Returns the service address, and the path and body of the request that a row describes. Returns `None` for any other
/// row.
pub(super) fn cancel_request(row: &[u8]) -> Option<(String, String, Value)> {
    let row: Value = serde_json::from_slice(row).ok()?;
    let text = |name: &str| Some(row.get(name)?.as_str()?.to_owned());
    let (url, id, reason) = (text("url")?, text("sessionId")?, text("reason")?);
    Some((url, cancel_path(&id), json!({"reason": reason})))
}
