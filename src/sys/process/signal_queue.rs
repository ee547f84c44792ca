//! Queues the helper's signals, which it reads from a descriptor instead of being interrupted by them.

use nix::sys::signal::Signal;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Signals that would end only the helper, plus the signal that reports that a child has ended.
#[cfg(target_os = "linux")]
const QUEUED: [Signal; 5] = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

#[cfg(target_os = "linux")]
pub(super) struct SignalQueue(nix::sys::signalfd::SignalFd);

#[cfg(target_os = "linux")]
impl SignalQueue {
    /// Blocks the signals so that they are queued instead.
    pub(super) fn open() -> io::Result<Self> {
        use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
        use nix::sys::signalfd::{SfdFlags, SignalFd};
        let queued: SigSet = QUEUED.into_iter().collect();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&queued), None)?;
        Ok(Self(SignalFd::with_flags(&queued, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Returns the next queued signal, if there is one, without blocking.
    pub(super) fn next(&self) -> Option<Signal> {
        let read = self.0.read_signal().ok()??;
        Signal::try_from(read.ssi_signo.cast_signed()).ok()
    }
}

#[cfg(target_os = "linux")]
impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A queue that can never exist, because only Linux lets a process end all processes that a command started.
#[cfg(not(target_os = "linux"))]
pub(super) enum SignalQueue {}

#[cfg(not(target_os = "linux"))]
impl SignalQueue {
    pub(super) fn open() -> io::Result<Self> {
        let why = "aye can run commands only on Linux; run it there, or in a container";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub(super) fn next(&self) -> Option<Signal> {
        match *self {}
    }
}

#[cfg(not(target_os = "linux"))]
impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
