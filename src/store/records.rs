//! A session's records in the database. Recent records have a row each, and older records are packed.

use super::packed::{self, StoredRecord};
use crate::session::starts_step;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Target size in bytes of the records in a packed row. A row may be up to twice as large to make it end at a step
/// boundary.
const ROW_BYTES: usize = 256 << 10;
/// Minimum total size in bytes of records to pack while the session is in use.
pub(super) const MIN_PACKED_BYTES: usize = 64 << 10;
/// Maximum number of bytes to pack at a time, which limits how long the next write has to wait.
pub(super) const PACK_BATCH_BYTES: usize = 1 << 20;
/// Maximum size in bytes of a record that can be packed.
const MAX_PACKED_BYTES: usize = 16 << 20;

/// Content of a journal position: a record or a gap.
#[derive(Debug)]
pub(super) enum Place<'a> {
    /// Record exactly as it was written.
    Record { seq: i64, time: i64, json: &'a [u8] },
    /// Number of consecutive records that were lost.
    Lost { count: i64 },
}

/// Returns the position of the last record, or 0 if there are no records.
pub(super) fn last(connection: &Connection, session: i64) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "SELECT max(coalesce((SELECT max(seq) FROM records WHERE session = ?1), 0),
                        coalesce((SELECT last FROM packed WHERE session = ?1 ORDER BY first DESC LIMIT 1), 0))",
        )?
        .query_row([session], |row| row.get(0))
}

/// Visits a range of positions in order. The caller must have an open transaction, which prevents records from being
/// packed during the visit.
pub(super) fn visit(
    connection: &Connection,
    session: i64,
    from: i64,
    to: i64,
    mut see: impl FnMut(Place<'_>),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT first, last, data FROM packed WHERE session = ?1 AND last >= ?2 AND first <= ?3 ORDER BY first",
    )?;
    let mut rows = statement.query(params![session, from, to])?;
    let mut next = from;
    while let Some(row) = rows.next()? {
        let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
        if first > next {
            visit_single(connection, session, (next, first - 1), &mut see)?;
        }
        // A record is stored twice only in a damaged store. It is visited once.
        let begin = next.max(first);
        let (stored, _) = packed::unpack(row.get_ref(2)?.as_blob_or_null()?.unwrap_or_default());
        let mut seq = first;
        for one in stored {
            if (begin..=to.min(last)).contains(&seq) {
                see(Place::Record { seq, time: one.time, json: &one.json });
            }
            seq += 1;
        }
        let end = last.min(to);
        if end >= seq.max(begin) {
            see(Place::Lost { count: end - seq.max(begin) + 1 });
        }
        next = next.max(end + 1);
    }
    if next <= to {
        visit_single(connection, session, (next, to), &mut see)?;
    }
    Ok(())
}

/// Visits the records that have a row of their own.
fn visit_single(
    connection: &Connection,
    session: i64,
    (from, to): (i64, i64),
    see: &mut impl FnMut(Place<'_>),
) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("SELECT seq, json, time FROM records WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq")?;
    let mut rows = statement.query(params![session, from, to])?;
    let mut next = from;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        if seq > next {
            see(Place::Lost { count: seq - next });
        }
        next = seq + 1;
        match row.get_ref(1)?.as_bytes() {
            Ok(json) => see(Place::Record { seq, time: row.get(2).unwrap_or_default(), json }),
            Err(_) => see(Place::Lost { count: 1 }),
        }
    }
    if next <= to {
        see(Place::Lost { count: to - next + 1 });
    }
    Ok(())
}

/// Packs the oldest unpacked records of a session if their total size is at least `least` bytes. Returns whether there
/// may be more records to pack.
pub(super) fn pack_some(transaction: &Transaction<'_>, session: &str, least: usize) -> rusqlite::Result<bool> {
    let key: Option<i64> = transaction
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([session], |row| row.get(0))
        .optional()?;
    let Some(key) = key else { return Ok(false) };
    let (runs, more) = singles(transaction, key)?;
    if runs.iter().flat_map(|(_, run)| run).map(|one| one.json.len()).sum::<usize>() < least.max(1) {
        return Ok(false);
    }
    for (first, run) in runs {
        let mut first = first;
        for row in split_into_rows(&run) {
            let last = first + row.len() as i64 - 1;
            // Leave records unpacked if they do not fit in memory.
            let Ok(data) = packed::pack(row) else { return Ok(false) };
            transaction
                .prepare_cached("INSERT INTO packed (session, first, last, data) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![key, first, last, data])?;
            transaction
                .prepare_cached("DELETE FROM records WHERE session = ?1 AND seq BETWEEN ?2 AND ?3")?
                .execute(params![key, first, last])?;
            first = last + 1;
        }
    }
    Ok(more)
}

/// Oldest unpacked records, grouped into runs of consecutive records. Each run is paired with the position of its first
/// record.
type Runs = Vec<(i64, Vec<StoredRecord>)>;

fn singles(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<(Runs, bool)> {
    let mut statement = transaction.prepare_cached("SELECT seq, time, json FROM records WHERE session = ?1 ORDER BY seq")?;
    let mut rows = statement.query([key])?;
    let mut runs: Runs = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        if bytes >= PACK_BATCH_BYTES {
            return Ok((runs, true));
        }
        let seq: i64 = row.get(0)?;
        let Ok(json) = row.get_ref(2)?.as_bytes() else { continue };
        if json.len() > MAX_PACKED_BYTES {
            continue;
        }
        bytes += json.len();
        let stored = StoredRecord { time: row.get(1).unwrap_or_default(), json: json.to_vec() };
        match runs.last_mut() {
            Some((first, run)) if *first + run.len() as i64 == seq => run.push(stored),
            Some(_) | None => runs.push((seq, vec![stored])),
        }
    }
    Ok((runs, false))
}

/// Splits a run into rows, preferably at step boundaries, so repeated strings within a step end up in the same row.
fn split_into_rows(run: &[StoredRecord]) -> Vec<&[StoredRecord]> {
    let mut rows = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, one) in run.iter().enumerate() {
        if at > start && (bytes >= 2 * ROW_BYTES || bytes >= ROW_BYTES && starts_step(&one.json)) {
            rows.push(&run[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += one.json.len();
    }
    rows.push(&run[start..]);
    rows
}
