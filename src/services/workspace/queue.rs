//! Queue of sessions to be pushed. Its entries are outbox rows, which are committed together with the end of a task.

use super::bucket::Bucket;
use super::error::WorkspaceProblem;
use super::local::LocalSessions;
use super::machine::Machine;
use super::push::{PushOptions, push};
use crate::ports::BoxFuture;
use crate::protocol::{Problem, SessionId};
use crate::services::delivery::{Receiver, SendFailure, SendResult};
use crate::session::Change;
use crate::store::{LoggedDecision, OutboxEntry, OutboxFeed, OutboxRow, OutboxSink};
use crate::transfer::import::{is_an_id, is_there};
use jiff::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Kind of an outbox row for a session whose history has changed. The row body is the session ID.
const HISTORY: &str = "history";
/// Maximum number and total size in bytes of rows to read at a time.
pub(crate) const BATCH: (usize, usize) = (64, 64 << 10);

/// Signal from a session to the task that uploads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskSignal {
    /// A task or user command is starting. The number makes every signal distinct.
    Started(u64),
    /// A row was committed to the queue.
    Queued(u64),
}

/// Outbox feed that adds a row whenever a task is paused or ends, or a user command ends.
pub(crate) struct TaskFeed {
    session: SessionId,
    signals: watch::Sender<Option<TaskSignal>>,
    /// Whether the current transaction adds a row.
    pending: AtomicBool,
}

impl TaskFeed {
    pub(crate) fn new(session: SessionId, signals: watch::Sender<Option<TaskSignal>>) -> Arc<Self> {
        Arc::new(Self { session, signals, pending: AtomicBool::new(false) })
    }

    /// Wakes the upload task if the transaction added a row.
    pub(crate) fn on_commit(&self) {
        if self.pending.swap(false, Ordering::AcqRel) {
            self.signal(TaskSignal::Queued);
        }
    }

    fn signal(&self, signal: fn(u64) -> TaskSignal) {
        self.signals.send_modify(|last| {
            let number = match last {
                Some(TaskSignal::Started(number) | TaskSignal::Queued(number)) => *number,
                None => 0,
            };
            *last = Some(signal(number.wrapping_add(1)));
        });
    }
}

impl OutboxFeed for TaskFeed {
    fn changes(&self, changes: &[Change<'_>], _now: Timestamp) -> Vec<OutboxEntry> {
        let starts = |change: &Change<'_>| {
            matches!(change, Change::TaskStarted { .. } | Change::UserCommandStarted { .. } | Change::Continued)
        };
        let ends = |change: &Change<'_>| {
            matches!(change, Change::TaskEnded { .. } | Change::UserCommandEnded { .. } | Change::Paused { .. })
        };
        if changes.iter().any(ends) {
            self.pending.store(true, Ordering::Release);
            let body = self.session.as_str().as_bytes().to_vec();
            return vec![OutboxEntry { sink: OutboxSink::Workspace, kind: HISTORY, body }];
        }
        if changes.iter().any(starts) {
            self.signal(TaskSignal::Started);
        }
        Vec::new()
    }

    fn decision(&self, _: &LoggedDecision) -> Vec<OutboxEntry> {
        Vec::new()
    }
}

/// Outcome of pushing the sessions that some rows refer to.
#[derive(Debug, Default)]
pub(crate) struct PushedRows {
    /// Number of rows, counted from the first one, that need no further attempt.
    pub done: usize,
    /// Errors for sessions that were not pushed and for which another attempt would not help.
    pub conflicts: Vec<Problem>,
    /// Error because of which the remaining rows need another attempt.
    pub failure: Option<Problem>,
}

/// Pushes every session that the rows refer to, each of them once.
pub(crate) async fn push_rows(bucket: &Bucket, local: &LocalSessions, machine: &Machine, rows: &[OutboxRow]) -> PushedRows {
    let (mut result, mut pushed) = (PushedRows::default(), HashSet::new());
    for row in rows {
        let id = String::from_utf8_lossy(&row.body).into_owned();
        // Another version of aye may write rows of other kinds, and a deleted session need not be pushed.
        if row.kind == HISTORY && is_an_id(&id) && pushed.insert(id.clone()) {
            let id = SessionId::new(id);
            if is_there(&local.store, &id)
                && let Err(error) = push(bucket, local, &id, machine, PushOptions::default()).await
            {
                if matches!(error.kind, WorkspaceProblem::Temporary | WorkspaceProblem::Settings) {
                    result.failure = Some(error.problem);
                    return result;
                }
                result.conflicts.push(error.problem);
            }
        }
        result.done += 1;
    }
    result
}

/// Outbox receiver that pushes the queued sessions.
pub(crate) struct PushQueue {
    pub bucket: Bucket,
    pub local: LocalSessions,
    pub machine: Machine,
}

impl Receiver for PushQueue {
    fn sink(&self) -> OutboxSink {
        OutboxSink::Workspace
    }

    fn batch(&self) -> (usize, usize) {
        BATCH
    }

    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult> {
        Box::pin(async move {
            let PushedRows { done, conflicts, failure } = push_rows(&self.bucket, &self.local, &self.machine, rows).await;
            for conflict in &conflicts {
                tracing::warn!(conflict = conflict.one_line(), "cannot push a session");
            }
            let failure = failure.map(|problem| SendFailure::new(problem.one_line()));
            SendResult { done, rejected: conflicts.len() as u64, failure }
        })
    }
}
