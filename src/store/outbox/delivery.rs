//! Delivery of outbox rows. Each sink has at most one running owner, which delivers its rows in order and acknowledges
//! them.

use super::insertion::{delete_through, insert_gap};
use super::{OutboxRow, OutboxSink};
use crate::ports::Durability;
use crate::store::StoreError;
use crate::store::database::Database;
use crate::sys::instance::Instance;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum length of a stored error message, in characters.
const ERROR_CHARS: usize = 300;

/// Owner of a sink, as stored in the sink's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    #[serde(flatten)]
    instance: Instance,
    /// ID that distinguishes several claims made by the same process.
    claim: String,
}

/// Exclusive right to deliver a sink's rows, which lasts until it is released or dropped, or until the process ends.
pub(crate) struct OutboxClaim {
    database: Arc<Database>,
    sink: OutboxSink,
    owner: String,
    is_released: bool,
}

/// Outcome of trying to claim a sink.
pub(crate) enum ClaimResult {
    Taken(OutboxClaim),
    /// The sink has no rows to be delivered.
    Empty,
    /// The running process with this ID is already delivering the rows.
    HeldBy(u32),
    /// The last attempt failed, and the next one is not due until this time.
    NotBefore(jiff::Timestamp),
}

/// Outcome of trying to claim a sink inside a transaction.
enum ClaimCheck {
    Taken,
    Empty,
    HeldBy(u32),
    NotBefore(i64),
}

/// Claims a sink for delivery. With `at_once`, claims it even if the last attempt failed and the next one is not due
/// yet.
pub(in super::super) fn claim(database: &Arc<Database>, sink: OutboxSink, at_once: bool) -> Result<ClaimResult, StoreError> {
    let owner = Owner { instance: Instance::current(), claim: uuid::Uuid::new_v4().simple().to_string() };
    let owner = serde_json::to_string(&owner).unwrap_or_default();
    let (noted, now) = (owner.clone(), jiff::Timestamp::now().as_millisecond());
    let check = database.write(move |state| {
        state.transact(Durability::Process, 0, |transaction| check(transaction, sink, &noted, at_once, now))
    })?;
    Ok(match check {
        ClaimCheck::Taken => ClaimResult::Taken(OutboxClaim { database: database.clone(), sink, owner, is_released: false }),
        ClaimCheck::Empty => ClaimResult::Empty,
        ClaimCheck::HeldBy(pid) => ClaimResult::HeldBy(pid),
        ClaimCheck::NotBefore(ms) => ClaimResult::NotBefore(jiff::Timestamp::from_millisecond(ms).unwrap_or_default()),
    })
}

fn check(transaction: &Transaction<'_>, sink: OutboxSink, owner: &str, at_once: bool, now: i64) -> rusqlite::Result<ClaimCheck> {
    let found: Option<(bool, Option<String>, i64)> = transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.sink = q.sink), owner, next_attempt FROM outbox_sinks q WHERE sink = ?1")?
        .query_row([sink.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((has_rows, holder, next)) = found else { return Ok(ClaimCheck::Empty) };
    if !has_rows {
        return Ok(ClaimCheck::Empty);
    }
    let holder = holder.and_then(|json| serde_json::from_str::<Owner>(&json).ok());
    if let Some(holder) = holder.filter(|holder| holder.instance.is_alive()) {
        return Ok(ClaimCheck::HeldBy(holder.instance.pid));
    }
    if next > now && !at_once {
        return Ok(ClaimCheck::NotBefore(next));
    }
    transaction.prepare_cached("UPDATE outbox_sinks SET owner = ?2 WHERE sink = ?1")?.execute(params![sink.as_str(), owner])?;
    Ok(ClaimCheck::Taken)
}

impl OutboxClaim {
    /// Returns the oldest rows after the key `after`: at most `most` rows, with a total size of at most `bytes`. A row
    /// that is larger than `bytes` is returned on its own.
    pub(crate) fn rows(&self, after: i64, most: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let sink = self.sink;
        self.database.read(|reader| {
            let mut statement = reader
                .prepare_cached("SELECT key, id, time, kind, body FROM outbox WHERE sink = ?1 AND key > ?2 ORDER BY key")?;
            let mut rows = statement.query(params![sink.as_str(), after])?;
            let (mut found, mut size) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let body: Vec<u8> = row.get(4)?;
                size += body.len();
                if found.len() >= most || size > bytes && !found.is_empty() {
                    break;
                }
                let time = jiff::Timestamp::from_millisecond(row.get(2)?).unwrap_or_default();
                found.push(OutboxRow { key: row.get(0)?, id: row.get(1)?, time, kind: row.get(3)?, body });
            }
            Ok(found)
        })
    }

    /// Deletes the rows up to and including this key, which the service has acknowledged. `dropped` is the number of
    /// rows among them that the service rejected permanently.
    pub(crate) fn acknowledge(&self, key: i64, dropped: u64) -> Result<(), StoreError> {
        let (sink, now) = (self.sink, jiff::Timestamp::now().as_millisecond());
        let dropped = i64::try_from(dropped).unwrap_or(i64::MAX);
        self.database.write(move |state| {
            state.transact(Durability::Process, 0, |transaction| {
                delete_through(transaction, sink, key)?;
                transaction
                    .prepare_cached(
                        "UPDATE outbox_sinks SET acknowledged = max(acknowledged, ?2), delivered = ?3, attempts = 0, next_attempt = 0,
                         error = NULL, dropped = dropped + ?4 WHERE sink = ?1",
                    )?
                    .execute(params![sink.as_str(), key, now, dropped])?;
                // There is space again, so the gap row need not wait for the next record.
                insert_gap(transaction, sink)?;
                Ok(())
            })
        })
    }

    /// Records a failed attempt, and when to make the next one.
    pub(crate) fn fail(&self, error: &str, next: jiff::Timestamp) -> Result<(), StoreError> {
        let (sink, next) = (self.sink, next.as_millisecond());
        let error: String = error.chars().map(|c| if c.is_control() { ' ' } else { c }).take(ERROR_CHARS).collect();
        self.database.write(move |state| {
            state.transact(Durability::Process, 0, |transaction| {
                transaction
                    .prepare_cached(
                        "UPDATE outbox_sinks SET attempts = attempts + 1, next_attempt = ?2, error = ?3 WHERE sink = ?1",
                    )?
                    .execute(params![sink.as_str(), next, error])
                    .map(drop)
            })
        })
    }

    /// Returns the number of attempts that have failed since the last acknowledgement.
    pub(crate) fn attempts(&self) -> Result<u32, StoreError> {
        let sink = self.sink;
        let attempts: i64 = self.database.read(|reader| {
            reader
                .prepare_cached("SELECT attempts FROM outbox_sinks WHERE sink = ?1")?
                .query_row([sink.as_str()], |row| row.get(0))
        })?;
        Ok(u32::try_from(attempts).unwrap_or(u32::MAX))
    }

    /// Releases the sink if it has no rows that are due. Otherwise, returns the claim, to ensure that no row is left
    /// waiting without a process to deliver it.
    pub(crate) fn release_if_idle(mut self) -> Result<Option<Self>, StoreError> {
        let (sink, owner, now) = (self.sink, self.owner.clone(), jiff::Timestamp::now().as_millisecond());
        let released = self.database.write(move |state| {
            state.transact(Durability::Process, 0, |transaction| {
                transaction
                    .prepare_cached(
                        "UPDATE outbox_sinks SET owner = NULL WHERE sink = ?1 AND owner = ?2
                         AND (next_attempt > ?3 OR NOT EXISTS (SELECT 1 FROM outbox WHERE sink = ?1))",
                    )?
                    .execute(params![sink.as_str(), owner, now])
            })
        })?;
        if released == 0 {
            return Ok(Some(self));
        }
        self.is_released = true;
        Ok(None)
    }
}

impl Drop for OutboxClaim {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let (sink, owner) = (self.sink, std::mem::take(&mut self.owner));
        self.database.writer.submit(move |state| {
            let released = state.transact(Durability::Process, 0, |transaction| {
                transaction
                    .prepare_cached("UPDATE outbox_sinks SET owner = NULL WHERE sink = ?1 AND owner = ?2")?
                    .execute(params![sink.as_str(), owner])
            });
            // The end of the process also releases the claim.
            if let Err(error) = released {
                tracing::debug!(%error, sink = sink.as_str(), "cannot release the claim on the outbox");
            }
        });
    }
}
