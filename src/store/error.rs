//! Store errors.

use crate::protocol::{Problem, size};
use crate::sys::file::usage::free_bytes;
use std::io;
use std::path::{Path, PathBuf};

/// Free space in bytes below which no transaction fits on the disk.
const MIN_FREE_BYTES: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("cannot use `{}`: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error(
        "the session store `{}` was written by a newer version of aye (format {found}; this version supports up to {known})",
        path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error(
        "cannot upgrade the session store `{}` from its older format, because no backup could be made: {reason}; \
         nothing was changed",
        path.display()
    )]
    NoBackup { path: PathBuf, reason: String },
    #[error("session `{id}` is locked by process {pid}")]
    Held { id: String, pid: u32 },
    #[error("invalid session ID `{given}`: expected at least 6 hex digits")]
    NotAnId { given: String },
    #[error("unknown session `{given}`")]
    NoSession { given: String },
    #[error("cannot archive or unarchive session `{id}`: it belongs to an agent")]
    OfAgent { id: String },
    #[error("`{given}` matches {} sessions: {}", ids.len(), ids.join(", "))]
    Ambiguous { given: String, ids: Vec<String> },
    #[error("cannot access the session store `{}`: {reason}", path.display())]
    Database { path: PathBuf, reason: String, remedy: Option<&'static str> },
}

impl StoreError {
    pub(super) fn unusable(path: &Path, error: &io::Error) -> Self {
        Self::Unusable { path: path.to_owned(), reason: system_message(error) }
    }

    pub(super) fn database(path: &Path, error: &rusqlite::Error) -> Self {
        let (reason, remedy) = explain_error(error);
        Self::Database { path: path.to_owned(), reason, remedy }
    }

    /// Returns a hint that tells the user how to solve the problem, if there is one.
    fn hint(&self) -> Option<&'static str> {
        let hint = match self {
            Self::Unusable { .. } => "make it readable and writable, or set AYE_DATA_DIR to another directory",
            Self::Newer { .. } => "use that version, or set AYE_DATA_DIR to another directory",
            Self::NoBackup { .. } => "free some space in its directory and start aye again",
            Self::Held { .. } => "stop that process, or start another session",
            Self::NotAnId { .. } => "run `aye sessions list` to list the IDs",
            Self::NoSession { .. } => "run `aye sessions list` to list the sessions",
            Self::OfAgent { .. } => "archive the session that started the agent",
            Self::Ambiguous { .. } => "enter more digits",
            Self::Database { remedy, .. } => return *remedy,
        };
        Some(hint)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let problem = Self::new(error.to_string());
        match error.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// Returns the operating system's error message without its error number.
fn system_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Explains an SQLite error. Returns the reason and, if there is one, a remedy.
fn explain_error(error: &rusqlite::Error) -> (String, Option<&'static str>) {
    use rusqlite::ErrorCode;
    let (reason, remedy) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => ("the disk is full", "free some space and try again"),
        Some(ErrorCode::ReadOnly) => ("the file is read-only", "make it writable"),
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            ("the file cannot be opened", "make it and its directory readable and writable")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ("another aye process has locked the database", "try again"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            ("the database is damaged", "move it away and start aye again to create a new one")
        }
        _ => return (error.to_string(), None),
    };
    (reason.to_owned(), Some(remedy))
}

/// Explains an SQLite error on one line, including the remedy if there is one.
pub(super) fn explain(error: &rusqlite::Error) -> String {
    match explain_error(error) {
        (reason, Some(remedy)) => format!("{reason}; {remedy}"),
        (reason, None) => reason,
    }
}

/// Returns the reason why a session could not be saved, worded for use in parentheses.
pub(super) fn not_saved_reason(path: &Path, error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    let directory = path.parent().unwrap_or(path);
    let free = free_bytes(directory);
    let code = error.sqlite_error_code();
    // SQLite reports a log or index that cannot grow as an I/O error.
    let is_full = code == Some(ErrorCode::DiskFull)
        || code == Some(ErrorCode::SystemIoFailure) && free.is_some_and(|free| free < MIN_FREE_BYTES);
    if is_full {
        let free = free.map(|free| format!(", {} free", format_size(free))).unwrap_or_default();
        return format!("disk full{free} in `{}`", directory.display());
    }
    match code {
        Some(ErrorCode::ReadOnly) => format!("`{}` is read-only", path.display()),
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => format!("`{}` cannot be opened", path.display()),
        Some(ErrorCode::SystemIoFailure) => format!("disk I/O error on `{}`: {error}", path.display()),
        _ => format!("`{}`: {}", path.display(), explain(error)),
    }
}

fn format_size(bytes: u64) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { size(bytes) }
}
