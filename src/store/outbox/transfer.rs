//! Transfer of outbox rows to another store, before their own store is deleted or abandoned.

use super::delivery::{ClaimResult, claim};
use super::insertion::{insert_gap, insert_with_id};
use super::{OutboxRow, OutboxSink};
use crate::ports::Durability;
use crate::store::StoreError;
use crate::store::database::Database;
use rusqlite::{OptionalExtension, params};
use std::sync::Arc;

/// Maximum number and total size in bytes of rows to move at a time.
const BATCH: (usize, usize) = (256, 1 << 20);

/// Moves to another store all rows that no process is delivering, together with their idempotency keys and the counts
/// of missing and dropped records. If aye crashes during the transfer, some rows or counts may end up in both stores.
pub(in super::super) fn transfer(from: &Arc<Database>, to: &Database) -> Result<(), StoreError> {
    for sink in OutboxSink::ALL {
        while let ClaimResult::Taken(claim) = claim(from, sink, true)? {
            let rows = claim.rows(0, BATCH.0, BATCH.1)?;
            let Some(last) = rows.last().map(|row| row.key) else { break };
            adopt(to, sink, rows)?;
            claim.acknowledge(last, 0)?;
        }
        move_counts(from, to, sink)?;
    }
    Ok(())
}

/// Moves the counts of missing and dropped records. The other store immediately adds a row that reports the missing
/// records.
fn move_counts(from: &Database, to: &Database, sink: OutboxSink) -> Result<(), StoreError> {
    const FOUND: &str = "SELECT missing, missing_from, missing_until, dropped, lost FROM outbox_sinks
        WHERE sink = ?1 AND missing + dropped + lost > 0";
    const ADD: &str = "INSERT INTO outbox_sinks (sink, missing, missing_from, missing_until, dropped, lost)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (sink) DO UPDATE SET
        missing_from = CASE WHEN excluded.missing = 0 THEN missing_from WHEN missing = 0 THEN excluded.missing_from
            ELSE min(missing_from, excluded.missing_from) END,
        missing_until = max(missing_until, excluded.missing_until), missing = missing + excluded.missing,
        dropped = dropped + excluded.dropped, lost = lost + excluded.lost";
    type Counts = (i64, i64, i64, i64, i64);
    let found: Option<Counts> = from.read(|reader| {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        reader.prepare_cached(FOUND)?.query_row([sink.as_str()], row).optional()
    })?;
    let Some((missing, since, until, dropped, lost)) = found else { return Ok(()) };
    to.write(move |state| {
        state.transact(Durability::Process, 0, |transaction| {
            transaction.prepare_cached(ADD)?.execute(params![sink.as_str(), missing, since, until, dropped, lost])?;
            insert_gap(transaction, sink).map(drop)
        })
    })?;
    from.write(move |state| {
        state.transact(Durability::Process, 0, |transaction| {
            // Counts that were added since then remain.
            let sql = "UPDATE outbox_sinks SET missing = max(missing - ?2, 0), dropped = max(dropped - ?3, 0),
                lost = max(lost - ?4, 0) WHERE sink = ?1";
            transaction.prepare_cached(sql)?.execute(params![sink.as_str(), missing, dropped, lost]).map(drop)
        })
    })
}

fn adopt(to: &Database, sink: OutboxSink, rows: Vec<OutboxRow>) -> Result<(), StoreError> {
    let bytes = rows.iter().map(|row| row.body.len()).sum();
    to.write(move |state| {
        state.transact(Durability::Power, bytes, |transaction| {
            rows.iter()
                .try_for_each(|row| insert_with_id(transaction, sink, (&row.id, &row.kind), &row.body, row.time.as_millisecond()))
        })
    })
}
