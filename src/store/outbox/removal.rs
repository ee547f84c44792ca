//! Removal, at the user's request, of rows for a sink that is no longer configured.

use super::delivery::{ClaimResult, claim};
use super::insertion::delete_through;
use super::{GAP, OutboxSink};
use crate::ports::Durability;
use crate::store::StoreError;
use crate::store::database::Database;
use rusqlite::{Transaction, params};
use std::sync::Arc;

/// Outcome of removing a sink's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The number and size in bytes of the rows that were removed.
    Done { rows: u64, bytes: u64 },
    /// Nothing was removed, because the running process with this ID is delivering the rows.
    HeldBy(u32),
}

/// Removes all rows of a sink. The rows are counted as missing if a gap row can report them once the sink is configured
/// again, and as dropped otherwise.
pub(in super::super) fn remove_rows(database: &Arc<Database>, sink: OutboxSink) -> Result<Removal, StoreError> {
    let claim = match claim(database, sink, true)? {
        ClaimResult::Taken(claim) => claim,
        ClaimResult::HeldBy(pid) => return Ok(Removal::HeldBy(pid)),
        ClaimResult::Empty | ClaimResult::NotBefore(_) => return Ok(Removal::Done { rows: 0, bytes: 0 }),
    };
    let (rows, bytes) =
        database.write(move |state| state.transact(Durability::Power, 0, |transaction| remove(transaction, sink)))?;
    drop(claim);
    let number = |value: i64| u64::try_from(value).unwrap_or_default();
    Ok(Removal::Done { rows: number(rows), bytes: number(bytes) })
}

fn remove(transaction: &Transaction<'_>, sink: OutboxSink) -> rusqlite::Result<(i64, i64)> {
    let (from, until, last): (i64, i64, i64) = transaction
        .prepare_cached(
            "SELECT coalesce(min(time), 0), coalesce(max(time), 0), coalesce(max(key), 0) FROM outbox WHERE sink = ?1",
        )?
        .query_row([sink.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (gaps, reported, earliest) = gaps(transaction, sink)?;
    let (count, bytes) = delete_through(transaction, sink, last)?;
    if !sink.reports_missing() {
        transaction
            .prepare_cached("UPDATE outbox_sinks SET dropped = dropped + ?2 WHERE sink = ?1")?
            .execute(params![sink.as_str(), count])?;
    } else if count > 0 {
        // The new gap row also reports the records of gap rows that were not delivered.
        transaction
            .prepare_cached(
                "UPDATE outbox_sinks SET missing_from = iif(missing = 0, ?3, min(missing_from, ?3)),
                 missing_until = max(missing_until, ?4), missing = missing + ?2, lost = max(lost - ?5, 0) WHERE sink = ?1",
            )?
            .execute(params![sink.as_str(), count - gaps + reported, from.min(earliest), until, reported])?;
    }
    transaction
        .prepare_cached("UPDATE outbox_sinks SET attempts = 0, next_attempt = 0, error = NULL WHERE sink = ?1")?
        .execute([sink.as_str()])?;
    Ok((count, bytes))
}

/// Returns the number of a sink's gap rows, the number of records that they report as missing, and the time of the
/// first missing record.
fn gaps(transaction: &Transaction<'_>, sink: OutboxSink) -> rusqlite::Result<(i64, i64, i64)> {
    let mut statement = transaction.prepare_cached("SELECT body FROM outbox WHERE sink = ?1 AND kind = ?2")?;
    let mut rows = statement.query(params![sink.as_str(), GAP])?;
    let (mut gaps, mut reported, mut earliest) = (0, 0, i64::MAX);
    while let Some(row) = rows.next()? {
        let body: serde_json::Value = serde_json::from_slice(row.get_ref(0)?.as_blob()?).unwrap_or_default();
        gaps += 1;
        reported += body["missing"].as_i64().unwrap_or_default();
        let from = body["from"].as_str().and_then(|from| from.parse::<jiff::Timestamp>().ok());
        earliest = from.map_or(earliest, |from| earliest.min(from.as_millisecond()));
    }
    Ok((gaps, reported, earliest))
}
