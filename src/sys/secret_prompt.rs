//! Prompts for a secret, which is not echoed while the user types it on the terminal.

use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

/// Byte that `ctrl+c` sends.
const INTERRUPT: u8 = 3;
/// Maximum line length in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Prompts on this process's terminal, even if its input and output are redirected. Returns `None` if the user cancels
/// with `ctrl+c` or `ctrl+d`.
pub(crate) fn ask(question: &str) -> io::Result<Option<String>> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let line = {
        // Echo is turned off before the prompt, so that fast typing is not shown either.
        let _silent = EchoGuard::new(&terminal)?;
        (&terminal).write_all(question.as_bytes())?;
        line(&terminal)?
    };
    terminal.write_all(b"\n")?;
    Ok(line)
}

/// Prompts for a line that is echoed while the user types it.
pub(crate) fn ask_openly(question: &str) -> io::Result<Option<String>> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    terminal.write_all(question.as_bytes())?;
    line(&terminal)
}

fn line(mut terminal: &File) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while bytes.len() < MAX_BYTES && terminal.read(&mut byte)? == 1 {
        match byte[0] {
            b'\n' => break,
            INTERRUPT => return Ok(None),
            byte => bytes.push(byte),
        }
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Turns echo off until the guard is dropped. Makes `ctrl+c` end the line rather than the process, because ending the
/// process would leave the terminal without echo.
struct EchoGuard<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> EchoGuard<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ISIG);
        silent.local_flags.insert(LocalFlags::ICANON);
        silent.control_chars[SpecialCharacterIndices::VEOL as usize] = INTERRUPT;
        // Input typed before the prompt is discarded.
        tcsetattr(terminal, SetArg::TCSAFLUSH, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for EchoGuard<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, SetArg::TCSADRAIN, &self.before);
    }
}
