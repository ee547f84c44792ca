//! SQLite in the data directory: sessions and their journals.

mod artifacts;
mod aside;
mod claim;
mod decisions;
mod directory;
mod error;
mod health;
mod index_file;
mod journal;
mod schema;
mod sessions;
mod snapshots;
mod writer;

pub use artifacts::ArtifactStore;
pub use claim::Claim;
pub use decisions::{DecisionFilter, LoggedDecision};
pub use error::StoreError;
pub use health::{Health, health};
pub use sessions::{Loaded, NewSession, SessionStatus, SessionSummary};
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
        let reader = match schema::examine(&path)? {
            schema::State::Sound(connection) => connection,
            schema::State::Missing => schema::create(&path)?,
            schema::State::Damaged(reason) => {
                let moved = aside::move_aside(&path).map_err(|error| StoreError::unusable(&path, &error))?;
                notices.push(format!(
                    "the session store was damaged ({reason}): it was moved to `{}` as it is, and a new one was made",
                    moved.display()
                ));
                schema::create(&path)?
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
