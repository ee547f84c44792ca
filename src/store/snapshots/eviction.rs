//! Eviction of the oldest snapshots and of the baselines of the oldest sessions.

use rusqlite::{OptionalExtension, Transaction};

/// Maximum number of sessions whose baselines are stored. Sessions with the earliest changes are evicted first.
const SESSIONS: i64 = 100;
/// Number of latest sessions that are never evicted, regardless of their size.
const NEWEST_SESSIONS: i64 = 10;
/// Tables with data of a session.
const SESSION_TABLES: [&str; 5] = ["baselines", "spans", "directories", "gaps", "tracked"];

/// Deletes the oldest snapshots of any root until the remaining contents fit, but never the snapshot just taken.
pub(super) fn over_quota(transaction: &Transaction<'_>, all_bytes: u64, keep: i64) -> rusqlite::Result<bool> {
    let total = |transaction: &Transaction<'_>| {
        transaction.query_row("SELECT coalesce(sum(bytes), 0) FROM contents", [], |row| row.get::<_, i64>(0))
    };
    let mut any = false;
    while total(transaction)?.unsigned_abs() > all_bytes {
        let oldest = transaction
            .query_row("SELECT number, root FROM snapshots WHERE number < ?1 ORDER BY number LIMIT 1", [keep], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()?;
        any = true;
        let Some((number, root)) = oldest else {
            if !evict_one(transaction)? {
                break;
            }
            forget_contents(transaction)?;
            continue;
        };
        transaction.execute("DELETE FROM snapshots WHERE number = ?1", [number])?;
        let next = transaction
            .query_row("SELECT min(number) FROM snapshots WHERE root = ?1", [root], |row| row.get::<_, Option<i64>>(0))?;
        match next {
            Some(next) => transaction.execute("DELETE FROM versions WHERE root = ?1 AND until <= ?2", [root, next])?,
            None => transaction.execute("DELETE FROM versions WHERE root = ?1", [root])?,
        };
        forget_contents(transaction)?;
    }
    Ok(any)
}

/// Deletes contents that no snapshot or session references.
pub(super) fn forget_contents(transaction: &Transaction<'_>) -> rusqlite::Result<usize> {
    transaction.execute(
        "DELETE FROM contents WHERE id NOT IN (SELECT content FROM versions WHERE content IS NOT NULL)
         AND id NOT IN (SELECT content FROM baselines WHERE content IS NOT NULL)",
        [],
    )
}

/// Evicts the data of sessions beyond the limit, those with the earliest changes first.
pub(super) fn evict_oldest(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let old = "SELECT session FROM tracked ORDER BY number DESC LIMIT -1 OFFSET ?1";
    // The list of old sessions is deleted last.
    for table in SESSION_TABLES {
        transaction.execute(&format!("DELETE FROM {table} WHERE session IN ({old})"), [SESSIONS])?;
    }
    Ok(())
}

/// Evicts the data of the session with the earliest changes, unless it is one of the latest sessions.
fn evict_one(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let sql = "SELECT session FROM (SELECT session, number FROM tracked ORDER BY number DESC LIMIT -1 OFFSET ?1)
               ORDER BY number LIMIT 1";
    let oldest: Option<String> = transaction.query_row(sql, [NEWEST_SESSIONS], |row| row.get(0)).optional()?;
    let Some(oldest) = oldest else { return Ok(false) };
    forget(transaction, &oldest)?;
    Ok(true)
}

pub(super) fn forget(transaction: &Transaction<'_>, session: &str) -> rusqlite::Result<()> {
    for table in SESSION_TABLES {
        transaction.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [session])?;
    }
    Ok(())
}
