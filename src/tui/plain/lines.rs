//! Thread that reads lines from the terminal's line editor and separates input typed before a dialog was printed from
//! input typed later.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcdrain, tcgetattr, tcsetattr};
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// Maximum length of a line, in bytes. A longer one is delivered before its end has arrived.
const LINE_BYTES: usize = 1 << 20;

/// Input from the terminal or a pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineInput {
    Line(String),
    /// Several lines that arrived in one read and were therefore probably pasted. They form a message and are never
    /// treated as an answer.
    Pasted(String),
    /// All input typed before the fence was requested has been delivered. Contains the line that is still incomplete.
    Fence(String),
    /// The input has ended. Contains the last line if it is incomplete.
    Closed(String),
}

/// Handle to the running thread. Dropping it stops the thread.
#[derive(Debug)]
pub(crate) struct Lines {
    wake: PipeWriter,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// Starts the thread. `shown` is the terminal on which dialogs are printed, if any. A dialog counts as seen once
    /// that terminal has transmitted all output.
    pub(crate) fn start(input: OwnedFd, shown: Option<OwnedFd>) -> io::Result<(Self, mpsc::UnboundedReceiver<LineInput>)> {
        let (woken, wake) = io::pipe()?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name("lines".into()).spawn(move || {
            LineReading { is_terminal: tcgetattr(&input).is_ok(), input, shown, buffer: Vec::new(), sender }.run(&woken);
        })?;
        Ok((Self { wake, thread: Some(thread) }, receiver))
    }

    /// Requests a [`LineInput::Fence`]. Must be called after a dialog has been printed. No fence arrives after the end
    /// of the input.
    pub(crate) fn fence(&mut self) {
        // A failed write means that the thread has ended and has delivered everything.
        let _ = self.wake.write_all(b"f");
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // A failed write means that the thread has already ended.
        let _ = self.wake.write_all(b"q");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct LineReading {
    input: OwnedFd,
    shown: Option<OwnedFd>,
    is_terminal: bool,
    /// Bytes of the line that is still incomplete.
    buffer: Vec<u8>,
    sender: mpsc::UnboundedSender<LineInput>,
}

/// Outcome of one read.
#[derive(Debug, PartialEq, Eq)]
enum ReadStatus {
    Something,
    Nothing,
    End,
}

impl LineReading {
    fn run(mut self, woken: &io::PipeReader) {
        loop {
            let mut ready = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN), PollFd::new(woken.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => break,
            }
            let [typed, asked] = ready.map(|fd| fd.any().unwrap_or(false));
            if asked {
                let mut what = [0];
                if nix::unistd::read(woken, &mut what) != Ok(1) || what == *b"q" {
                    return;
                }
                if self.fence() == ReadStatus::End {
                    break;
                }
            } else if typed && self.read_available() == ReadStatus::End {
                break;
            }
        }
        self.deliver();
        let rest = self.rest();
        let _ = self.sender.send(LineInput::Closed(rest));
    }

    /// Reads all available input and delivers the lines that it completes.
    fn read_available(&mut self) -> ReadStatus {
        loop {
            match self.read() {
                ReadStatus::End => return ReadStatus::End,
                ReadStatus::Nothing => break,
                ReadStatus::Something if !self.is_ready() => break,
                ReadStatus::Something => {}
            }
        }
        self.deliver();
        ReadStatus::Something
    }

    /// Delivers all input typed so far, including the incomplete line in the terminal's line editor.
    fn fence(&mut self) -> ReadStatus {
        if let Some(shown) = &self.shown {
            // Waits until the dialog has been transmitted, even on a slow connection.
            let _ = tcdrain(shown);
        }
        if self.is_ready() && self.read_available() == ReadStatus::End {
            return ReadStatus::End;
        }
        if let Ok(modes) = tcgetattr(&self.input)
            && modes.local_flags.contains(LocalFlags::ICANON)
        {
            self.read_partial_line(&modes);
        }
        let rest = self.rest();
        let _ = self.sender.send(LineInput::Fence(rest));
        ReadStatus::Something
    }

    /// Reads the incomplete line by briefly switching the terminal to character mode.
    fn read_partial_line(&mut self, modes: &Termios) {
        let mut letters = modes.clone();
        letters.local_flags.remove(LocalFlags::ICANON);
        letters.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        letters.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        if tcsetattr(&self.input, SetArg::TCSANOW, &letters).is_err() {
            return;
        }
        while self.is_ready() && self.read() == ReadStatus::Something {}
        let _ = tcsetattr(&self.input, SetArg::TCSANOW, modes);
        self.deliver();
    }

    fn is_ready(&self) -> bool {
        let mut ready = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    fn read(&mut self) -> ReadStatus {
        let mut bytes = [0; 4096];
        match nix::unistd::read(&self.input, &mut bytes) {
            Ok(0) => ReadStatus::End,
            Ok(count) => {
                self.buffer.extend_from_slice(&bytes[..count]);
                ReadStatus::Something
            }
            Err(Errno::EINTR | Errno::EAGAIN) => ReadStatus::Nothing,
            Err(_) => ReadStatus::End,
        }
    }

    /// Delivers the complete lines in the buffer, if there are any.
    fn deliver(&mut self) {
        let end = match self.buffer.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if self.buffer.len() > LINE_BYTES => self.buffer.len(),
            None => return,
        };
        let whole: Vec<u8> = self.buffer.drain(..end).collect();
        let whole = String::from_utf8_lossy(&whole).replace('\r', "");
        let lines: Vec<&str> = whole.strip_suffix('\n').unwrap_or(&whole).split('\n').collect();
        // Scripts, and users who type ahead, enter one command per line. Such lines are not a paste.
        let commands = lines.iter().any(|line| line.trim_start().starts_with(['/', '!']));
        if lines.len() > 1 && self.is_terminal && !commands {
            let _ = self.sender.send(LineInput::Pasted(lines.join("\n")));
        } else {
            for line in lines {
                let _ = self.sender.send(LineInput::Line(line.to_owned()));
            }
        }
    }

    fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned()
    }
}
