//! Health check of the store, which reads the whole database without changing it.

use super::StoreError;
use super::database::FILE_NAME;
use super::error::explain;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    /// The store does not exist yet. It will be created on the first start.
    Missing,
    Sound {
        bytes: u64,
    },
    /// The store is damaged for the given reason. It will be moved aside on the next start.
    Damaged(String),
}

/// Fully checks the store in a data directory, regardless of its size.
pub(crate) fn health(data_dir: &Path) -> Result<Health, StoreError> {
    let path = data_dir.join(FILE_NAME);
    let bytes = match path.metadata() {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Ok(Health::Damaged("not a regular file".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Health::Missing),
        Err(error) => return Err(StoreError::unusable(&path, &error)),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let verdict = Connection::open_with_flags(&path, flags)
        .and_then(|connection| connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0)));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(Health::Sound { bytes }),
        Ok(verdict) => Ok(Health::Damaged(verdict)),
        Err(error) => match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                Ok(Health::Damaged(explain(&error)))
            }
            _ => Err(StoreError::database(&path, &error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn health_checks_report_the_state_of_a_store_without_changing_the_store() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(health(directory.path()).unwrap(), Health::Missing);
        assert!(!directory.path().join(FILE_NAME).exists());
        drop(Store::open(directory.path()).unwrap());
        assert!(matches!(health(directory.path()).unwrap(), Health::Sound { bytes } if bytes > 0));
        std::fs::write(directory.path().join(FILE_NAME), "no database at all, and long enough to be seen as none").unwrap();
        assert!(matches!(health(directory.path()).unwrap(), Health::Damaged(_)));
        assert!(std::fs::read(directory.path().join(FILE_NAME)).unwrap().starts_with(b"no database"));
    }
}
