//! Writer thread with a connection of its own, which starts with the first write.

use super::quarantine::with_suffix;
use super::records::{self, MIN_PACKED_BYTES, PACK_BATCH_BYTES};
use super::{lock_ignoring_poison, schema};
use crate::ports::Durability;
use crate::protocol::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of written bytes after which the write-ahead log is checkpointed once the thread is idle.
const CHECKPOINT_EVERY_BYTES: usize = 4 << 20;
/// Number of written bytes after which the write-ahead log is checkpointed even if jobs are waiting.
const FORCED_CHECKPOINT_BYTES: usize = 16 << 20;
/// Idle time after which finished records are packed.
const PACK_AFTER: Duration = Duration::from_millis(30);
/// Number of unpacked bytes in a session above which its records are packed without waiting until the thread is idle.
const FORCED_PACK_BYTES: usize = 256 << 10;
/// Space in bytes that a transaction takes in the log in addition to its data.
const TRANSACTION_BYTES: usize = 16 << 10;

type Job = Box<dyn FnOnce(&mut WriterState) + Send>;

/// Handle to the writer thread. Dropping it waits until all jobs have finished.
pub(super) struct Writer {
    path: PathBuf,
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

impl Writer {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, thread: Mutex::new(None) }
    }

    /// Adds a job to the queue, to run after all earlier jobs. If the thread cannot run, the job is dropped, which
    /// closes the channel on which the caller waits for the result.
    pub(super) fn submit(&self, job: impl FnOnce(&mut WriterState) + Send + 'static) {
        let mut thread = lock_ignoring_poison(&self.thread);
        if thread.is_none() {
            let (sender, jobs) = channel();
            let mut desk = WriterState {
                path: self.path.clone(),
                connection: None,
                durability: None,
                unwritten_bytes: 0,
                unpacked: HashMap::new(),
            };
            let started = std::thread::Builder::new().name("aye-store".to_owned()).spawn(move || desk.run_jobs(&jobs));
            *thread = started.ok().map(|handle| (sender, handle));
        }
        if let Some((sender, _)) = thread.as_ref() {
            // This fails only if the thread has ended. Dropping the job notifies the waiter.
            drop(sender.send(Box::new(job)));
        }
    }

    /// Runs a job on the writer thread and waits for its result. Returns `None` if the thread has ended.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce(&mut WriterState) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = channel();
        self.submit(move |desk| drop(answer.send(job(desk))));
        answered.recv().ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some((sender, handle)) = lock_ignoring_poison(&self.thread).take() {
            drop(sender);
            drop(handle.join());
        }
    }
}

/// State of the writer thread.
pub(super) struct WriterState {
    path: PathBuf,
    connection: Option<Connection>,
    durability: Option<Durability>,
    unwritten_bytes: usize,
    /// Approximate number of unpacked bytes in each session.
    unpacked: HashMap<SessionId, usize>,
}

impl WriterState {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn run_jobs(&mut self, jobs: &Receiver<Job>) {
        loop {
            let job = match self.to_pack(MIN_PACKED_BYTES) {
                None => jobs.recv().ok(),
                Some(session) => match jobs.recv_timeout(PACK_AFTER) {
                    Ok(job) => Some(job),
                    Err(RecvTimeoutError::Disconnected) => None,
                    Err(RecvTimeoutError::Timeout) => {
                        self.pack(&session, MIN_PACKED_BYTES);
                        self.checkpoint_if_due();
                        continue;
                    }
                },
            };
            let Some(job) = job else { break };
            job(self);
            while self.unwritten_bytes < FORCED_CHECKPOINT_BYTES
                && let Ok(job) = jobs.try_recv()
            {
                job(self);
            }
            if let Some(session) = self.to_pack(FORCED_PACK_BYTES) {
                self.pack(&session, MIN_PACKED_BYTES);
            }
            self.checkpoint_if_due();
        }
    }

    /// Returns a session that has at least this many bytes to be packed, if there is one.
    fn to_pack(&self, least: usize) -> Option<SessionId> {
        self.unpacked.iter().find(|(_, bytes)| **bytes >= least).map(|(session, _)| session.clone())
    }

    /// Adds `bytes` to the session's number of unpacked bytes.
    pub(super) fn on_written(&mut self, session: &SessionId, bytes: usize) {
        let unpacked = self.unpacked.entry(session.clone()).or_default();
        *unpacked = unpacked.saturating_add(bytes);
    }

    /// Registers a session that was just opened, whose number of unpacked bytes is not known yet.
    pub(super) fn on_session_opened(&mut self, session: &SessionId) {
        self.on_written(session, MIN_PACKED_BYTES);
    }

    /// When a session is closed, packs one batch of its remaining records.
    pub(super) fn on_session_closed(&mut self, session: &SessionId) {
        if self.unpacked.contains_key(session) {
            self.pack(session, 1);
            self.unpacked.remove(session);
        }
    }

    /// Packs a session's oldest records. Those that cannot be packed now are left unpacked.
    fn pack(&mut self, session: &SessionId, least: usize) {
        let bytes = self.unpacked.get(session).copied().unwrap_or_default().min(PACK_BATCH_BYTES);
        let packed =
            self.transact(Durability::Process, bytes, |transaction| records::pack_some(transaction, session.as_str(), least));
        if !matches!(packed, Ok(true)) {
            self.unpacked.remove(session);
        }
        if let Err(error) = packed {
            tracing::debug!(%error, %session, "cannot pack");
        }
    }

    /// Runs `write` in a transaction with the given durability. `bytes` is the approximate size of the transaction.
    pub(super) fn transact<T>(
        &mut self,
        durability: Durability,
        bytes: usize,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let wanted = Some(durability);
        let known = self.durability;
        let connection = self.connection()?;
        if known != wanted {
            connection.execute_batch(match durability {
                Durability::Power => "PRAGMA synchronous = FULL",
                Durability::Process => "PRAGMA synchronous = NORMAL",
            })?;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = write(&transaction)?;
        transaction.commit()?;
        self.durability = wanted;
        self.unwritten_bytes = self.unwritten_bytes.saturating_add(bytes + TRANSACTION_BYTES);
        Ok(value)
    }

    /// Returns the connection, reopening it after a failure so that writing works again once the disk has space.
    pub(super) fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        if self.connection.is_none() {
            self.durability = None;
            // Include the log of earlier processes. Otherwise, many short processes would let the log grow without
            // limit.
            let log = with_suffix(&self.path, "-wal").metadata().map_or(0, |metadata| metadata.len());
            self.unwritten_bytes = usize::try_from(log).unwrap_or(usize::MAX);
        }
        match self.connection {
            Some(ref mut connection) => Ok(connection),
            None => Ok(self.connection.insert(schema::connect(&self.path)?)),
        }
    }

    fn checkpoint_if_due(&mut self) {
        if self.unwritten_bytes < CHECKPOINT_EVERY_BYTES {
            return;
        }
        if let Some(connection) = &self.connection {
            // Pages that cannot be moved now remain in the log until the next checkpoint.
            let outcome = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            tracing::debug!(?outcome, "checkpoint");
        }
        self.unwritten_bytes = 0;
    }
}
