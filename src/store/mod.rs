//! Session store: sessions and their journals in an SQLite database in the data directory.

mod artifacts;
mod backup;
#[cfg(any(test, feature = "fuzzing"))]
pub mod bench_support;
mod decisions;
mod directory;
mod error;
mod health;
mod import;
mod index_file;
mod journal;
mod metadata;
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

pub use artifacts::ArtifactStore;
pub use decisions::{DecisionFilter, LoggedDecision};
pub use error::StoreError;
pub use health::{Health, health};
pub use import::Foreign;
pub use metadata::Parent;
pub use prune::GiveBack;
pub use scan::{Size, Written};
pub use session_lock::{Claim, Holder};
pub use sessions::{Loaded, NewSession, Piece, SessionSummary};
pub use snapshots::Snapshots;

use crate::ports::Journal;
use crate::protocol::{Mode, SessionId};
use rusqlite::Connection;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use writer::Writer;

/// Name of the database in the data directory.
const FILE_NAME: &str = "aye.db";

/// All sessions of a user on this machine. Cheap to clone; the database closes with the last clone, claim or journal.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// Connection for reading; all writes go through the writer.
    reader: Mutex<Connection>,
    writer: Writer,
    /// Sessions without a row, because they have no records yet.
    unwritten: Mutex<HashMap<SessionId, NewSession>>,
    notices: Vec<String>,
}

impl Store {
    /// Opens or creates the store of a data directory. A damaged store is moved aside, never overwritten.
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        directory::prepare(data_dir)?;
        let _only_one_opens = directory::lock(data_dir)?;
        let path = data_dir.join(FILE_NAME);
        let mut notices = Vec::new();
        let found = match schema::examine(&path)? {
            // An earlier start was killed while moving the files of a damaged store; the remaining file may look sound without
            // its log.
            schema::State::Sound(..) if schema::salvaged(&path).exists() => {
                schema::State::Damaged("part of the store was moved aside".to_owned())
            }
            found => found,
        };
        let reader = match found {
            schema::State::Sound(connection, notice) => {
                notices.extend(notice);
                connection
            }
            schema::State::Missing => match adopted(&path)? {
                Some((connection, notice)) => {
                    notices.push(notice);
                    connection
                }
                None => schema::create(&path)?,
            },
            schema::State::Damaged(reason) => {
                let (connection, notice) = replace(&path, &reason)?;
                notices.push(notice);
                connection
            }
        };
        let writer = Writer::new(path.clone());
        let inner = Inner { path, reader: Mutex::new(reader), writer, unwritten: Mutex::default(), notices };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns notices about the opening for the user.
    pub fn notices(&self) -> &[String] {
        &self.inner.notices
    }

    /// Creates a session locked by this process. Its row is written with the first record or draft.
    pub fn create(&self, session: NewSession) -> Claim {
        let id = session.id.clone();
        locked(&self.inner.unwritten).insert(id.clone(), session);
        Claim::new(self.inner.clone(), id)
    }

    /// Returns the journal of a created or claimed session.
    pub fn journal(&self, id: &SessionId, mode: Mode) -> Arc<dyn Journal> {
        let unwritten = locked(&self.inner.unwritten).get(id).cloned();
        Arc::new(journal::SessionJournal::new(self.inner.clone(), id.clone(), unwritten, mode))
    }
}

/// Number and total size of contents stored outside the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    pub count: u64,
    pub bytes: u64,
}

impl Beside {
    fn less(self, after: Self) -> Self {
        Self { count: self.count.saturating_sub(after.count), bytes: self.bytes.saturating_sub(after.bytes) }
    }
}

/// Replaces a damaged store with a new one that contains everything readable. A crash loses nothing: the recovered data is
/// complete under its own name before anything is moved, and the next start continues from there.
fn replace(path: &Path, reason: &str) -> Result<(Connection, String), StoreError> {
    let saved = if schema::salvaged(path).exists() { None } else { Some(schema::rescue(path)?) };
    let moved = quarantine::move_aside(path).map_err(|error| StoreError::unusable(path, &error))?;
    let words = saved.map_or_else(|| "all readable sessions were recovered".to_owned(), salvage::Salvage::words);
    let connection = adopt(path)?;
    // Details for troubleshooting: one line after the actual message.
    let reason = reason.rsplit('\n').next().unwrap_or_default().trim();
    Ok((connection, format!("the session store was damaged and was moved to `{}`; {words}\ndetails: {reason}", moved.display())))
}

/// Adopts a recovered store that an earlier start could not rename in time.
fn adopted(path: &Path) -> Result<Option<(Connection, String)>, StoreError> {
    if !schema::salvaged(path).exists() {
        return Ok(None);
    }
    let connection = adopt(path)?;
    Ok(Some((connection, "the session store was damaged and was moved aside; all readable sessions were recovered".to_owned())))
}

fn adopt(path: &Path) -> Result<Connection, StoreError> {
    schema::rename(&schema::salvaged(path), path)?;
    schema::connect(path).map_err(|error| StoreError::database(path, &error))
}

impl Inner {
    fn reader(&self) -> MutexGuard<'_, Connection> {
        locked(&self.reader)
    }
}

/// Locks a mutex even after a panic; each change is a single call, so the data is consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
