//! Pruning of the store: deleting sessions and reclaiming their space.

use super::StoreError;
use super::database::Database;
use super::quarantine::{COMPANIONS, with_suffix};
use super::session_lock::{claim, live_holder};
use crate::ports::Durability;
use crate::protocol::SessionId;
use rusqlite::params;
use std::sync::Arc;

/// Maximum number of pages freed in one transaction, which limits how long other processes have to wait.
const PAGES_AT_ONCE: u32 = 512;
/// Minimum number of free bytes for which a complete rewrite is worthwhile.
const REWRITTEN_FROM_BYTES: u64 = 16 << 20;
const REWRITTEN_FROM_PERCENT: u64 = 25;

/// Size and free space of the database, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// Total size in bytes, including companion files.
    pub bytes: u64,
    /// Size in bytes of the free pages, which is included in `bytes`.
    pub free_bytes: u64,
}

/// How to return free pages to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseMode {
    /// In small steps that do not block other processes. Has no effect on a store created by an older version of aye,
    /// which reuses its free pages instead.
    InSteps,
    /// By rewriting the whole database, if that is worthwhile and no running process owns a session lock.
    Whole,
}

/// Deletes a session unless it is locked or has changed since `updated`. Returns whether it was deleted.
pub(super) fn forget_if_idle(database: &Arc<Database>, id: &SessionId, updated: jiff::Timestamp) -> Result<bool, StoreError> {
    let claim = match claim(database, id) {
        Ok(claim) => claim,
        Err(StoreError::Held { .. } | StoreError::NoSession { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let doomed = id.clone();
    let done = database.write(move |desk| {
        desk.transact(Durability::Process, 0, |transaction| {
            transaction.execute(
                "DELETE FROM sessions WHERE id = ?1 AND updated = ?2",
                params![doomed.as_str(), updated.as_millisecond()],
            )
        })
    });
    drop(claim);
    Ok(done? > 0)
}

pub(super) fn free_space(database: &Database) -> Result<FreeSpace, StoreError> {
    let length = |path: &std::path::Path| path.metadata().map_or(0, |metadata| metadata.len());
    let companions: u64 = COMPANIONS.iter().map(|suffix| length(&with_suffix(&database.path, suffix))).sum();
    database.read(|reader| {
        let number = |name: &str| reader.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
        let free_bytes = number("freelist_count")? * number("page_size")?;
        Ok(FreeSpace { bytes: length(&database.path) + companions, free_bytes })
    })
}

/// Returns free pages to the file system.
pub(super) fn release_pages(database: &Database, how: ReleaseMode) -> Result<(), StoreError> {
    let room = free_space(database)?;
    database.write(move |desk| {
        let connection = desk.connection()?;
        let kind: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
        if kind == 2 {
            let free = || connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
            let mut left = free()?;
            while left > 0 {
                let mut step = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))?;
                let mut rows = step.query([])?;
                while rows.next()?.is_some() {}
                let now = free()?;
                if now >= left {
                    break;
                }
                left = now;
            }
        } else {
            let worth = room.free_bytes >= REWRITTEN_FROM_BYTES
                && room.free_bytes * 100 >= room.bytes.saturating_mul(REWRITTEN_FROM_PERCENT);
            if how == ReleaseMode::InSteps || !worth || is_any_session_open(connection)? {
                return Ok(());
            }
            // From now on, pages are freed incrementally.
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")?;
        }
        // Do not wait for readers, unless the log contains a complete rewrite.
        let checkpoint = if kind == 2 { "PRAGMA wal_checkpoint(PASSIVE)" } else { "PRAGMA wal_checkpoint(TRUNCATE)" };
        connection.query_row(checkpoint, [], |_| Ok(()))
    })
}

/// Returns whether a running process owns a session lock. If so, its commits would have to wait for a rewrite.
fn is_any_session_open(connection: &rusqlite::Connection) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare("SELECT owner FROM sessions WHERE owner IS NOT NULL")?;
    let owners = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(owners.iter().any(|owner| live_holder(Some(owner)).is_some()))
}
