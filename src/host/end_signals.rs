//! Signals that terminate a run without a screen.

use super::exit::Exit;
use crate::sys::signals::is_hangup_ignored;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that terminate a run.
pub(crate) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Absent under `nohup`, which lets a run outlive its terminal.
    hang_up: Option<Signal>,
}

impl EndSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if is_hangup_ignored() { None } else { signal(SignalKind::hangup()).ok() },
        })
    }

    /// Waits for a signal, and returns the corresponding exit code.
    pub(crate) async fn next(&mut self) -> Exit {
        let mut hung_up = async || match &mut self.hang_up {
            Some(hang_up) => drop(hang_up.recv().await),
            None => std::future::pending().await,
        };
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            () = hung_up() => Exit::Terminated,
        }
    }
}
