//! Outbox, which contains rows to be delivered to services. Rows are written in the same transaction as the records
//! that they describe, and deleted once the service has acknowledged them.

mod delivery;
mod insertion;
mod removal;
mod status;
mod transfer;

pub(super) use delivery::claim;
pub(crate) use delivery::{ClaimResult, OutboxClaim};
pub(super) use insertion::{insert, is_full};
pub(crate) use removal::Removal;
pub(super) use removal::remove_rows;
pub(super) use status::status;
pub(crate) use status::{SinkStatus, stored_sinks};
pub(super) use transfer::transfer;

use super::StoreError;
use super::database::Database;
use super::logged_decision::LoggedDecision;
use crate::ports::Durability;
use crate::session::{CallChange, Change};
use std::sync::Arc;

/// Kind of a row that reports how many records are missing because the outbox was full.
pub(crate) const GAP: &str = "gap";

/// Service to which rows are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum OutboxSink {
    Approvals,
    Audit,
    Sessions,
    Telemetry,
    Workspace,
}

impl OutboxSink {
    pub(crate) const ALL: [Self; 5] = [Self::Approvals, Self::Audit, Self::Sessions, Self::Telemetry, Self::Workspace];

    /// Returns the service's name, as used in the configuration and the store.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Audit => "audit",
            Self::Sessions => "sessions",
            Self::Telemetry => "telemetry",
            Self::Workspace => "workspace",
        }
    }

    /// Returns whether the service is sent rows that report missing records.
    pub(crate) fn reports_missing(self) -> bool {
        matches!(self, Self::Approvals | Self::Audit)
    }

    /// Returns whether this sink's rows may be dropped, oldest first, when the outbox is full.
    pub(crate) fn may_drop(self) -> bool {
        self == Self::Telemetry
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sink| sink.as_str() == name)
    }
}

/// Set of outbox sinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SinkSet([bool; OutboxSink::ALL.len()]);

impl SinkSet {
    #[cfg(test)]
    pub(crate) const ALL: Self = Self([true; OutboxSink::ALL.len()]);

    pub(crate) fn new(sinks: &[OutboxSink]) -> Self {
        Self(OutboxSink::ALL.map(|sink| sinks.contains(&sink)))
    }

    pub(crate) fn contains(self, sink: OutboxSink) -> bool {
        OutboxSink::ALL.iter().zip(self.0).any(|(known, is_contained)| is_contained && *known == sink)
    }
}

/// Data for a service that has not been stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxEntry {
    pub sink: OutboxSink,
    /// Kind of data, as defined by the sink.
    pub kind: &'static str,
    pub body: Vec<u8>,
}

/// Data for a service that has been stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxRow {
    /// Position of the row. Each sink's rows are delivered in this order.
    pub key: i64,
    /// Idempotency key, which is the same for all attempts to deliver this row and different for every other row.
    pub id: String,
    /// Time at which the row was committed.
    pub time: jiff::Timestamp,
    pub kind: String,
    pub body: Vec<u8>,
}

/// Size limit for the rows of all configured sinks, and what happens when it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutboxLimit {
    pub bytes: u64,
    /// Configured sinks. Rows of other sinks are retained but do not count toward the limit: they are never delivered,
    /// so they would block the configured sinks permanently.
    pub sinks: SinkSet,
    /// Whether a session pauses before its next effect when the limit is reached. Otherwise, it continues, and the
    /// outbox counts the records that are missing.
    pub pauses: bool,
}

/// Converts session changes to outbox entries. Called in record order and, after a failed commit, once more with the
/// same changes.
pub(crate) trait OutboxFeed: Send + Sync {
    /// Returns the entries for changes that are committed together at time `now`.
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry>;

    /// Returns the entries for a logged decision.
    fn decision(&self, decision: &LoggedDecision) -> Vec<OutboxEntry>;
}

/// Outbox used by the journal of a single session.
#[derive(Clone)]
pub(crate) struct SessionOutbox {
    pub feed: Arc<dyn OutboxFeed>,
    pub limit: OutboxLimit,
    /// Called on the writer thread after rows have been committed, with `false` if some rows could not be stored. Must
    /// not block.
    pub committed: Arc<dyn Fn(bool) + Send + Sync>,
}

/// Stores entries that do not belong to a record. If the outbox is full, entries that cannot be stored are counted as
/// missing. Returns whether every entry that must not be dropped was stored.
pub(super) fn enqueue(database: &Database, entries: Vec<OutboxEntry>, limit: OutboxLimit) -> Result<bool, StoreError> {
    if entries.is_empty() {
        return Ok(true);
    }
    let bytes = entries.iter().map(|entry| entry.body.len()).sum();
    database.write(move |state| {
        state.transact(Durability::Process, bytes, |transaction| {
            insert(transaction, &entries, limit, jiff::Timestamp::now().as_millisecond())
        })
    })
}

/// Returns whether any of the changes starts an effect, which must wait while the outbox is full.
pub(super) fn starts_effect(changes: &[Change<'_>]) -> bool {
    let is_start = |change: &Change<'_>| {
        matches!(
            change,
            Change::Call { change: CallChange::Started { .. } | CallChange::PreviewStarted, .. }
                | Change::UserCommandStarted { .. }
        )
    };
    changes.iter().any(is_start)
}
