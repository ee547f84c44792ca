//! Outbox: rows for services. They are written in the transaction of the records that they describe, and deleted once a
//! service has acknowledged them.

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

/// Kind of the row that reports records missing because the outbox was full.
pub(crate) const GAP: &str = "gap";

/// Service that receives rows.
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

    /// Returns the name in the settings and the store.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Audit => "audit",
            Self::Sessions => "sessions",
            Self::Telemetry => "telemetry",
            Self::Workspace => "workspace",
        }
    }

    /// Returns whether the service receives a record about rows that are missing.
    pub(crate) fn reports_missing(self) -> bool {
        matches!(self, Self::Approvals | Self::Audit)
    }

    /// Returns whether rows of this sink may be dropped, oldest first, when the outbox is full.
    pub(crate) fn may_drop(self) -> bool {
        self == Self::Telemetry
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sink| sink.as_str() == name)
    }
}

/// Set of sinks.
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

/// Data for a service that is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxEntry {
    pub sink: OutboxSink,
    /// Kind of the data, as defined by the sink.
    pub kind: &'static str,
    pub body: Vec<u8>,
}

/// Stored data for a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxRow {
    /// Position. The rows of a sink are delivered in this order.
    pub key: i64,
    /// Idempotency key: identical for every attempt to deliver this row, and different for every other row.
    pub id: String,
    /// Time of the transaction.
    pub time: jiff::Timestamp,
    pub kind: String,
    pub body: Vec<u8>,
}

/// Limit on the size of the rows of the configured sinks, and the behaviour when it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutboxLimit {
    pub bytes: u64,
    /// Configured sinks. The rows of other sinks stay, but do not count: nobody delivers them, so they would block the configured
    /// ones for good.
    pub sinks: SinkSet,
    /// Whether a session pauses before its next effect when the limit is reached. Otherwise it continues, and the
    /// outbox counts the missing records.
    pub pauses: bool,
}

/// Converts the changes of one session to rows. It is called in the order of the records. After a failed commit, it is
/// called again with the same changes.
pub(crate) trait OutboxFeed: Send + Sync {
    /// Returns the data for changes that are committed together at `now`.
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry>;

    /// Returns the data for a logged decision.
    fn decision(&self, decision: &LoggedDecision) -> Vec<OutboxEntry>;
}

/// Outbox of one session's journal.
#[derive(Clone)]
pub(crate) struct SessionOutbox {
    pub feed: Arc<dyn OutboxFeed>,
    pub limit: OutboxLimit,
    /// Called in the writer thread after rows were committed, with `false` if not all of them were stored. Must not
    /// block.
    pub committed: Arc<dyn Fn(bool) + Send + Sync>,
}

/// Stores data without a record. Returns whether all data that must not be dropped was stored. If the outbox is full,
/// the rest is counted as missing.
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

/// Returns whether one of the changes starts an effect, which must wait while the outbox is full.
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
