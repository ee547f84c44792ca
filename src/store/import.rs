//! Import of a session in a single transaction. Decisions are not imported.

use super::database::Database;
use super::metadata::{self, Parent};
use super::new_session::NewSession;
use super::scan::TimedRecord;
use super::session_lock::is_held_by;
use super::{Claim, StoreError, records};
use crate::ports::Durability;
use crate::session::{SessionActivity, SessionState};
use crate::sys::instance::Instance;
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

/// Imports a session. Returns `false` without changing anything if a session with this ID already exists.
pub(super) fn import(database: &Database, foreign: ImportedSession) -> Result<bool, StoreError> {
    let texts = texts(database, &foreign.records)?;
    let bytes = texts.iter().map(String::len).sum();
    database.write(move |desk| desk.transact(Durability::Power, bytes, |transaction| foreign.write(transaction, &texts)))
}

/// Appends records to a claimed session, which already contains the first `known` records of `foreign`. The session's
/// draft is replaced unless the new draft is empty. Returns `false` without changing anything if this process does not
/// own the session lock.
pub(super) fn extend(database: &Database, claim: &Claim, foreign: ImportedSession, known: usize) -> Result<bool, StoreError> {
    let new = foreign.records.get(known..).unwrap_or_default();
    let (texts, id) = (texts(database, new)?, claim.id().clone());
    let times: Vec<i64> = new.iter().map(|written| written.time.as_millisecond()).collect();
    let bytes = texts.iter().map(String::len).sum();
    let status = SessionState::from_records(foreign.records.iter().map(|written| &written.record)).status;
    let (me, now) = (Instance::current(), jiff::Timestamp::now().as_millisecond());
    database.write(move |desk| {
        let written = desk.transact(Durability::Power, bytes, |transaction| {
            let found: Option<(i64, Option<String>)> = transaction
                .query_row("SELECT key, owner FROM sessions WHERE id = ?1", [id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((key, _)) = found.filter(|(_, owner)| is_held_by(&me, owner.as_deref())) else { return Ok(false) };
            let last = records::last(transaction, key)?;
            let mut insert =
                transaction.prepare_cached("INSERT INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, ?4)")?;
            for (seq, (text, time)) in (last + 1..).zip(texts.iter().zip(&times)) {
                insert.execute(params![key, seq, text, time])?;
            }
            transaction.execute(
                "UPDATE sessions SET updated = max(updated + 1, ?2), status = coalesce(?3, status), title = coalesce(?4, title),
                 draft = CASE WHEN ?5 = '' THEN draft ELSE ?5 END WHERE key = ?1",
                params![key, now, status.map(SessionActivity::as_str), foreign.title, foreign.draft],
            )?;
            Ok(true)
        });
        if matches!(written, Ok(true)) {
            desk.on_written(&id, bytes);
        }
        written
    })
}

fn texts(database: &Database, records: &[TimedRecord]) -> Result<Vec<String>, StoreError> {
    let texts = records.iter().map(|written| serde_json::to_string(&written.record));
    texts.collect::<Result<_, _>>().map_err(|error| StoreError::Database {
        path: database.path.clone(),
        reason: format!("cannot encode a record as JSON: {error}"),
        remedy: None,
    })
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
                // Use the import time, so that the session is neither listed as the oldest one nor pruned immediately.
                now.as_millisecond(),
                status.unwrap_or(SessionActivity::Idle).as_str(),
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
