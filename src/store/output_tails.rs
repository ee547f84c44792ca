//! Output tails of running commands. Each command has a single row, which is replaced as the command runs and deleted
//! once its outcome has been committed.

use crate::ports::SavedTail;
use crate::protocol::CallId;
use crate::session::{CallChange, Change};
use rusqlite::{Connection, Transaction, params};
use std::collections::HashMap;

/// Calls whose saved output is no longer needed.
pub(super) enum TailCleanup {
    Calls(Vec<CallId>),
    All,
}

impl TailCleanup {
    pub(super) fn for_changes(changes: &[Change<'_>]) -> Self {
        if changes.iter().any(|change| matches!(change, Change::TaskStarted { .. } | Change::TaskEnded { .. })) {
            return Self::All;
        }
        let ended = changes.iter().filter_map(|change| match change {
            Change::Call { tool_call_id, change: CallChange::Finished { .. } | CallChange::Blocked } => {
                Some((*tool_call_id).clone())
            }
            _ => None,
        });
        Self::Calls(ended.collect())
    }
}

/// Replaces the saved output of a running command. Does nothing for a session without a row, which cannot have running
/// commands.
pub(super) fn replace(transaction: &Transaction<'_>, session: i64, call: &CallId, tail: &SavedTail) -> rusqlite::Result<()> {
    let ran_ms = i64::try_from(tail.ran_ms).unwrap_or(i64::MAX);
    transaction
        .prepare_cached("INSERT OR REPLACE INTO tails (session, call, text, ran_ms) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![session, call.as_str(), tail.text, ran_ms])?;
    Ok(())
}

pub(super) fn clear(transaction: &Transaction<'_>, session: i64, clears: &TailCleanup) -> rusqlite::Result<()> {
    match clears {
        TailCleanup::Calls(calls) => {
            for call in calls {
                transaction
                    .prepare_cached("DELETE FROM tails WHERE session = ?1 AND call = ?2")?
                    .execute(params![session, call.as_str()])?;
            }
        }
        TailCleanup::All => drop(transaction.prepare_cached("DELETE FROM tails WHERE session = ?1")?.execute([session])?),
    }
    Ok(())
}

pub(super) fn load(reader: &Connection, session: i64) -> rusqlite::Result<HashMap<CallId, SavedTail>> {
    let mut statement = reader.prepare_cached("SELECT call, text, ran_ms FROM tails WHERE session = ?1")?;
    let rows = statement.query_map([session], |row| {
        let (call, text, ran_ms): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((CallId::new(call), SavedTail { text, ran_ms: u64::try_from(ran_ms).unwrap_or(0) }))
    })?;
    // Skip unreadable rows.
    Ok(rows.filter_map(Result::ok).collect())
}
