//! Pruning: deletes sessions and frees their space.

use super::quarantine::{COMPANIONS, beside};
use super::session_lock::living;
use super::{Store, StoreError};
use crate::ports::Durability;
use crate::protocol::SessionId;
use rusqlite::params;

/// Pages that are given back in one transaction: another process waits for no more than these.
const PAGES_AT_ONCE: u32 = 512;
/// A whole rewrite is worth it from here on, and from this share of the file.
const REWRITTEN_FROM_BYTES: u64 = 16 << 20;
const REWRITTEN_FROM_PERCENT: u64 = 25;

/// How much room the database takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// With the files beside it.
    pub bytes: u64,
    /// Of that, pages that hold nothing.
    pub free_bytes: u64,
}

/// How far free pages are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveBack {
    /// Page by page, which holds nobody up; a store of an older aye keeps its free pages for what comes.
    InSteps,
    /// By writing all of it anew where that is worth it and no living process holds a session.
    Whole,
}

impl Store {
    /// Gives up a session that nobody holds and in which nothing was said since `updated`. Whether it did.
    pub fn forget_if_idle(&self, id: &SessionId, updated: jiff::Timestamp) -> Result<bool, StoreError> {
        let claim = match self.claim(id) {
            Ok(claim) => claim,
            Err(StoreError::Held { .. } | StoreError::NoSession { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let doomed = id.clone();
        let done = self.inner.writer.ask(move |desk| {
            desk.transact(Durability::Process, 0, |transaction| {
                transaction.execute(
                    "DELETE FROM sessions WHERE id = ?1 AND updated = ?2",
                    params![doomed.as_str(), updated.as_millisecond()],
                )
            })
        });
        drop(claim);
        match done {
            Some(Ok(count)) => Ok(count > 0),
            Some(Err(error)) => Err(StoreError::database(&self.inner.path, &error)),
            None => Err(self.writer_is_gone()),
        }
    }

    pub(super) fn room(&self) -> Result<Room, StoreError> {
        let length = |path: &std::path::Path| path.metadata().map_or(0, |metadata| metadata.len());
        let beside: u64 = COMPANIONS.iter().map(|suffix| length(&beside(&self.inner.path, suffix))).sum();
        self.read(|reader| {
            let number = |name: &str| reader.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
            let free_bytes = number("freelist_count")? * number("page_size")?;
            Ok(Room { bytes: length(&self.inner.path) + beside, free_bytes })
        })
    }

    /// Gives free pages back to the disk.
    pub fn give_back(&self, how: GiveBack) -> Result<(), StoreError> {
        let room = self.room()?;
        let done = self.inner.writer.ask(move |desk| {
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
                if how == GiveBack::InSteps || !worth || somebody_works(connection)? {
                    return Ok(());
                }
                // From here on it gives back page by page.
                connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")?;
            }
            // Who reads meanwhile is not waited for, unless all was written anew and lies in the log.
            let checkpoint = if kind == 2 { "PRAGMA wal_checkpoint(PASSIVE)" } else { "PRAGMA wal_checkpoint(TRUNCATE)" };
            connection.query_row(checkpoint, [], |_| Ok(()))
        });
        match done {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(StoreError::database(&self.inner.path, &error)),
            None => Err(self.writer_is_gone()),
        }
    }
}

/// Whether a living process holds a session: its commits would have to wait.
fn somebody_works(connection: &rusqlite::Connection) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare("SELECT owner FROM sessions WHERE owner IS NOT NULL")?;
    let owners = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(owners.iter().any(|owner| living(Some(owner)).is_some()))
}
