//! Outbox status as shown to the user.

use super::OutboxSink;
use crate::store::StoreError;
use crate::store::database::{Database, FILE_NAME};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Status of a single sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SinkStatus {
    pub sink: OutboxSink,
    /// Number of rows that have not been acknowledged yet.
    pub pending: u64,
    /// Size in bytes of the rows that have not been acknowledged yet.
    pub bytes: u64,
    /// Number of rows that were dropped because the outbox was full, deleted by the user, or permanently rejected by
    /// the service.
    pub dropped: u64,
    /// Number of records that are missing because the outbox was full or because the user deleted their rows.
    pub missing: u64,
    /// Number of attempts that have failed since the last acknowledgement.
    pub attempts: u64,
    /// Error from the last attempt, if it failed.
    pub error: Option<String>,
    pub next_attempt: Option<jiff::Timestamp>,
    /// Time of the last acknowledgement, if any.
    pub delivered: Option<jiff::Timestamp>,
}

/// Returns the status of every sink that has ever had a row.
pub(in super::super) fn status(database: &Database) -> Result<Vec<SinkStatus>, StoreError> {
    database.read(read_sinks)
}

/// Returns the status of every sink in a data directory without changing anything. Returns an empty list if the store
/// does not exist or has an older format.
pub(crate) fn stored_sinks(data_dir: &Path) -> Result<Vec<SinkStatus>, StoreError> {
    let path = data_dir.join(FILE_NAME);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = || {
        let connection = Connection::open_with_flags(&path, flags)?;
        let has_outbox = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'outbox_sinks')";
        if connection.query_row(has_outbox, [], |row| row.get(0))? { read_sinks(&connection) } else { Ok(Vec::new()) }
    };
    read().map_err(|error| StoreError::database(&path, &error))
}

fn read_sinks(connection: &Connection) -> rusqlite::Result<Vec<SinkStatus>> {
    const SQL: &str = "SELECT sink, pending, bytes, dropped, missing + lost, attempts, error, next_attempt, delivered
        FROM outbox_sinks ORDER BY sink";
    let time = |ms: i64| Some(ms).filter(|ms| *ms > 0).and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let number = |value: i64| u64::try_from(value).unwrap_or_default();
    let mut statement = connection.prepare_cached(SQL)?;
    let rows = statement.query_map([], |row| {
        let name: String = row.get(0)?;
        let Some(sink) = OutboxSink::from_name(&name) else { return Ok(None) };
        Ok(Some(SinkStatus {
            sink,
            pending: number(row.get(1)?),
            bytes: number(row.get(2)?),
            dropped: number(row.get(3)?),
            missing: number(row.get(4)?),
            attempts: number(row.get(5)?),
            error: row.get(6)?,
            next_attempt: time(row.get(7)?),
            delivered: time(row.get(8)?),
        }))
    })?;
    rows.filter_map(Result::transpose).collect()
}
