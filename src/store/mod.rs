//! SQLite in the data directory: sessions and their journals.

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

/// The name of the database inside the data directory.
const FILE_NAME: &str = "aye.db";

/// All sessions of a person on this machine. Cheap to clone; the database closes with the last clone, claim or journal.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// For reading; whatever is written goes through the writer.
    reader: Mutex<Connection>,
    writer: Writer,
    /// Sessions that have no row yet, because nothing was said in them.
    unwritten: Mutex<HashMap<SessionId, NewSession>>,
    notices: Vec<String>,
}

impl Store {
    /// Opens the store of a data directory, making both where they are missing. What is damaged is moved aside, never overwritten.
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        directory::prepare(data_dir)?;
        let _only_one_opens = directory::lock(data_dir)?;
        let path = data_dir.join(FILE_NAME);
        let mut notices = Vec::new();
        let found = match schema::examine(&path)? {
            // An earlier start was killed while it moved the files of a damaged store: what is left may look sound without its log.
            schema::State::Sound(..) if schema::salvaged(&path).exists() => {
                schema::State::Damaged("part of it was moved aside".to_owned())
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

    /// What the person should know about the opening.
    pub fn notices(&self) -> &[String] {
        &self.inner.notices
    }

    /// A new session, held by this process. Its row is written with the first record or draft.
    pub fn create(&self, session: NewSession) -> Claim {
        let id = session.id.clone();
        locked(&self.inner.unwritten).insert(id.clone(), session);
        Claim::new(self.inner.clone(), id)
    }

    /// The journal of a session that was created or claimed.
    pub fn journal(&self, id: &SessionId, mode: Mode) -> Arc<dyn Journal> {
        let unwritten = locked(&self.inner.unwritten).get(id).cloned();
        Arc::new(journal::SessionJournal::new(self.inner.clone(), id.clone(), unwritten, mode))
    }
}

/// What lies beside the sessions: how many contents, and their bytes.
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

/// Puts a new store in the place of a damaged one, with all that could be read of it. A crash on the way loses nothing: what was
/// read is whole under a name of its own before anything is moved, and the next start goes on from there.
fn replace(path: &Path, reason: &str) -> Result<(Connection, String), StoreError> {
    let saved = if schema::salvaged(path).exists() { None } else { Some(schema::rescue(path)?) };
    let moved = quarantine::move_aside(path).map_err(|error| StoreError::unusable(path, &error))?;
    let words = saved.map_or_else(|| "all readable sessions were recovered".to_owned(), salvage::Salvage::words);
    let connection = adopt(path)?;
    // What was found is for whoever looks into it: one line, behind what there is to know.
    let reason = reason.rsplit('\n').next().unwrap_or_default().trim();
    Ok((connection, format!("the session store was damaged and was moved to `{}`; {words}\ndetails: {reason}", moved.display())))
}

/// The store that an earlier start made of a damaged one and had no time to name.
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

/// What a panic left behind in these is whole: each is changed by single calls.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
