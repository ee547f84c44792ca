//! Small databases that index directories outside the session store. Problems with them must not block work.

use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// How long to wait for another aye process, which may be storing a large first snapshot. After that, the turn
/// continues without storing anything.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);

/// Format of an index database.
pub(super) struct IndexFormat {
    /// Application ID, whose four bytes identify the database.
    pub application_id: i64,
    /// Migrations, one per format version. The first one creates all tables.
    pub versions: &'static [&'static str],
}

/// Error while using an index database.
#[derive(Debug, thiserror::Error)]
pub(super) enum IndexError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Other(String),
}

impl IndexError {
    /// Returns the error message, including the directory.
    pub(super) fn message(&self, directory: &Path) -> String {
        let reason = match self {
            Self::Database(error) => super::error::explain(error),
            Self::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => "the disk is full".to_owned(),
            Self::Io(error) => error.to_string(),
            Self::Other(message) => message.clone(),
        };
        format!("`{}`: {reason}", directory.display())
    }
}

/// Opens or creates the database. If it is damaged, it is moved aside and replaced, because losing it must not block
/// work.
pub(super) fn open(path: &Path, shape: &IndexFormat) -> Result<Connection, IndexError> {
    match connect(path, shape) {
        Err(IndexError::Database(error)) if is_damage(&error) => {
            let mut aside = path.as_os_str().to_owned();
            aside.push(format!(".damaged-{}", jiff::Timestamp::now().as_millisecond()));
            std::fs::rename(path, &aside)?;
            for suffix in ["-wal", "-shm"] {
                let mut companion = path.as_os_str().to_owned();
                companion.push(suffix);
                let mut beside = aside.clone();
                beside.push(suffix);
                // The companion files belong to the damaged database, not to the new one.
                if std::fs::rename(&companion, beside).is_err() {
                    let _ = std::fs::remove_file(companion);
                }
            }
            connect(path, shape)
        }
        other => other,
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

fn connect(path: &Path, shape: &IndexFormat) -> Result<Connection, IndexError> {
    super::directory::private().create(true).truncate(false).open(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != shape.application_id && (version, application) != (0, 0) {
        return Err(IndexError::Other("the database belongs to another program; move it away".to_owned()));
    }
    let known = usize::try_from(version).ok().and_then(|version| shape.versions.get(version..));
    let Some(missing) = known else {
        return Err(IndexError::Other(
            "the database was written by a newer version of aye; use that version, or move it away".to_owned(),
        ));
    };
    for step in missing {
        transaction.execute_batch(step)?;
    }
    if !missing.is_empty() {
        transaction.pragma_update(None, "application_id", shape.application_id)?;
        transaction.pragma_update(None, "user_version", shape.versions.len() as i64)?;
    }
    transaction.commit()?;
    Ok(connection)
}
