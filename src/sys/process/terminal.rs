//! A command on a terminal of its own, for who reads its screen and types.

use super::handshake::winsize;
use super::messages::TerminalSize;
use super::run::{DRAIN_LIMIT, End, Ends, HELPER_END_LIMIT, ProcessError, Running, Spec, start, wait_for_end};
use crate::sys::proxy::DeniedHost;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use nix::errno::Errno;
use nix::sys::termios::{InputFlags, LocalFlags, SpecialCharacterIndices, Termios};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

/// What a terminal has where nobody says.
const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// A running command and the two sides of its terminal.
pub struct Terminal {
    pub screen: Screen,
    pub keys: Keys,
    /// Has to be polled to the end of the command; dropping it kills everything.
    pub ending: BoxFuture<'static, Result<Ended, ProcessError>>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub end: End,
    pub denied_hosts: Vec<DeniedHost>,
}

/// What the command prints.
#[derive(Debug)]
pub struct Screen {
    master: Arc<AsyncFd<OwnedFd>>,
    stop: CancellationToken,
}

/// What the command is typed.
#[derive(Debug, Clone)]
pub struct Keys {
    master: Arc<AsyncFd<OwnedFd>>,
}

/// How things stand on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// The program that the terminal was opened for has it, and none that it started.
    pub is_leader: bool,
    /// It gets whole lines, not keys.
    pub takes_lines: bool,
    /// No letter that can be typed edits or ends the line, or becomes another.
    pub takes_letters: bool,
    /// Where that first program works, by the names that it sees; nothing where that cannot be told.
    pub directory: Option<PathBuf>,
}

/// Starts the line on a terminal of the size in `spec`. Its end comes as for any command: by itself, by its time, by `kill`.
pub async fn start_terminal(spec: Spec, kill: CancellationToken) -> Result<Terminal, ProcessError> {
    let Some(running) = start(&spec, Ends::Terminal(spec.terminal.unwrap_or(USUAL)), &kill).await? else {
        return Err(ProcessError::NotStarted("stopped before it started".to_owned()));
    };
    let Running { mut child, mut control, pieces, mut way_out } = running;
    let master = pieces.terminal.ok_or_else(|| ProcessError::NotStarted("the helper provided no terminal".to_owned()))?;
    let master = Arc::new(watched(master)?);
    let stop = CancellationToken::new();
    let screen = Screen { master: Arc::clone(&master), stop: stop.clone() };
    let ending = async move {
        let end = tokio::select! {
            end = wait_for_end(&mut control, tokio::time::sleep(spec.timeout), &kill) => end,
            never = way_out.serve() => match never {},
        };
        tokio::spawn(async move {
            tokio::time::sleep(DRAIN_LIMIT).await;
            stop.cancel();
        });
        drop(control);
        let _ = tokio::time::timeout(HELPER_END_LIMIT, child.wait()).await;
        Ok(Ended { end: end?, denied_hosts: way_out.denied.list() })
    };
    Ok(Terminal { screen, keys: Keys { master }, ending: ending.boxed() })
}

#[expect(unsafe_code, reason = "the descriptor must stay what it is for as long as it is watched")]
fn watched(master: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor until it is dropped, and nothing takes it out of the `AsyncFd`.
    unsafe { AsyncFd::register(master) }.map_err(io::Error::from)
}

impl Screen {
    /// Waits for the next bytes; 0 once the command has ended and all is read.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.master.async_io(tokio::io::Interest::READABLE, |master| match nix::unistd::read(master, into) {
            // Nobody has the other side any more.
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

impl Keys {
    /// Types all of it; waits where the command does not read.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            written +=
                self.master.async_io(tokio::io::Interest::WRITABLE, |master| Ok(nix::unistd::write(master, rest)?)).await?;
        }
        Ok(())
    }

    /// Who would be given what is typed now.
    pub fn front(&self) -> io::Result<Front> {
        let group = nix::unistd::tcgetpgrp(&self.master)?;
        let leader = nix::sys::termios::tcgetsid(&self.master)?;
        let modes = nix::sys::termios::tcgetattr(&self.master)?;
        Ok(Front {
            is_leader: group == leader,
            takes_lines: modes.local_flags.contains(LocalFlags::ICANON),
            takes_letters: takes_letters(&modes),
            directory: std::fs::read_link(format!("/proc/{leader}/cwd")).ok().filter(|directory| directory.is_absolute()),
        })
    }

    /// Gives the terminal another size; what runs on it is told.
    #[expect(unsafe_code, reason = "the system call takes a pointer")]
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = winsize(size);
        // SAFETY: the pointer is to a whole `winsize` that outlives the call.
        match unsafe { libc::ioctl(self.master.get_ref().as_raw_fd(), libc::TIOCSWINSZ, &raw const size) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A program can leave a terminal on which `#` takes back all that was typed before it; a shell keeps to that.
fn takes_letters(modes: &Termios) -> bool {
    const NUMBERS: [SpecialCharacterIndices; 2] = [SpecialCharacterIndices::VMIN, SpecialCharacterIndices::VTIME];
    let is_key = |(at, character): (usize, &u8)| {
        NUMBERS.iter().any(|number| *number as usize == at) || character.is_ascii_control() || *character == libc::_POSIX_VDISABLE
    };
    let changes = InputFlags::ISTRIP | InputFlags::IGNCR | InputFlags::INLCR;
    let usual = modes.input_flags.contains(InputFlags::ICRNL) || !modes.local_flags.contains(LocalFlags::ICANON);
    let upper_case = modes.input_flags.bits() & UPPER_CASE != 0;
    modes.control_chars.iter().enumerate().all(is_key) && !modes.input_flags.intersects(changes) && usual && !upper_case
}

/// `IUCLC`: letters come in as small ones.
#[cfg(target_os = "linux")]
const UPPER_CASE: libc::tcflag_t = 0o1000;
#[cfg(not(target_os = "linux"))]
const UPPER_CASE: libc::tcflag_t = 0;
