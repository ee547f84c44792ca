//! Errors of the store.

use crate::protocol::size;
use crate::sys::file::usage::free_bytes;
use std::io;
use std::path::{Path, PathBuf};

/// With less free than this no transaction fits.
const MIN_FREE_BYTES: u64 = 64 << 10;

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
    #[error(
        "the session store `{}` is of an older format, and no copy of it could be made before it is brought to this one: {reason}; \
         make room beside it and start aye again; it is as it was",
        path.display()
    )]
    NoBackup { path: PathBuf, reason: String },
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

/// Why a session was not saved, as it stands in parentheses.
pub(super) fn not_saved(path: &Path, error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    let directory = path.parent().unwrap_or(path);
    let free = free_bytes(directory);
    let code = error.sqlite_error_code();
    // A log or an index that cannot grow is told as a disk that fails.
    let is_full = code == Some(ErrorCode::DiskFull)
        || code == Some(ErrorCode::SystemIoFailure) && free.is_some_and(|free| free < MIN_FREE_BYTES);
    if is_full {
        let free = free.map(|free| format!(", {} free", short(free))).unwrap_or_default();
        return format!("disk full{free} in `{}`", directory.display());
    }
    match code {
        Some(ErrorCode::ReadOnly) => format!("`{}` can only be read", path.display()),
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => format!("`{}` cannot be opened", path.display()),
        Some(ErrorCode::SystemIoFailure) => format!("the disk fails to read or write `{}`: {error}", path.display()),
        _ => format!("`{}`: {}", path.display(), explain(error)),
    }
}

fn short(bytes: u64) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { size(bytes) }
}
