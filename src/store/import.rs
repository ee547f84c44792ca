//! Import of a session in one transaction, without its decisions.

use super::StoreError;
use super::database::Database;
use super::metadata::{self, Parent};
use super::new_session::NewSession;
use super::scan::TimedRecord;
use crate::ports::Durability;
use crate::session::{SessionState, SessionStatus};
use rusqlite::{OptionalExtension, Transaction, params};

/// Session to import.
#[derive(Debug, Clone)]
pub(crate) struct ImportedSession {
    pub session: NewSession,
    pub created: jiff::Timestamp,
    pub title: Option<String>,
    pub draft: String,
    /// Parent session, if any.
    pub parent: Option<Parent>,
    pub records: Vec<TimedRecord>,
}

/// Imports a session. Returns `false` if a session with this ID exists, which is left unchanged.
pub(super) fn import(database: &Database, foreign: ImportedSession) -> Result<bool, StoreError> {
    let texts = foreign.records.iter().map(|written| serde_json::to_string(&written.record));
    let texts: Vec<String> = texts.collect::<Result<_, _>>().map_err(|error| StoreError::Database {
        path: database.path.clone(),
        reason: format!("cannot encode a record as JSON: {error}"),
        remedy: None,
    })?;
    let bytes = texts.iter().map(String::len).sum();
    database.write(move |desk| desk.transact(Durability::Power, bytes, |transaction| foreign.write(transaction, &texts)))
}

impl ImportedSession {
    fn write(&self, transaction: &Transaction<'_>, texts: &[String]) -> rusqlite::Result<bool> {
        let id = self.session.id.as_str();
        let there = transaction.query_row("SELECT 1 FROM sessions WHERE id = ?1", [id], |_| Ok(())).optional()?;
        if there.is_some() {
            return Ok(false);
        }
        let status = SessionState::from_records(self.records.iter().map(|written| &written.record)).status;
        let now = jiff::Timestamp::now();
        transaction.execute(
            "INSERT INTO sessions (id, workspace_id, workspace, title, created, updated, status, model, draft, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL)",
            params![
                id,
                self.session.workspace_id.as_str(),
                self.session.workspace.to_string_lossy(),
                self.title,
                self.created.min(now).as_millisecond(),
                // Use the import time, so that the session is neither listed as the oldest nor pruned at once.
                now.as_millisecond(),
                status.unwrap_or(SessionStatus::Idle).as_str(),
                self.session.model,
                self.draft,
            ],
        )?;
        let key = transaction.last_insert_rowid();
        if let Some(parent) = &self.parent {
            metadata::insert_new_session(transaction, key, parent)?;
        }
        let mut insert = transaction.prepare_cached("INSERT INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, ?4)")?;
        for (seq, (text, written)) in (1_i64..).zip(texts.iter().zip(&self.records)) {
            insert.execute(params![key, seq, text, written.time.as_millisecond()])?;
        }
        Ok(true)
    }
}
