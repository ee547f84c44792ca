//! The bytes of one client: a thread that reads, a thread that writes, and what waits between them and the session, bounded.

use crate::headless::lines;
use crate::serve::{Line, Lines, Outgoing};
use serde::Serialize;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Lines that were read and not looked at; the client waits with more.
const LINES_WAITING: usize = 2;
/// So much may wait to be written before nothing more is asked of the model and no request is looked at.
const BACKLOG_BYTES: usize = 1 << 20;
/// What happens all the same is told up to here; a client that did not read that much is given up.
const MAX_BACKLOG_BYTES: usize = 64 << 20;
/// How long the last lines may take to be written.
const FLUSH: Duration = Duration::from_secs(2);

/// A client, as the session's side has it.
pub struct Client {
    pub lines: mpsc::Receiver<Line>,
    pub out: Outbox,
}

/// What is on its way to the client.
pub struct Outbox {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    /// Bytes that wait.
    backlog: watch::Sender<usize>,
    /// Nothing can be written any more.
    gone: CancellationToken,
    /// Everything was written.
    done: CancellationToken,
}

impl Client {
    pub fn stdio() -> io::Result<Self> {
        Self::of(io::stdin(), io::stdout())
    }

    pub fn at(stream: UnixStream) -> io::Result<Self> {
        Self::of(stream.try_clone()?, Socket(stream))
    }

    fn of(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> io::Result<Self> {
        let (hand_on, lines) = mpsc::channel(LINES_WAITING);
        let (queue, queued) = mpsc::unbounded_channel();
        let (backlog, _) = watch::channel(0);
        let (gone, done) = (CancellationToken::new(), CancellationToken::new());
        // Threads of their own: what hangs in a read or a write holds up nothing, not even the end of the process.
        named("aye-read").spawn(move || read(from, &hand_on))?;
        let out = Outbox { queue, backlog: backlog.clone(), gone: gone.clone(), done: done.clone() };
        named("aye-write").spawn(move || {
            if write(to, queued, &backlog).is_err() {
                gone.cancel();
            }
            done.cancel();
        })?;
        Ok(Self { lines, out })
    }
}

impl Outbox {
    /// Never waits. A client that reads nothing at all is gone at some point.
    pub fn send(&self, message: &impl Serialize) {
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

    pub fn has_room(&self) -> bool {
        *self.backlog.borrow() <= BACKLOG_BYTES
    }

    /// Until there is room, or none any more.
    pub async fn changed(&self, had_room: bool) {
        let has = |backlog: &usize| *backlog <= BACKLOG_BYTES;
        // The sender is here.
        let _ = self.backlog.subscribe().wait_for(|backlog| has(backlog) != had_room).await;
    }

    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Waits for the last lines, not for ever.
    pub async fn close(self) {
        let Self { queue, done, .. } = self;
        drop(queue);
        // What a client does not take is not for it.
        let _ = tokio::time::timeout(FLUSH, done.cancelled()).await;
    }
}

/// A socket that is closed for good once nobody writes to it.
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
        // The thread that reads ends with it.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// Says why to a client that is not taken, as far as it listens at once.
pub fn refuse(stream: UnixStream, why: &Outgoing) {
    let mut bytes = Vec::new();
    if lines::write(&mut bytes, why).is_ok() && stream.set_nonblocking(true).is_ok() {
        let _ = (&stream).write_all(&bytes);
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

fn read(mut from: impl Read, to: &mpsc::Sender<Line>) {
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
        // Nobody listens any more where it cannot be sent.
        let _ = to.blocking_send(line);
    }
}

fn write(mut to: impl Write, mut queue: mpsc::UnboundedReceiver<Vec<u8>>, backlog: &watch::Sender<usize>) -> io::Result<()> {
    while let Some(mut bytes) = queue.blocking_recv() {
        // What came meanwhile goes along.
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
