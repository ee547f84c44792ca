//! Journal of a single session, which receives records and commits them as database rows.

use super::database::Database;
use super::decisions::{self, Calls, Row};
use super::error::not_saved_reason;
use super::lock_ignoring_poison;
use super::metadata;
use super::new_session::NewSession;
use super::outbox::{self, OutboxEntry, SessionOutbox};
use super::output_tails::{self, TailCleanup};
use super::records;
use super::session_lock::{Holder, is_held_by, live_holder};
use super::writer::WriterState;
use crate::ports::{BoxFuture, Durability, Journal, JournalError, Record, SavedTail};
use crate::protocol::{CallId, Mode, SessionId, size};
use crate::session::{Change, SessionActivity, SessionState};
use crate::sys::instance::Instance;
use rusqlite::{OptionalExtension, Transaction, params};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

pub(super) struct StoreJournal {
    database: Arc<Database>,
    id: SessionId,
    /// Data for the session's database row, if that row has not been written yet.
    unwritten: Option<NewSession>,
    mode: Mode,
    calls: Mutex<Calls>,
    outbox: Option<SessionOutbox>,
    /// This process, which must own the session lock whenever an entry is written.
    me: Instance,
}

/// Changes to a session that are committed atomically.
struct JournalTransaction {
    id: SessionId,
    me: Instance,
    unwritten: Option<NewSession>,
    records: Vec<String>,
    decisions: Vec<Row>,
    mode: Mode,
    draft: Option<String>,
    status: Option<SessionActivity>,
    /// Model that was newly selected, if any.
    model: Option<String>,
    title: Option<String>,
    /// Output of a running command to be saved.
    tail: Option<(CallId, SavedTail)>,
    clears: TailCleanup,
    outbox: Option<OutboxPart>,
}

/// Data that a transaction adds to the outbox.
struct OutboxPart {
    outbox: SessionOutbox,
    entries: Vec<OutboxEntry>,
    /// Whether the records start an effect, which must wait while the outbox is full.
    starts_effect: bool,
}

impl StoreJournal {
    pub(super) fn new(
        database: Arc<Database>,
        id: SessionId,
        unwritten: Option<NewSession>,
        mode: Mode,
        outbox: Option<SessionOutbox>,
    ) -> Self {
        Self { database, id, unwritten, mode, calls: Mutex::default(), outbox, me: Instance::current() }
    }

    fn entry(&self) -> JournalTransaction {
        let (id, unwritten) = (self.id.clone(), self.unwritten.clone());
        JournalTransaction {
            id,
            me: self.me.clone(),
            unwritten,
            records: Vec::new(),
            decisions: Vec::new(),
            mode: self.mode,
            draft: None,
            status: None,
            model: None,
            title: None,
            tail: None,
            clears: TailCleanup::Calls(Vec::new()),
            outbox: None,
        }
    }

    /// Adds an entry to the writer's queue before returning. The receiver resolves once the entry has been written.
    fn submit(&self, entry: JournalTransaction, durability: Durability) -> oneshot::Receiver<Result<(), JournalError>> {
        let (answer, answered) = oneshot::channel();
        self.database.writer.submit(move |desk| {
            // If the task was dropped, nobody waits for the result, but the entry is still written.
            drop(answer.send(entry.write(desk, durability)));
        });
        answered
    }

    async fn write(&self, entry: JournalTransaction, durability: Durability) -> Result<(), JournalError> {
        self.wait_written(self.submit(entry, durability)).await
    }

    async fn wait_written(&self, answered: oneshot::Receiver<Result<(), JournalError>>) -> Result<(), JournalError> {
        answered.await.unwrap_or_else(|_| Err(retryable_error("the writer thread ended; start aye again".to_owned())))?;
        if self.unwritten.is_some() {
            self.database.unwritten.remove(&self.id);
        }
        Ok(())
    }
}

impl Journal for StoreJournal {
    fn append(&self, records: Vec<Record>, durability: Durability) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            if records.is_empty() {
                return Ok(());
            }
            let mut entry = self.entry();
            // Only the changes made by these records are written. Other columns of the row remain unchanged.
            let mut state = SessionState::default();
            let changes: Vec<Change<'_>> = records.iter().map(|record| state.apply(record).change).collect();
            entry.status = state.status;
            entry.model = state.model.map(|choice| choice.model);
            entry.title = state.title;
            entry.clears = TailCleanup::for_changes(&changes);
            entry.decisions = lock_ignoring_poison(&self.calls).decisions(&changes);
            entry.outbox = self.outbox.as_ref().map(|outbox| OutboxPart {
                outbox: outbox.clone(),
                entries: outbox.feed.changes(&changes, jiff::Timestamp::now()),
                starts_effect: outbox.limit.pauses && outbox::starts_effect(&changes),
            });
            entry.records =
                records.iter().map(serde_json::to_string).collect::<Result<_, _>>().map_err(|error| JournalError {
                    hint: Some("continue without saving, and report this as a bug of aye"),
                    ..retryable_error(format!("cannot encode a record as JSON: {error}"))
                })?;
            self.write(entry, durability).await
        })
    }

    fn must_save(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| outbox.limit.pauses)
    }

    fn save_tail(&self, call: CallId, tail: SavedTail) -> BoxFuture<'_, Result<(), JournalError>> {
        let mut entry = self.entry();
        entry.tail = Some((call, tail));
        let answered = self.submit(entry, Durability::Process);
        Box::pin(self.wait_written(answered))
    }

    fn save_draft(&self, text: String) -> BoxFuture<'_, Result<(), JournalError>> {
        let mut entry = self.entry();
        entry.draft = Some(text);
        Box::pin(self.write(entry, Durability::Process))
    }
}

/// Creates an error for a failure that may not occur again when the write is retried.
fn retryable_error(message: String) -> JournalError {
    JournalError { message, lost: false, hint: None }
}

/// Outcome of writing an entry.
enum WriteOutcome {
    /// The entry was written. `is_complete` is whether the outbox had room for all of the entry's rows.
    Yes { is_complete: bool },
    /// The session was deleted before the entry could be written.
    Deleted,
    /// Nothing was written, because another process owns the session lock.
    NotOwner(Option<String>),
    /// Nothing was written, because the entry starts an effect, which must wait until the outbox has room.
    OutboxFull(u64),
}

/// Outcome of looking up the session to which an entry belongs.
enum SessionLookup {
    Owned(i64),
    /// The entry consists only of an empty draft for a session without records, which is not worth saving.
    Nothing,
    Deleted,
    NotOwner(Option<String>),
}

impl JournalTransaction {
    fn write(&self, desk: &mut WriterState, durability: Durability) -> Result<(), JournalError> {
        let said = self.records.iter().map(String::len).sum::<usize>();
        let queued = self.outbox.iter().flat_map(|part| &part.entries).map(|entry| entry.body.len()).sum::<usize>();
        let bytes = said + queued + self.draft.as_ref().map_or(0, String::len);
        let now = jiff::Timestamp::now().as_millisecond();
        let written = desk.transact(durability, bytes, |transaction| self.write_rows(transaction, now));
        match written {
            Ok(WriteOutcome::Yes { is_complete }) => {
                if said > 0 {
                    desk.on_written(&self.id, said);
                }
                if let Some(part) = &self.outbox {
                    (part.outbox.committed)(is_complete);
                }
                Ok(())
            }
            Ok(WriteOutcome::Deleted) => {
                Err(JournalError { message: format!("session `{}` has been deleted", self.id), lost: true, hint: None })
            }
            Ok(WriteOutcome::NotOwner(owner)) => {
                let message = match live_holder(owner.as_deref()) {
                    Some(holder) => format!("session `{}` was taken over by process {}", self.id, holder.instance.pid),
                    None => format!("session `{}` is no longer locked by this process; resume it to continue", self.id),
                };
                Err(JournalError { message, lost: true, hint: None })
            }
            Ok(WriteOutcome::OutboxFull(limit)) => Err(retryable_error(format!(
                "the outbox has reached its limit of {} and `services.audit.required` is set; run `aye sync` to deliver it",
                size(limit)
            ))),
            Err(error) => Err(retryable_error(not_saved_reason(desk.path(), &error))),
        }
    }

    fn write_rows(&self, transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<WriteOutcome> {
        let key = match self.find_or_make(transaction, now)? {
            SessionLookup::Owned(key) => key,
            SessionLookup::Nothing => return Ok(WriteOutcome::Yes { is_complete: true }),
            SessionLookup::Deleted => return Ok(WriteOutcome::Deleted),
            SessionLookup::NotOwner(owner) => return Ok(WriteOutcome::NotOwner(owner)),
        };
        if let Some(part) = &self.outbox
            && part.starts_effect
            && outbox::is_full(transaction, part.outbox.limit)?
        {
            return Ok(WriteOutcome::OutboxFull(part.outbox.limit.bytes));
        }
        if !self.records.is_empty() {
            let last = records::last(transaction, key)?;
            let mut insert =
                transaction.prepare_cached("INSERT INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, ?4)")?;
            for (seq, record) in (last + 1..).zip(&self.records) {
                insert.execute(params![key, seq, record, now])?;
            }
        }
        let feed = self.outbox.as_ref().map(|part| part.outbox.feed.as_ref());
        let decided = decisions::insert(transaction, &self.decisions, (Some(key), None, self.mode.as_str()), now, feed)?;
        let mut is_complete = true;
        if let Some(part) = &self.outbox {
            is_complete &= outbox::insert(transaction, &part.entries, part.outbox.limit, now)?;
            is_complete &= outbox::insert(transaction, &decided, part.outbox.limit, now)?;
        }
        output_tails::clear(transaction, key, &self.clears)?;
        if let Some((call, tail)) = &self.tail {
            output_tails::replace(transaction, key, call, tail)?;
        }
        transaction
            .prepare_cached(
                // The session with the latest write is the latest one of its workspace, even if the clock was set back.
                "UPDATE sessions SET updated = max(?2, coalesce((SELECT o.updated + 1 FROM sessions o
                 WHERE o.workspace_id = sessions.workspace_id AND o.key <> sessions.key ORDER BY o.updated DESC LIMIT 1), 0)), status = coalesce(?3, status), title = coalesce(title, ?4),
                 draft = coalesce(?5, draft), model = coalesce(?6, model) WHERE key = ?1",
            )?
            .execute(params![key, now, self.status.map(SessionActivity::as_str), self.title, self.draft, self.model])?;
        if self.draft.as_deref() == Some("") {
            transaction
                .prepare_cached(
                    "DELETE FROM sessions WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM records WHERE session = ?1)
                     AND NOT EXISTS (SELECT 1 FROM packed WHERE session = ?1)",
                )?
                .execute([key])?;
        }
        Ok(WriteOutcome::Yes { is_complete })
    }

    fn find_or_make(&self, transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<SessionLookup> {
        let found: Option<(i64, Option<String>)> = transaction
            .prepare_cached("SELECT key, owner FROM sessions WHERE id = ?1")?
            .query_row([self.id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        match (found, &self.unwritten) {
            (Some((key, owner)), _) if is_held_by(&self.me, owner.as_deref()) => Ok(SessionLookup::Owned(key)),
            (Some((_, owner)), _) => Ok(SessionLookup::NotOwner(owner)),
            (None, None) => Ok(SessionLookup::Deleted),
            (None, Some(_)) if self.records.is_empty() && self.draft.as_deref().unwrap_or_default().is_empty() => {
                Ok(SessionLookup::Nothing)
            }
            (None, Some(new)) => self.make(new, transaction, now).map(SessionLookup::Owned),
        }
    }

    fn make(&self, new: &NewSession, transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<i64> {
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
                SessionActivity::Idle.as_str(),
                new.model,
                Holder::new(self.me.clone()).to_json()
            ])?;
        let key = transaction.last_insert_rowid();
        if let Some(parent) = &new.started_by {
            metadata::started(transaction, key, parent)?;
        } else if new.is_of_command {
            metadata::started_by_command(transaction, key)?;
        }
        Ok(key)
    }
}
