//! The one thread that writes: a connection of its own, opened by the first thing to write.

use super::quarantine::beside;
use super::records::{self, MIN_PACKED_BYTES, PACKED_AT_ONCE_BYTES};
use super::{locked, schema};
use crate::ports::Durability;
use crate::protocol::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// After about this much was written, the log goes into the database as soon as nobody waits.
const CHECKPOINT_EVERY_BYTES: usize = 4 << 20;
/// After so much, somebody has to wait for it.
const CHECKPOINT_AT_LAST_BYTES: usize = 16 << 20;
/// Once nobody asked for anything for so long, what is done with is packed.
const PACK_AFTER: Duration = Duration::from_millis(30);
/// So much of a session does not wait for that.
const PACKED_AT_LAST_BYTES: usize = 256 << 10;
/// What a transaction adds to the log besides its own bytes: some pages.
const TRANSACTION_BYTES: usize = 16 << 10;

type Job = Box<dyn FnOnce(&mut Desk) + Send>;

/// The way to the writing thread. Dropping it waits until all that was asked is written.
pub(super) struct Writer {
    path: PathBuf,
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

impl Writer {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, thread: Mutex::new(None) }
    }

    /// Queues a job; it runs after all that were queued before. When the thread cannot run, the job is dropped and
    /// whoever waits for its answer learns it by the closed channel.
    pub(super) fn submit(&self, job: impl FnOnce(&mut Desk) + Send + 'static) {
        let mut thread = locked(&self.thread);
        if thread.is_none() {
            let (sender, jobs) = channel();
            let mut desk = Desk {
                path: self.path.clone(),
                connection: None,
                durability: None,
                unwritten_bytes: 0,
                unpacked: HashMap::new(),
            };
            let started = std::thread::Builder::new().name("aye-store".to_owned()).spawn(move || desk.work(&jobs));
            *thread = started.ok().map(|handle| (sender, handle));
        }
        if let Some((sender, _)) = thread.as_ref() {
            // Fails only when the thread is gone; then dropping the job tells.
            drop(sender.send(Box::new(job)));
        }
    }

    /// Runs a job and waits for what it gives; `None` when the thread is gone.
    pub(super) fn ask<T: Send + 'static>(&self, job: impl FnOnce(&mut Desk) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = channel();
        self.submit(move |desk| drop(answer.send(job(desk))));
        answered.recv().ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some((sender, handle)) = locked(&self.thread).take() {
            drop(sender);
            drop(handle.join());
        }
    }
}

/// What the writing thread has at hand.
pub(super) struct Desk {
    path: PathBuf,
    connection: Option<Connection>,
    durability: Option<Durability>,
    unwritten_bytes: usize,
    /// About how much of each session has rows of its own.
    unpacked: HashMap<SessionId, usize>,
}

impl Desk {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn work(&mut self, jobs: &Receiver<Job>) {
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
            while self.unwritten_bytes < CHECKPOINT_AT_LAST_BYTES
                && let Ok(job) = jobs.try_recv()
            {
                job(self);
            }
            if let Some(session) = self.to_pack(PACKED_AT_LAST_BYTES) {
                self.pack(&session, MIN_PACKED_BYTES);
            }
            self.checkpoint_if_due();
        }
    }

    /// A session of which there is so much to pack.
    fn to_pack(&self, least: usize) -> Option<SessionId> {
        self.unpacked.iter().find(|(_, bytes)| **bytes >= least).map(|(session, _)| session.clone())
    }

    /// Counts what was written to a session and is not packed.
    pub(super) fn wrote(&mut self, session: &SessionId, bytes: usize) {
        let unpacked = self.unpacked.entry(session.clone()).or_default();
        *unpacked = unpacked.saturating_add(bytes);
    }

    /// How much of a session that was written before is not packed is not known: it is looked for.
    pub(super) fn opened(&mut self, session: &SessionId) {
        self.wrote(session, MIN_PACKED_BYTES);
    }

    /// Packs what is left of a session that ends, as far as one go takes it.
    pub(super) fn closed(&mut self, session: &SessionId) {
        if self.unpacked.contains_key(session) {
            self.pack(session, 1);
            self.unpacked.remove(session);
        }
    }

    /// Puts the oldest records of a session together. What cannot be packed now is as safe where it lies.
    fn pack(&mut self, session: &SessionId, least: usize) {
        let bytes = self.unpacked.get(session).copied().unwrap_or_default().min(PACKED_AT_ONCE_BYTES);
        let packed =
            self.transact(Durability::Process, bytes, |transaction| records::pack_some(transaction, session.as_str(), least));
        if !matches!(packed, Ok(true)) {
            self.unpacked.remove(session);
        }
        if let Err(error) = packed {
            tracing::debug!(%error, %session, "cannot pack");
        }
    }

    /// All of `write` or nothing of it, committed as durably as asked. `bytes` is about how much it writes.
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

    /// Opened again by the next job where it failed, so that a disk that has space again is used again.
    pub(super) fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        if self.connection.is_none() {
            self.durability = None;
            // What earlier processes left in the log counts too, or many short ones would let it grow without end.
            let log = beside(&self.path, "-wal").metadata().map_or(0, |metadata| metadata.len());
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
            // Whatever it could not move now stays in the log and is moved next time.
            let outcome = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            tracing::debug!(?outcome, "checkpoint");
        }
        self.unwritten_bytes = 0;
    }
}
