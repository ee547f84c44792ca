//! Byte transport for a client, consisting of a reader thread, a writer thread, and bounded queues between them and the
//! session.

use crate::headless::lines;
use crate::serve::{BoundedLine, Lines, Outgoing};
use serde::Serialize;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of received lines that are buffered. Once the buffer is full, the client must wait.
const LINES_WAITING: usize = 2;
/// Number of unwritten bytes above which model output and requests are delayed.
const BACKLOG_BYTES: usize = 1 << 20;
/// Number of unwritten bytes above which the client is disconnected. Events are still sent up to this limit.
const MAX_BACKLOG_BYTES: usize = 64 << 20;
/// Maximum time to wait until the last lines have been written.
const FLUSH: Duration = Duration::from_secs(2);

/// A client, as seen by the session.
pub(crate) struct ServeClient {
    pub lines: mpsc::Receiver<BoundedLine>,
    pub out: Outbox,
}

/// Messages queued for the client.
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    /// Number of unwritten bytes.
    backlog: watch::Sender<usize>,
    /// Token that is cancelled when output is no longer possible.
    gone: CancellationToken,
    /// Token that is cancelled when everything has been written or a write has failed.
    done: CancellationToken,
}

impl ServeClient {
    pub(crate) fn stdio() -> io::Result<Self> {
        Self::start(io::stdin(), io::stdout())
    }

    pub(crate) fn from_stream(stream: UnixStream) -> io::Result<Self> {
        Self::start(stream.try_clone()?, Socket(stream))
    }

    fn start(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> io::Result<Self> {
        let (hand_on, lines) = mpsc::channel(LINES_WAITING);
        let (queue, queued) = mpsc::unbounded_channel();
        let (backlog, _) = watch::channel(0);
        let (gone, done) = (CancellationToken::new(), CancellationToken::new());
        // Separate threads are used, so that a blocked read or write delays nothing, not even the end of the process.
        thread_builder("aye-read").spawn(move || read(from, &hand_on))?;
        let out = Outbox { queue, backlog: backlog.clone(), gone: gone.clone(), done: done.clone() };
        thread_builder("aye-write").spawn(move || {
            if write(to, queued, &backlog).is_err() {
                gone.cancel();
            }
            done.cancel();
        })?;
        Ok(Self { lines, out })
    }
}

impl Outbox {
    /// Queues a message without waiting. A client that does not read its messages is eventually disconnected.
    pub(crate) fn send(&self, message: &impl Serialize) {
        let mut bytes = Vec::new();
        if let Err(error) = lines::write(&mut bytes, message) {
            return tracing::error!(%error, "cannot serialize a message");
        }
        let waits = *self.backlog.borrow() + bytes.len();
        if waits > MAX_BACKLOG_BYTES {
            return self.gone.cancel();
        }
        self.backlog.send_modify(|backlog| *backlog += bytes.len());
        if self.queue.send(bytes).is_err() {
            self.gone.cancel();
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        *self.backlog.borrow() <= BACKLOG_BYTES
    }

    /// Waits until the result of [`Self::has_room`] differs from `had_room`.
    pub(crate) async fn wait_for_room_change(&self, had_room: bool) {
        let has = |backlog: &usize| *backlog <= BACKLOG_BYTES;
        // Cannot fail, because `self` owns the sender.
        let _ = self.backlog.subscribe().wait_for(|backlog| has(backlog) != had_room).await;
    }

    pub(crate) async fn wait_for_disconnect(&self) {
        self.gone.cancelled().await;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Waits, for a limited time, until the last lines have been written.
    pub(crate) async fn close(self) {
        let Self { queue, done, .. } = self;
        drop(queue);
        // Messages that the client does not read are dropped.
        let _ = tokio::time::timeout(FLUSH, done.cancelled()).await;
    }
}

/// Socket that is shut down when this writer is dropped.
struct Socket(UnixStream);

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // This also ends the reader thread.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// Tells a rejected client the reason, if it can be sent without blocking.
pub(crate) fn refuse(stream: UnixStream, why: &Outgoing) {
    let mut bytes = Vec::new();
    if lines::write(&mut bytes, why).is_ok() && stream.set_nonblocking(true).is_ok() {
        let _ = (&stream).write_all(&bytes);
    }
}

fn thread_builder(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

fn read(mut from: impl Read, to: &mpsc::Sender<BoundedLine>) {
    let mut lines = Lines::default();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let found = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => lines.push(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for line in found {
            if to.blocking_send(line).is_err() {
                return;
            }
        }
    }
    if let Some(line) = lines.end() {
        // Fails only if the receiver was dropped.
        let _ = to.blocking_send(line);
    }
}

fn write(mut to: impl Write, mut queue: mpsc::UnboundedReceiver<Vec<u8>>, backlog: &watch::Sender<usize>) -> io::Result<()> {
    while let Some(mut bytes) = queue.blocking_recv() {
        // All messages that have arrived in the meantime are written at once.
        while bytes.len() < PIECE_BYTES
            && let Ok(more) = queue.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        to.write_all(&bytes)?;
        to.flush()?;
        backlog.send_modify(|backlog| *backlog -= bytes.len());
    }
    Ok(())
}
