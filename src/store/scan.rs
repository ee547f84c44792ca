//! Streaming scan of a session's records in constant memory, also used to determine sizes and totals.

use super::StoreError;
use super::database::Database;
use super::metadata;
use super::records::{self, Place};
use crate::ports::Record;
use crate::protocol::SessionId;
use crate::session::{Tally, TallyCounter, TallyEntry};
use rusqlite::OptionalExtension;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Number of positions to visit before checking whether the scan should stop.
const STRETCH: i64 = 5_000;

/// Record with the time at which it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimedRecord {
    pub time: jiff::Timestamp,
    /// The record, or `Unreadable` if another version of aye wrote it or if part of it is missing.
    pub record: Record,
}

/// Number of records in a session, and their stored size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub records: u64,
    pub bytes: u64,
}

/// Visits a session's records in order until `visit` asks to stop. `visit` must not use this store.
pub(super) fn for_each_record(
    database: &Database,
    id: &SessionId,
    mut visit: impl FnMut(TimedRecord) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    for_each_text(database, id, |time, text| {
        let record = text.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or(Record::Unreadable);
        visit(TimedRecord { time, record })
    })
}

/// Computes the session totals, parsing only the records that are needed for them.
pub(super) fn tally(database: &Database, id: &SessionId) -> Result<Tally, StoreError> {
    let mut counter = TallyCounter::default();
    for_each_text(database, id, |_, text| {
        if let Some(entry) = text.and_then(TallyEntry::parse) {
            counter.add(&entry);
        }
        ControlFlow::Continue(())
    })?;
    Ok(counter.tally)
}

/// Visits the records that count toward a session's totals, in order. Records that a fork shares with its parent are
/// excluded.
pub(super) fn for_each_tally_entry(
    database: &Database,
    id: &SessionId,
    mut visit: impl FnMut(jiff::Timestamp, &TallyEntry<'_>),
) -> Result<(), StoreError> {
    let mut shared = metadata::parent_records(database, id)?;
    let mut counter = TallyCounter::default();
    for_each_text(database, id, |time, text| {
        let entry = text.and_then(TallyEntry::parse).filter(|entry| counter.add(entry));
        if shared > 0 {
            shared -= 1;
        } else if let Some(entry) = entry {
            visit(time, &entry);
        }
        ControlFlow::Continue(())
    })
}

/// Returns the stored size of each session.
pub(super) fn sizes(database: &Database) -> Result<HashMap<SessionId, Size>, StoreError> {
    const SQL: &str = "SELECT s.id,
            (SELECT count(*) FROM records r WHERE r.session = s.key)
                + (SELECT coalesce(sum(p.last - p.first + 1), 0) FROM packed p WHERE p.session = s.key),
            (SELECT coalesce(sum(octet_length(r.json)), 0) FROM records r WHERE r.session = s.key)
                + (SELECT coalesce(sum(octet_length(p.data)), 0) FROM packed p WHERE p.session = s.key)
                + octet_length(s.draft)
         FROM sessions s";
    database.read(|reader| {
        let mut statement = reader.prepare_cached(SQL)?;
        let rows = statement.query_map([], |row| {
            let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
            Ok((SessionId::new(row.get::<_, String>(0)?), Size { records: number(1)?, bytes: number(2)? }))
        })?;
        rows.collect()
    })
}

/// Visits the JSON text of each record, or `None` in place of a record that was lost.
fn for_each_text(
    database: &Database,
    id: &SessionId,
    mut visit: impl FnMut(jiff::Timestamp, Option<&[u8]>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let found = database.read(|reader| {
        let key: Option<i64> = reader
            .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let Some(key) = key else { return Ok(false) };
        // This transaction prevents packing between the queries.
        let _steady = reader.unchecked_transaction()?;
        let last = records::last(reader, key)?;
        let mut enough = false;
        let (mut from, mut until) = (1, STRETCH.min(last));
        while from <= last && !enough {
            records::visit(reader, key, from, until, |place| {
                if enough {
                    return;
                }
                let (time, text) = match place {
                    Place::Record { time, json, .. } => (jiff::Timestamp::from_millisecond(time).unwrap_or_default(), Some(json)),
                    Place::Lost { .. } => (jiff::Timestamp::default(), None),
                };
                enough = visit(time, text).is_break();
            })?;
            (from, until) = (until + 1, (until + STRETCH).min(last));
        }
        Ok(true)
    })?;
    if found { Ok(()) } else { Err(StoreError::NoSession { given: id.to_string() }) }
}
