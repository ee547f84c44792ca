//! Backups of a store made before its format is upgraded.

use super::quarantine::with_suffix;
use super::{StoreError, directory};
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};

/// Copies the whole database, including its write-ahead log, to a file next to it. The backup is given its final name
/// only once it is complete.
pub(super) fn keep(connection: &Connection, path: &Path, format: i64) -> Result<PathBuf, BackupError> {
    let target = free_name(path, format);
    let unfinished = with_suffix(&target, ".new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    // Write into an empty private file, so that the copy is as private as the original.
    directory::private().create_new(true).open(&unfinished)?;
    let copied = copy(connection, &unfinished, &target);
    if copied.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    copied.map(|()| target)
}

fn copy(connection: &Connection, unfinished: &Path, target: &Path) -> Result<(), BackupError> {
    connection.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])?;
    std::fs::File::open(unfinished)?.sync_all()?;
    std::fs::rename(unfinished, target)?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BackupError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl BackupError {
    /// Converts the backup failure to a store error that includes the path.
    pub(crate) fn to_store_error(&self, path: &Path) -> StoreError {
        let reason = match self {
            Self::Io(error) if error.kind() == io::ErrorKind::StorageFull => "the disk is full".to_owned(),
            Self::Io(error) => error.to_string(),
            Self::Database(error) => super::error::explain(error),
        };
        StoreError::NoBackup { path: path.to_owned(), reason }
    }
}

/// Returns the backup's name, such as `aye.db.before-v3`. A number is appended if the name is already taken.
fn free_name(path: &Path, format: i64) -> PathBuf {
    let first = with_suffix(path, &format!(".before-v{format}"));
    let numbered = (2..).map(|number: u32| with_suffix(path, &format!(".before-v{format}-{number}")));
    std::iter::once(first.clone()).chain(numbered).find(|name| name.symlink_metadata().is_err()).unwrap_or(first)
}
