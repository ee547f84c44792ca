//! Eviction of the oldest snapshots, and of baselines that belong to the oldest sessions.

use rusqlite::{OptionalExtension, Transaction};

/// Maximum number of sessions with stored baselines. Beyond it, those whose changes are oldest are evicted.
const SESSIONS: i64 = 100;
/// Number of most recent sessions that are never evicted, regardless of size.
const NEWEST_SESSIONS: i64 = 10;
/// Tables that contain per-session data.
const SESSION_TABLES: [&str; 5] = ["baselines", "spans", "directories", "gaps", "tracked"];

/// Deletes the oldest snapshots of any root, and then baselines of the oldest sessions, until the rest fit within
/// `all_bytes`. Never deletes snapshots numbered `keep` or higher. Returns whether the limit was exceeded.
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

/// Deletes contents that neither a snapshot nor a session refers to.
pub(super) fn forget_contents(transaction: &Transaction<'_>) -> rusqlite::Result<usize> {
    transaction.execute(
        "DELETE FROM contents WHERE id NOT IN (SELECT content FROM versions WHERE content IS NOT NULL)
         AND id NOT IN (SELECT content FROM baselines WHERE content IS NOT NULL)",
        [],
    )
}

/// Evicts data of sessions beyond the limit, starting with those whose changes are oldest.
pub(super) fn evict_oldest(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let old = "SELECT session FROM tracked ORDER BY number DESC LIMIT -1 OFFSET ?1";
    // The list of sessions is deleted last, because the other deletions use it.
    for table in SESSION_TABLES {
        transaction.execute(&format!("DELETE FROM {table} WHERE session IN ({old})"), [SESSIONS])?;
    }
    Ok(())
}

/// Evicts data of the session whose changes are oldest, unless it is among the most recent sessions. Returns whether a
/// session was evicted.
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
