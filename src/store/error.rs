//! Why the store could not do what was asked.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "cannot use `{}`: {reason}; expected a place that you can read and write, or set AYE_DATA_DIR to another directory",
        path.display()
    )]
    Unusable { path: PathBuf, reason: String },
    #[error(
        "the session store `{}` was written by a newer aye (its format is {found}, this aye knows {known}); \
         use that version, or set AYE_DATA_DIR to another directory",
        path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("session `{id}` is in use by process {pid}; end it there, or start another session")]
    Held { id: String, pid: u32 },
    #[error("`{given}` is no session id: expected at least 6 of its hex digits; `aye sessions list` shows them")]
    NotAnId { given: String },
    #[error("there is no session `{given}`; `aye sessions list` shows those that exist")]
    NoSession { given: String },
    #[error("`{given}` is the start of {} sessions: {}; give more digits", ids.len(), ids.join(", "))]
    Ambiguous { given: String, ids: Vec<String> },
    #[error("the session store `{}` did not answer: {reason}", path.display())]
    Database { path: PathBuf, reason: String },
}

impl StoreError {
    pub(super) fn unusable(path: &Path, error: &io::Error) -> Self {
        Self::Unusable { path: path.to_owned(), reason: said(error) }
    }

    pub(super) fn database(path: &Path, error: &rusqlite::Error) -> Self {
        Self::Database { path: path.to_owned(), reason: explain(error) }
    }
}

/// The system's own sentence without its number.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// What a person can do about what SQLite says.
pub(super) fn explain(error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full; free some space and try again".to_owned(),
        Some(ErrorCode::ReadOnly) => "it can only be read; give yourself the right to write it".to_owned(),
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "it cannot be opened; give yourself the right to read and write it and its directory".to_owned()
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another aye is writing to it for too long; try again".to_owned()
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "it is damaged; move it to another place and start aye again, which makes a new one".to_owned()
        }
        _ => error.to_string(),
    }
}
