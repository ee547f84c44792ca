//! Transfer of rows to another store, used when the store of a run is about to be deleted or is no longer used.

use super::delivery::{ClaimResult, claim};
use super::insertion::insert_with_id;
use super::{OutboxRow, OutboxSink};
use crate::ports::Durability;
use crate::store::StoreError;
use crate::store::database::Database;
use std::sync::Arc;

/// Maximum number and size in bytes of rows that are moved at a time.
const BATCH: (usize, usize) = (256, 1 << 20);

/// Moves all rows that no process is delivering to another store. Their idempotency keys do not change. After a crash
/// in between, both stores may contain a row.
pub(in super::super) fn transfer(from: &Arc<Database>, to: &Database) -> Result<(), StoreError> {
    for sink in OutboxSink::ALL {
        while let ClaimResult::Taken(claim) = claim(from, sink, true)? {
            let rows = claim.rows(0, BATCH.0, BATCH.1)?;
            let Some(last) = rows.last().map(|row| row.key) else { break };
            adopt(to, sink, rows)?;
            claim.acknowledge(last, 0)?;
        }
    }
    Ok(())
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
