//! The store's database file, with one connection for reading and a separate writer. Damaged files are recovered when
//! they are opened.

use super::error::StoreError;
use super::new_session::UnwrittenSessions;
use super::writer::{Writer, WriterState};
use super::{directory, lock_ignoring_poison, quarantine, salvage, schema};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// File name of the database in the data directory.
pub(super) const FILE_NAME: &str = "aye.db";

pub(super) struct Database {
    pub path: PathBuf,
    /// Connection used for reading. All writes go through the writer.
    reader: Mutex<Connection>,
    pub writer: Writer,
    pub unwritten: UnwrittenSessions,
}

impl Database {
    /// Opens or creates the database in a data directory. Returns the database and notices for the user. A damaged
    /// database is moved aside and never overwritten.
    pub(super) fn open(data_dir: &Path) -> Result<(Self, Vec<String>), StoreError> {
        directory::prepare(data_dir)?;
        let _only_one_opens = directory::lock(data_dir)?;
        let path = data_dir.join(FILE_NAME);
        let mut notices = Vec::new();
        let found = match schema::examine(&path)? {
            // An earlier start was killed while it moved the files of a damaged store. The remaining file may look
            // sound without its log.
            schema::DatabaseState::Sound(..) if schema::salvaged_path(&path).exists() => {
                schema::DatabaseState::Damaged("part of the store was moved aside".to_owned())
            }
            found => found,
        };
        let reader = match found {
            schema::DatabaseState::Sound(connection, notice) => {
                notices.extend(notice);
                connection
            }
            schema::DatabaseState::Missing => match adopt_recovered(&path)? {
                Some((connection, notice)) => {
                    notices.push(notice);
                    connection
                }
                None => schema::create(&path)?,
            },
            schema::DatabaseState::Damaged(reason) => {
                let (connection, notice) = replace(&path, &reason)?;
                notices.push(notice);
                connection
            }
        };
        let writer = Writer::new(path.clone());
        let unwritten = UnwrittenSessions::default();
        Ok((Self { path, reader: Mutex::new(reader), writer, unwritten }, notices))
    }

    pub(super) fn reader(&self) -> MutexGuard<'_, Connection> {
        lock_ignoring_poison(&self.reader)
    }

    pub(super) fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        query(&self.reader()).map_err(|error| StoreError::database(&self.path, &error))
    }

    /// Runs a job on the writer thread and waits for its result.
    pub(super) fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut WriterState) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(written) = self.writer.run(job) else {
            let reason = "the writer thread ended".to_owned();
            return Err(StoreError::Database { path: self.path.clone(), reason, remedy: Some("start aye again") });
        };
        written.map_err(|error| StoreError::database(&self.path, &error))
    }
}

/// Replaces a damaged store with a new one that contains all readable data. No data is lost if aye crashes during this:
/// the recovered data is completely written under a name of its own before anything is moved, and the next start picks
/// up from there.
fn replace(path: &Path, reason: &str) -> Result<(Connection, String), StoreError> {
    let saved = if schema::salvaged_path(path).exists() { None } else { Some(schema::rescue(path)?) };
    let moved = quarantine::move_aside(path).map_err(|error| StoreError::unusable(path, &error))?;
    let words = saved.map_or_else(|| "all readable sessions were recovered".to_owned(), salvage::Salvage::describe);
    let connection = adopt(path)?;
    // Details for troubleshooting: one line after the actual message.
    let reason = reason.rsplit('\n').next().unwrap_or_default().trim();
    Ok((connection, format!("the session store was damaged and was moved to `{}`; {words}\ndetails: {reason}", moved.display())))
}

/// Completes a recovery that an earlier start left unfinished, by renaming the recovered store. Returns `None` if there
/// is no recovered store.
fn adopt_recovered(path: &Path) -> Result<Option<(Connection, String)>, StoreError> {
    if !schema::salvaged_path(path).exists() {
        return Ok(None);
    }
    let connection = adopt(path)?;
    Ok(Some((connection, "the session store was damaged and was moved aside; all readable sessions were recovered".to_owned())))
}

fn adopt(path: &Path) -> Result<Connection, StoreError> {
    schema::rename(&schema::salvaged_path(path), path)?;
    schema::connect(path).map_err(|error| StoreError::database(path, &error))
}
