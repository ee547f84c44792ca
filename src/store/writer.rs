//! The one thread that writes: a connection of its own, opened by the first thing to write.

use super::aside::beside;
use super::{locked, schema};
use crate::ports::Durability;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// After about this much was written, the log goes into the database as soon as nobody waits.
const CHECKPOINT_EVERY_BYTES: usize = 4 << 20;
/// After so much, somebody has to wait for it.
const CHECKPOINT_AT_LAST_BYTES: usize = 16 << 20;
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
            let mut desk = Desk { path: self.path.clone(), connection: None, durability: None, unwritten_bytes: 0 };
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
}

impl Desk {
    fn work(&mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            job(self);
            while self.unwritten_bytes < CHECKPOINT_AT_LAST_BYTES
                && let Ok(job) = jobs.try_recv()
            {
                job(self);
            }
            self.checkpoint_if_due();
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
    fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
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
