//! Runs a command on a terminal of its own, for a caller that reads the screen and types into the terminal.

use super::handshake::winsize;
use super::messages::TerminalSize;
use super::run::{
    CommandSpec, DRAIN_LIMIT, End, HELPER_END_LIMIT, ProcessError, ReportedEnd, StartedCommand, StdioMode, StopConditions, start,
    wait_for_end,
};
use crate::sys::proxy::DeniedHost;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use nix::errno::Errno;
use nix::sys::termios::{InputFlags, LocalFlags, SpecialCharacterIndices, Termios};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

/// Default terminal size.
const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// A running command, with both the output and the input of its terminal.
pub(crate) struct Terminal {
    pub screen: TerminalOutput,
    pub keys: TerminalInput,
    /// Future that must be polled until the command ends. Dropping it kills all of the command's processes.
    pub ending: BoxFuture<'static, Result<TerminalResult, ProcessError>>,
}

/// Result of a command that ran on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalResult {
    pub end: End,
    pub denied_hosts: Vec<DeniedHost>,
    /// Addresses to which the command tried to connect without aye's proxy, although it has no network access.
    pub bypasses: Vec<SocketAddr>,
}

/// The terminal's output.
#[derive(Debug)]
pub(crate) struct TerminalOutput {
    master: Arc<AsyncFd<OwnedFd>>,
    stop: CancellationToken,
}

/// The terminal's input.
#[derive(Debug, Clone)]
pub(crate) struct TerminalInput {
    master: Arc<AsyncFd<OwnedFd>>,
}

/// Current state of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalState {
    /// Whether the foreground program is the one for which the terminal was opened, rather than a program started by
    /// that one.
    pub is_leader: bool,
    /// Whether the program reads whole lines rather than single keys.
    pub takes_lines: bool,
    /// Whether every typed character reaches the program unchanged.
    pub takes_letters: bool,
    /// Working directory of the program for which the terminal was opened, as that program sees it. `None` if unknown.
    pub directory: Option<PathBuf>,
}

/// Starts the line on a terminal of the size in `spec`. Like any other command, it ends on its own, after its timeout,
/// or when `kill` is cancelled.
pub(crate) async fn start_terminal(spec: CommandSpec, kill: CancellationToken) -> Result<Terminal, ProcessError> {
    let Some(running) = start(&spec, StdioMode::Terminal(spec.terminal.unwrap_or(USUAL)), &kill).await? else {
        return Err(ProcessError::NotStarted("stopped before it started".to_owned()));
    };
    let StartedCommand { mut child, mut control, pieces, mut way_out } = running;
    let master = pieces.terminal.ok_or_else(|| ProcessError::NotStarted("the helper provided no terminal".to_owned()))?;
    let master = Arc::new(register_master(master)?);
    let stop = CancellationToken::new();
    let screen = TerminalOutput { master: Arc::clone(&master), stop: stop.clone() };
    let ending = async move {
        // A program on a terminal is killed, never interrupted.
        let stops = StopConditions { kill: &kill, interrupt: &CancellationToken::new() };
        let end = tokio::select! {
            end = wait_for_end(&mut control, tokio::time::sleep(spec.timeout), stops) => end,
            never = way_out.serve() => match never {},
        };
        tokio::spawn(async move {
            tokio::time::sleep(DRAIN_LIMIT).await;
            stop.cancel();
        });
        drop(control);
        let _ = tokio::time::timeout(HELPER_END_LIMIT, child.wait()).await;
        let ReportedEnd { end, bypasses } = end?;
        Ok(TerminalResult { end, denied_hosts: way_out.denied.list(), bypasses })
    };
    Ok(Terminal { screen, keys: TerminalInput { master }, ending: ending.boxed() })
}

#[expect(unsafe_code, reason = "the descriptor must stay the same while it is registered")]
fn register_master(master: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` refers to the same open descriptor until it is dropped, and nothing takes it out of the
    // `AsyncFd`.
    unsafe { AsyncFd::register(master) }.map_err(io::Error::from)
}

impl TerminalOutput {
    /// Waits for the next bytes. Returns 0 once the command has ended and all output has been read.
    pub(crate) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.master.async_io(tokio::io::Interest::READABLE, |master| match nix::unistd::read(master, into) {
            // No process has the other side open any more.
            Err(Errno::EIO) => Ok(0),
            read => Ok(read?),
        });
        tokio::select! {
            biased;
            read = read => read,
            () = self.stop.cancelled() => Ok(0),
        }
    }
}

impl TerminalInput {
    /// Types all bytes. Waits for as long as the command does not read them.
    pub(crate) async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            written +=
                self.master.async_io(tokio::io::Interest::WRITABLE, |master| Ok(nix::unistd::write(master, rest)?)).await?;
        }
        Ok(())
    }

    /// Returns the terminal's state, including whether the program for which it was opened would receive input typed
    /// now.
    pub(crate) fn front(&self) -> io::Result<TerminalState> {
        let group = nix::unistd::tcgetpgrp(&self.master)?;
        let leader = nix::sys::termios::tcgetsid(&self.master)?;
        let modes = nix::sys::termios::tcgetattr(&self.master)?;
        Ok(TerminalState {
            is_leader: group == leader,
            takes_lines: modes.local_flags.contains(LocalFlags::ICANON),
            takes_letters: is_raw_input(&modes),
            directory: std::fs::read_link(format!("/proc/{leader}/cwd")).ok().filter(|directory| directory.is_absolute()),
        })
    }

    /// Resizes the terminal and notifies the program that runs on it.
    #[expect(unsafe_code, reason = "the system call takes a pointer")]
    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = winsize(size);
        // SAFETY: the pointer refers to a complete `winsize` that outlives the call.
        match unsafe { libc::ioctl(self.master.get_ref().as_raw_fd(), libc::TIOCSWINSZ, &raw const size) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Returns whether the terminal passes every character on unchanged. A program may leave the terminal in a state in
/// which `#` deletes the line typed so far, and a shell preserves that state.
fn is_raw_input(modes: &Termios) -> bool {
    const NUMBERS: [SpecialCharacterIndices; 2] = [SpecialCharacterIndices::VMIN, SpecialCharacterIndices::VTIME];
    let is_key = |(at, character): (usize, &u8)| {
        NUMBERS.iter().any(|number| *number as usize == at) || character.is_ascii_control() || *character == libc::_POSIX_VDISABLE
    };
    let changes = InputFlags::ISTRIP | InputFlags::IGNCR | InputFlags::INLCR;
    let usual = modes.input_flags.contains(InputFlags::ICRNL) || !modes.local_flags.contains(LocalFlags::ICANON);
    let upper_case = modes.input_flags.bits() & UPPER_CASE != 0;
    modes.control_chars.iter().enumerate().all(is_key) && !modes.input_flags.intersects(changes) && usual && !upper_case
}

/// `IUCLC`: the terminal converts upper-case letters to lower case.
#[cfg(target_os = "linux")]
const UPPER_CASE: libc::tcflag_t = 0o1000;
#[cfg(not(target_os = "linux"))]
const UPPER_CASE: libc::tcflag_t = 0;
