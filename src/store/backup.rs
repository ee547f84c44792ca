//! A whole copy of a store of an older format, before it is brought to a newer one.

use super::quarantine::beside;
use super::{StoreError, directory};
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};

/// Copies all of the database to a file of its own beside it, its log included. It gets its name only when it is whole.
pub(super) fn keep(connection: &Connection, path: &Path, format: i64) -> Result<PathBuf, Failure> {
    let target = free_name(path, format);
    let unfinished = beside(&target, ".new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    // An empty file of ours is written into: what others may not read they may not read in the copy.
    directory::private().create_new(true).open(&unfinished)?;
    let copied = copy(connection, &unfinished, &target);
    if copied.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    copied.map(|()| target)
}

fn copy(connection: &Connection, unfinished: &Path, target: &Path) -> Result<(), Failure> {
    connection.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])?;
    std::fs::File::open(unfinished)?.sync_all()?;
    std::fs::rename(unfinished, target)?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl Failure {
    /// What was tried in vain, and on what.
    pub fn said(&self, path: &Path) -> StoreError {
        let reason = match self {
            Self::Io(error) if error.kind() == io::ErrorKind::StorageFull => "the disk is full".to_owned(),
            Self::Io(error) => error.to_string(),
            Self::Database(error) => super::error::explain(error),
        };
        StoreError::NoBackup { path: path.to_owned(), reason }
    }
}

/// `aye.db.before-v3`; a second one is numbered.
fn free_name(path: &Path, format: i64) -> PathBuf {
    let first = beside(path, &format!(".before-v{format}"));
    let numbered = (2..).map(|number: u32| beside(path, &format!(".before-v{format}-{number}")));
    std::iter::once(first.clone()).chain(numbered).find(|name| name.symlink_metadata().is_err()).unwrap_or(first)
}
