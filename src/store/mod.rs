//! Session store, which keeps sessions and their journals in an SQLite database in the data directory.

mod artifacts;
mod backup;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod bench_support;
mod database;
mod decisions;
mod directory;
mod error;
mod health;
mod import;
mod index_file;
mod journal;
mod logged_decision;
mod metadata;
mod new_session;
mod outbox;
mod output_tails;
mod packed;
mod prune;
mod quarantine;
mod records;
mod salvage;
mod scan;
mod schema;
mod session_lock;
mod sessions;
mod snapshots;
mod writer;

pub(crate) use artifacts::ArtifactStore;
pub(crate) use decisions::DecisionFilter;
pub(crate) use error::StoreError;
pub(crate) use health::{Health, health};
pub(crate) use import::ImportedSession;
pub(crate) use logged_decision::LoggedDecision;
pub(crate) use metadata::Parent;
pub(crate) use new_session::NewSession;
pub(crate) use outbox::{
    ClaimResult, GAP, OutboxClaim, OutboxEntry, OutboxFeed, OutboxLimit, OutboxRow, OutboxSink, Removal, SessionOutbox, SinkSet,
    SinkStatus, stored_sinks,
};
pub(crate) use prune::ReleaseMode;
pub(crate) use scan::{Size, TimedRecord};
pub(crate) use session_lock::{Claim, Holder};
pub(crate) use sessions::{LoadedSession, SessionPart, SessionSummary};
pub(crate) use snapshots::Snapshots;

use crate::ports::Journal;
use crate::protocol::{Mode, SessionId, WorkspaceId};
use crate::session::{Tally, TallyEntry};
use database::Database;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The user's session store on this machine. It is cheap to clone, and the database is closed once the last clone,
/// claim and journal have been dropped.
#[derive(Clone)]
pub(crate) struct Store {
    database: Arc<Database>,
    notices: Arc<[String]>,
}

impl Store {
    /// Opens or creates the store in a data directory. A damaged store is moved aside and never overwritten.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let (database, notices) = Database::open(data_dir)?;
        Ok(Self { database: Arc::new(database), notices: notices.into() })
    }

    /// Returns notices for the user that arose when the store was opened, such as about an upgrade or a recovery.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Creates a session that this process has locked. Its database row is written together with the first record or
    /// draft.
    pub(crate) fn create(&self, session: NewSession) -> Claim {
        let id = session.id.clone();
        self.database.unwritten.add(session);
        Claim::new(self.database.clone(), id)
    }

    /// Returns the journal of a session that was created or claimed.
    pub(crate) fn journal(&self, id: &SessionId, mode: Mode) -> Arc<dyn Journal> {
        self.journal_with_outbox(id, mode, None)
    }

    /// Returns the journal of a session that was created or claimed. If `outbox` is given, saved records also add rows
    /// to it.
    pub(crate) fn journal_with_outbox(&self, id: &SessionId, mode: Mode, outbox: Option<SessionOutbox>) -> Arc<dyn Journal> {
        let unwritten = self.database.unwritten.get(id);
        Arc::new(journal::StoreJournal::new(self.database.clone(), id.clone(), unwritten, mode, outbox))
    }

    /// Returns the sessions of a workspace, or all sessions, most recent first.
    pub(crate) fn sessions(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<SessionSummary>, StoreError> {
        sessions::sessions(&self.database, workspace)
    }

    /// Returns the latest session of a workspace that has a title, is not archived, and was started by the user.
    pub(crate) fn latest(&self, workspace: &WorkspaceId) -> Result<Option<SessionSummary>, StoreError> {
        sessions::latest(&self.database, workspace)
    }

    /// Returns the session whose ID starts with `prefix`. Fails if there is no such session or if there are several.
    pub(crate) fn find(&self, prefix: &str) -> Result<SessionSummary, StoreError> {
        sessions::find(&self.database, prefix)
    }

    /// Loads a session including all of its records.
    pub(crate) fn load(&self, id: &SessionId) -> Result<LoadedSession, StoreError> {
        sessions::load(&self.database, id)
    }

    /// Returns approximately the last `about` records before a position, rounded to whole steps. Without a position,
    /// returns the last records of the session.
    pub(crate) fn page(&self, id: &SessionId, before: Option<i64>, about: usize) -> Result<SessionPart, StoreError> {
        sessions::load_page(&self.database, id, before, about)
    }

    /// Returns the position of a session's last record, or 0 if the session has no records. Positions increase with
    /// each record.
    pub(crate) fn position(&self, id: &SessionId) -> Result<i64, StoreError> {
        sessions::position(&self.database, id)
    }

    /// Returns the draft of a session.
    pub(crate) fn draft(&self, id: &SessionId) -> Result<String, StoreError> {
        sessions::draft(&self.database, id)
    }

    /// Visits a session's records in order until `visit` asks to stop. `visit` must not use this store.
    pub(crate) fn for_each_record(
        &self,
        id: &SessionId,
        visit: impl FnMut(TimedRecord) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        scan::for_each_record(&self.database, id, visit)
    }

    /// Computes the session totals, parsing only the records that are needed for them.
    pub(crate) fn tally(&self, id: &SessionId) -> Result<Tally, StoreError> {
        scan::tally(&self.database, id)
    }

    /// Visits the records that count toward a session's totals, in order. Records that a fork shares with its parent
    /// are excluded. `visit` must not use this store.
    pub(crate) fn for_each_tally_entry(
        &self,
        id: &SessionId,
        visit: impl FnMut(jiff::Timestamp, &TallyEntry<'_>),
    ) -> Result<(), StoreError> {
        scan::for_each_tally_entry(&self.database, id, visit)
    }

    /// Returns the stored size of each session.
    pub(crate) fn sizes(&self) -> Result<HashMap<SessionId, Size>, StoreError> {
        scan::sizes(&self.database)
    }

    /// Returns the number of records that a session shares with its parent, or 0 if it is not a fork.
    pub(crate) fn parent_records(&self, id: &SessionId) -> Result<u64, StoreError> {
        metadata::parent_records(&self.database, id)
    }

    /// Archives or unarchives a session. Changes nothing else; a process that has the session open continues. Fails for
    /// the session of an agent.
    pub(crate) fn archive(&self, id: &SessionId, archived: bool) -> Result<(), StoreError> {
        metadata::archive(&self.database, id, archived)
    }

    /// Makes the session of a command one of the user, who continues it. Does nothing for other sessions.
    pub(crate) fn continue_by_user(&self, id: &SessionId) -> Result<(), StoreError> {
        metadata::continue_by_user(&self.database, id)
    }

    /// Locks a stored session for this process. Fails if a running process owns the lock; a lock left by a process that
    /// has ended is ignored.
    pub(crate) fn claim(&self, id: &SessionId) -> Result<Claim, StoreError> {
        session_lock::claim(&self.database, id)
    }

    /// Returns the running process that owns the session lock, if any.
    pub(crate) fn holder(&self, id: &SessionId) -> Result<Option<Holder>, StoreError> {
        session_lock::holder(&self.database, id)
    }

    /// Renames a session.
    pub(crate) fn rename(&self, id: &SessionId, title: &str) -> Result<(), StoreError> {
        session_lock::rename(&self.database, id, title)
    }

    /// Deletes a session and its records.
    pub(crate) fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        session_lock::delete(&self.database, id)
    }

    /// Deletes a session unless it is locked or has changed since `updated`. Returns whether it was deleted.
    pub(crate) fn forget_if_idle(&self, id: &SessionId, updated: jiff::Timestamp) -> Result<bool, StoreError> {
        prune::forget_if_idle(&self.database, id, updated)
    }

    /// Returns unused database pages to the file system.
    pub(crate) fn release_pages(&self, how: ReleaseMode) -> Result<(), StoreError> {
        prune::release_pages(&self.database, how)
    }

    /// Imports a session. Returns `false` without changing anything if a session with this ID already exists.
    pub(crate) fn import(&self, foreign: ImportedSession) -> Result<bool, StoreError> {
        import::import(&self.database, foreign)
    }

    /// Appends records written by another machine to a claimed session, which already contains the first `known`
    /// records of `foreign`. Returns `false` without changing anything if this process does not own the session lock.
    pub(crate) fn extend(&self, claim: &Claim, foreign: ImportedSession, known: usize) -> Result<bool, StoreError> {
        import::extend(&self.database, claim, foreign, known)
    }

    /// Logs a decision made outside a session. If `outbox` is given, also adds the corresponding rows to it.
    pub(crate) fn log_decision(&self, decision: LoggedDecision, outbox: Option<SessionOutbox>) -> Result<(), StoreError> {
        decisions::log_decision(&self.database, decision, outbox)
    }

    /// Stores data for services that does not belong to a record. If the outbox is full, data that cannot be stored is
    /// counted as missing. Returns whether everything that must not be dropped was stored.
    pub(crate) fn enqueue(&self, entries: Vec<OutboxEntry>, limit: OutboxLimit) -> Result<bool, StoreError> {
        outbox::enqueue(&self.database, entries, limit)
    }

    /// Moves all outbox rows to another store, except rows that are being delivered.
    pub(crate) fn move_outbox(&self, to: &Self) -> Result<(), StoreError> {
        outbox::transfer(&self.database, &to.database)
    }

    /// Removes all rows of the given sink from the outbox.
    pub(crate) fn remove_outbox_rows(&self, sink: OutboxSink) -> Result<Removal, StoreError> {
        outbox::remove_rows(&self.database, sink)
    }

    /// Claims an outbox sink for delivery. With `at_once`, claims it even if the next delivery attempt is not due yet.
    pub(crate) fn claim_sink(&self, sink: OutboxSink, at_once: bool) -> Result<ClaimResult, StoreError> {
        outbox::claim(&self.database, sink, at_once)
    }

    /// Returns the status of every outbox sink that has ever had a row.
    pub(crate) fn sinks(&self) -> Result<Vec<SinkStatus>, StoreError> {
        outbox::status(&self.database)
    }

    /// Returns the most recent decisions that match the filter, oldest first.
    pub(crate) fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<LoggedDecision>, StoreError> {
        decisions::decisions(&self.database, filter)
    }
}

/// Number and total size in bytes of contents that are stored outside the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExternalContents {
    pub count: u64,
    pub bytes: u64,
}

impl ExternalContents {
    fn less(self, after: Self) -> Self {
        Self { count: self.count.saturating_sub(after.count), bytes: self.bytes.saturating_sub(after.bytes) }
    }
}

/// Locks a mutex even if it is poisoned. Each change is made in a single call, so the data is consistent even after a
/// panic.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
