//! One session's journal: records in, committed rows out.

use super::decisions::{self, Calls, Row};
use super::error::explain;
use super::sessions::{NewSession, SessionStatus, title_of};
use super::writer::Desk;
use super::{Inner, locked};
use crate::ports::{BoxFuture, Durability, Journal, JournalError, Record};
use crate::protocol::{Mode, SessionId};
use crate::sys::instance::Instance;
use rusqlite::{OptionalExtension, Transaction, params};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

pub(super) struct SessionJournal {
    inner: Arc<Inner>,
    id: SessionId,
    /// What the row is made of when there is none.
    unwritten: Option<NewSession>,
    mode: Mode,
    calls: Mutex<Calls>,
}

/// One change to a session, all of it or nothing.
struct Entry {
    id: SessionId,
    unwritten: Option<NewSession>,
    records: Vec<String>,
    decisions: Vec<Row>,
    mode: Mode,
    draft: Option<String>,
    status: Option<SessionStatus>,
    /// The model that was chosen.
    model: Option<String>,
    title: Option<String>,
}

impl SessionJournal {
    pub(super) fn new(inner: Arc<Inner>, id: SessionId, unwritten: Option<NewSession>, mode: Mode) -> Self {
        Self { inner, id, unwritten, mode, calls: Mutex::default() }
    }

    fn entry(&self) -> Entry {
        let (id, unwritten) = (self.id.clone(), self.unwritten.clone());
        Entry {
            id,
            unwritten,
            records: Vec::new(),
            decisions: Vec::new(),
            mode: self.mode,
            draft: None,
            status: None,
            model: None,
            title: None,
        }
    }

    async fn write(&self, entry: Entry, durability: Durability) -> Result<(), JournalError> {
        let (answer, answered) = oneshot::channel();
        self.inner.writer.submit(move |desk| {
            // Nobody waits any more when the task was dropped; the entry is written all the same.
            drop(answer.send(entry.write(desk, durability)));
        });
        let written = answered.await.unwrap_or_else(|_| Err("its writing thread ended; start aye again".to_owned()));
        written.map_err(|reason| JournalError { message: format!("`{}`: {reason}", self.inner.path.display()) })?;
        if self.unwritten.is_some() {
            locked(&self.inner.unwritten).remove(&self.id);
        }
        Ok(())
    }
}

impl Journal for SessionJournal {
    fn append(&self, records: Vec<Record>, durability: Durability) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            if records.is_empty() {
                return Ok(());
            }
            let mut entry = self.entry();
            entry.status = records.iter().rev().find_map(SessionStatus::after);
            entry.model = records.iter().rev().find_map(|record| match record {
                Record::ModelChosen { model, .. } => Some(model.clone()),
                _ => None,
            });
            entry.title = records.iter().find_map(title_of);
            entry.decisions = locked(&self.calls).decisions(&records);
            entry.records = records
                .iter()
                .map(serde_json::to_string)
                .collect::<Result<_, _>>()
                .map_err(|error| JournalError { message: format!("a record cannot be written as JSON: {error}") })?;
            self.write(entry, durability).await
        })
    }

    fn save_draft(&self, text: String) -> BoxFuture<'_, Result<(), JournalError>> {
        let mut entry = self.entry();
        entry.draft = Some(text);
        Box::pin(self.write(entry, Durability::Process))
    }
}

impl Entry {
    fn write(&self, desk: &mut Desk, durability: Durability) -> Result<(), String> {
        let bytes = self.records.iter().map(String::len).sum::<usize>() + self.draft.as_ref().map_or(0, String::len);
        let now = jiff::Timestamp::now().as_millisecond();
        let written = desk.transact(durability, bytes, |transaction| self.write_rows(transaction, now));
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("session `{}` was deleted meanwhile", self.id)),
            Err(error) => Err(explain(&error)),
        }
    }

    /// Whether there was a session to write to.
    fn write_rows(&self, transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<bool> {
        let Some(key) = self.find_or_make(transaction, now)? else {
            // An empty draft of a session in which nothing was said: nothing to keep.
            return Ok(self.unwritten.is_some());
        };
        let mut insert = transaction.prepare_cached(
            "INSERT INTO records (session, seq, json, time)
             VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM records WHERE session = ?1), ?2, ?3)",
        )?;
        for record in &self.records {
            insert.execute(params![key, record, now])?;
        }
        decisions::insert(transaction, &self.decisions, (Some(self.id.as_str()), "", self.mode.as_str()), now)?;
        transaction
            .prepare_cached(
                "UPDATE sessions SET updated = ?2, status = coalesce(?3, status), title = coalesce(title, ?4),
                 draft = coalesce(?5, draft), model = coalesce(?6, model) WHERE key = ?1",
            )?
            .execute(params![key, now, self.status.map(SessionStatus::as_str), self.title, self.draft, self.model])?;
        if self.draft.as_deref() == Some("") {
            transaction
                .prepare_cached("DELETE FROM sessions WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM records WHERE session = ?1)")?
                .execute([key])?;
        }
        Ok(true)
    }

    fn find_or_make(&self, transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<Option<i64>> {
        let found = transaction
            .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
            .query_row([self.id.as_str()], |row| row.get(0))
            .optional()?;
        let (None, Some(new)) = (found, &self.unwritten) else { return Ok(found) };
        if self.records.is_empty() && self.draft.as_deref().unwrap_or_default().is_empty() {
            return Ok(None);
        }
        let owner = serde_json::to_string(&Instance::current()).ok();
        transaction
            .prepare_cached(
                "INSERT INTO sessions (id, workspace_id, workspace, created, updated, status, model, owner)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                self.id.as_str(),
                new.workspace_id.as_str(),
                new.workspace.to_string_lossy(),
                now,
                SessionStatus::Idle.as_str(),
                new.model,
                owner
            ])?;
        Ok(Some(transaction.last_insert_rowid()))
    }
}
