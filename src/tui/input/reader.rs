//! Thread that reads from the terminal and records when each input arrived.

use super::sequences::Wait;
use super::{Sequences, UiInput, decode};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc;

/// Time, in milliseconds, to wait for the rest of a sequence after an Escape. It is long enough for slow connections
/// but too short to be noticed.
const ESCAPE_MS: u16 = 25;
/// Time, in milliseconds, to wait for the rest of a report, which may be split across packets.
const REPORT_MS: u16 = 1000;

/// Handle to the running thread. Dropping it stops the thread, leaving unread bytes to the next reader.
#[derive(Debug)]
pub(crate) struct InputReader {
    wake: PipeWriter,
    thread: Option<JoinHandle<()>>,
}

impl InputReader {
    pub(crate) fn start(terminal: OwnedFd) -> io::Result<(Self, mpsc::UnboundedReceiver<(Instant, UiInput)>)> {
        let (woken, wake) = io::pipe()?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name("keys".into()).spawn(move || {
            read(&terminal, &woken, &sender);
        })?;
        Ok((Self { wake, thread: Some(thread) }, receiver))
    }
}

impl Drop for InputReader {
    fn drop(&mut self) {
        // A failed write means that the thread has already ended.
        let _ = self.wake.write_all(b".");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(terminal: &OwnedFd, woken: &io::PipeReader, sender: &mpsc::UnboundedSender<(Instant, UiInput)>) {
    let mut sequences = Sequences::default();
    let mut bytes = [0_u8; 4096];
    loop {
        let timeout = match sequences.wait() {
            Wait::Forever => PollTimeout::NONE,
            Wait::Key => PollTimeout::from(ESCAPE_MS),
            Wait::Report => PollTimeout::from(REPORT_MS),
        };
        let mut ready = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN), PollFd::new(woken.as_fd(), PollFlags::POLLIN)];
        let count = match poll(&mut ready, timeout) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => break,
        };
        let now = Instant::now();
        let mut found = |piece| {
            if let Some(input) = decode(piece) {
                let _ = sender.send((now, input));
            }
        };
        if count == 0 {
            sequences.flush(&mut found);
            continue;
        }
        if ready[1].any().unwrap_or(true) {
            return;
        }
        match nix::unistd::read(terminal, &mut bytes) {
            Ok(0) => break,
            Ok(count) => sequences.push(&bytes[..count], &mut found),
            Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
            Err(_) => break,
        }
    }
    let _ = sender.send((Instant::now(), UiInput::Closed));
}
