//! Insertion of rows into the outbox, subject to its size limit.

use super::{GAP, OutboxEntry, OutboxLimit, OutboxSink, SinkSet};
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::json;

/// Size in bytes of a row without its body.
pub(super) const ROW_BYTES: i64 = 128;
/// Number of rows to drop at a time. A small number keeps the delay to a step short.
const DROP_BATCH: i64 = 64;

/// Returns whether the sinks' rows have reached the size limit.
pub(in super::super) fn is_full(transaction: &Transaction<'_>, limit: OutboxLimit) -> rusqlite::Result<bool> {
    Ok(total_bytes(transaction, limit.sinks)? >= limit_bytes(limit))
}

/// Inserts entries. Returns whether every entry that must not be dropped was stored.
pub(in super::super) fn insert(
    transaction: &Transaction<'_>,
    entries: &[OutboxEntry],
    limit: OutboxLimit,
    now: i64,
) -> rusqlite::Result<bool> {
    let mut total = total_bytes(transaction, limit.sinks)?;
    let mut is_complete = true;
    for entry in entries {
        let bytes = row_bytes(&entry.body);
        while total.saturating_add(bytes) > limit_bytes(limit) {
            let freed = drop_oldest(transaction, limit.sinks)?;
            if freed == 0 {
                break;
            }
            total -= freed;
        }
        // If `pauses` is set, the session stops before its next effect, so the excess remains small.
        let fits = total.saturating_add(bytes) <= limit_bytes(limit) || limit.pauses && !entry.sink.may_drop();
        if !fits {
            is_complete &= entry.sink.may_drop();
            count_missing(transaction, entry.sink, now)?;
            continue;
        }
        if !entry.sink.may_drop() {
            total += insert_gap(transaction, entry.sink)?;
        }
        insert_row(transaction, entry.sink, entry.kind, &entry.body, now)?;
        total += bytes;
    }
    Ok(is_complete)
}

pub(super) fn insert_row(
    transaction: &Transaction<'_>,
    sink: OutboxSink,
    kind: &str,
    body: &[u8],
    now: i64,
) -> rusqlite::Result<()> {
    let id = uuid::Uuid::new_v4().simple().to_string();
    insert_with_id(transaction, sink, (&id, kind), body, now)
}

pub(super) fn insert_with_id(
    transaction: &Transaction<'_>,
    sink: OutboxSink,
    (id, kind): (&str, &str),
    body: &[u8],
    now: i64,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT INTO outbox (sink, id, time, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![sink.as_str(), id, now, kind, body])?;
    transaction
        .prepare_cached(
            "INSERT INTO outbox_sinks (sink, pending, bytes) VALUES (?1, 1, ?2)
             ON CONFLICT (sink) DO UPDATE SET pending = pending + 1, bytes = bytes + ?2",
        )?
        .execute(params![sink.as_str(), row_bytes(body)])?;
    Ok(())
}

/// If a sink has missing records that have not been reported, inserts a row that reports them. Returns the row's size
/// in bytes, or 0 if no row was inserted.
pub(super) fn insert_gap(transaction: &Transaction<'_>, sink: OutboxSink) -> rusqlite::Result<i64> {
    let found: Option<(i64, i64, i64)> = transaction
        .prepare_cached("SELECT missing, missing_from, missing_until FROM outbox_sinks WHERE sink = ?1 AND missing > 0")?
        .query_row([sink.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((missing, from, until)) = found else { return Ok(0) };
    let time = |ms: i64| jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string();
    let body = json!({"missing": missing, "from": time(from), "until": time(until)}).to_string();
    transaction
        .prepare_cached("UPDATE outbox_sinks SET missing = 0, lost = lost + missing WHERE sink = ?1")?
        .execute([sink.as_str()])?;
    insert_row(transaction, sink, GAP, body.as_bytes(), until)?;
    Ok(row_bytes(body.as_bytes()))
}

/// Deletes a batch of the oldest rows that may be dropped, and adds them to the dropped count. Returns the number of
/// bytes freed.
fn drop_oldest(transaction: &Transaction<'_>, sinks: SinkSet) -> rusqlite::Result<i64> {
    for sink in OutboxSink::ALL.into_iter().filter(|sink| sink.may_drop() && sinks.contains(*sink)) {
        let last: Option<i64> = transaction
            .prepare_cached("SELECT max(key) FROM (SELECT key FROM outbox WHERE sink = ?1 ORDER BY key LIMIT ?2)")?
            .query_row(params![sink.as_str(), DROP_BATCH], |row| row.get(0))?;
        let Some(last) = last else { continue };
        let (count, freed) = delete_through(transaction, sink, last)?;
        transaction
            .prepare_cached("UPDATE outbox_sinks SET dropped = dropped + ?2 WHERE sink = ?1")?
            .execute(params![sink.as_str(), count])?;
        return Ok(freed);
    }
    Ok(0)
}

/// Deletes a sink's rows up to and including this key. Returns the number and size in bytes of the deleted rows.
pub(super) fn delete_through(transaction: &Transaction<'_>, sink: OutboxSink, key: i64) -> rusqlite::Result<(i64, i64)> {
    let (count, bytes): (i64, i64) = transaction
        .prepare_cached("SELECT count(*), coalesce(sum(length(body) + ?3), 0) FROM outbox WHERE sink = ?1 AND key <= ?2")?
        .query_row(params![sink.as_str(), key, ROW_BYTES], |row| Ok((row.get(0)?, row.get(1)?)))?;
    transaction.prepare_cached("DELETE FROM outbox WHERE sink = ?1 AND key <= ?2")?.execute(params![sink.as_str(), key])?;
    transaction
        .prepare_cached("UPDATE outbox_sinks SET pending = max(pending - ?2, 0), bytes = max(bytes - ?3, 0) WHERE sink = ?1")?
        .execute(params![sink.as_str(), count, bytes])?;
    Ok((count, bytes))
}

/// Counts a record for which there is no room, either as dropped or as missing. Missing records are reported later by a
/// gap row.
fn count_missing(transaction: &Transaction<'_>, sink: OutboxSink, now: i64) -> rusqlite::Result<()> {
    let sql = if sink.reports_missing() {
        "INSERT INTO outbox_sinks (sink, missing, missing_from, missing_until) VALUES (?1, 1, ?2, ?2) ON CONFLICT (sink)
         DO UPDATE SET missing_from = iif(missing = 0, ?2, missing_from), missing_until = ?2, missing = missing + 1"
    } else {
        "INSERT INTO outbox_sinks (sink, dropped) VALUES (?1, 1) ON CONFLICT (sink) DO UPDATE SET dropped = dropped + 1"
    };
    let mut statement = transaction.prepare_cached(sql)?;
    if sink.reports_missing() {
        statement.execute(params![sink.as_str(), now])?
    } else {
        statement.execute([sink.as_str()])?
    };
    Ok(())
}

/// Returns the total size in bytes of these sinks' rows.
fn total_bytes(transaction: &Transaction<'_>, sinks: SinkSet) -> rusqlite::Result<i64> {
    let mut statement = transaction.prepare_cached("SELECT sink, bytes FROM outbox_sinks")?;
    let mut rows = statement.query([])?;
    let mut total: i64 = 0;
    while let Some(row) = rows.next()? {
        if OutboxSink::from_name(row.get_ref(0)?.as_str()?).is_some_and(|sink| sinks.contains(sink)) {
            total = total.saturating_add(row.get(1)?);
        }
    }
    Ok(total)
}

fn limit_bytes(limit: OutboxLimit) -> i64 {
    i64::try_from(limit.bytes).unwrap_or(i64::MAX)
}

fn row_bytes(body: &[u8]) -> i64 {
    i64::try_from(body.len()).unwrap_or(i64::MAX).saturating_add(ROW_BYTES)
}
