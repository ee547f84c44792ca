//! The thread that reads lines, as the terminal's own line editing gives them, and says what was typed before a question stood there.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcdrain, tcgetattr, tcsetattr};
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// More than this without its end is no line that a person typed.
const LINE_BYTES: usize = 1 << 20;

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineInput {
    Line(String),
    /// Several lines in one go, which nobody types: a message, and no answer to anything.
    Pasted(String),
    /// All that was typed before the fence was asked for has been told. What had no end yet stands here.
    Fence(String),
    /// Nothing will be typed any more. What had no end stands here.
    Closed(String),
}

/// The running thread; dropping it ends the thread.
#[derive(Debug)]
pub struct Lines {
    wake: PipeWriter,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// `shown`: where questions are written, where that is a terminal; a question counts as seen once the line has taken it.
    pub fn start(input: OwnedFd, shown: Option<OwnedFd>) -> io::Result<(Self, mpsc::UnboundedReceiver<LineInput>)> {
        let (woken, wake) = io::pipe()?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name("lines".into()).spawn(move || {
            Reading { is_terminal: tcgetattr(&input).is_ok(), input, shown, buffer: Vec::new(), sender }.run(&woken);
        })?;
        Ok((Self { wake, thread: Some(thread) }, receiver))
    }

    /// Asks for `LineInput::Fence`: call it when the question is on the screen. At the end of what is typed none comes.
    pub fn fence(&mut self) {
        // A byte that cannot be written means that the thread has ended: it has told all there was.
        let _ = self.wake.write_all(b"f");
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // A byte that cannot be written means that the thread has ended already.
        let _ = self.wake.write_all(b"q");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reading {
    input: OwnedFd,
    shown: Option<OwnedFd>,
    is_terminal: bool,
    /// What was read of a line without an end.
    buffer: Vec<u8>,
    sender: mpsc::UnboundedSender<LineInput>,
}

/// What a read came to.
#[derive(Debug, PartialEq, Eq)]
enum ReadStatus {
    Something,
    Nothing,
    End,
}

impl Reading {
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
            } else if typed && self.take_in() == ReadStatus::End {
                break;
            }
        }
        self.tell();
        let rest = self.rest();
        let _ = self.sender.send(LineInput::Closed(rest));
    }

    /// Reads what there is, and tells the lines of it.
    fn take_in(&mut self) -> ReadStatus {
        loop {
            match self.read() {
                ReadStatus::End => return ReadStatus::End,
                ReadStatus::Nothing => break,
                ReadStatus::Something if !self.is_ready() => break,
                ReadStatus::Something => {}
            }
        }
        self.tell();
        ReadStatus::Something
    }

    /// All that was typed until now is told, and what stands in the terminal's line without an end is taken out of it.
    fn fence(&mut self) -> ReadStatus {
        if let Some(shown) = &self.shown {
            // The question has left for the line, however slow that is.
            let _ = tcdrain(shown);
        }
        if self.is_ready() && self.take_in() == ReadStatus::End {
            return ReadStatus::End;
        }
        if let Ok(modes) = tcgetattr(&self.input)
            && modes.local_flags.contains(LocalFlags::ICANON)
        {
            self.take_what_has_no_end(&modes);
        }
        let rest = self.rest();
        let _ = self.sender.send(LineInput::Fence(rest));
        ReadStatus::Something
    }

    /// For a moment the terminal gives letters and not lines.
    fn take_what_has_no_end(&mut self, modes: &Termios) {
        let mut letters = modes.clone();
        letters.local_flags.remove(LocalFlags::ICANON);
        letters.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        letters.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        if tcsetattr(&self.input, SetArg::TCSANOW, &letters).is_err() {
            return;
        }
        while self.is_ready() && self.read() == ReadStatus::Something {}
        let _ = tcsetattr(&self.input, SetArg::TCSANOW, modes);
        self.tell();
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

    /// Tells the whole lines of the buffer.
    fn tell(&mut self) {
        let end = match self.buffer.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if self.buffer.len() > LINE_BYTES => self.buffer.len(),
            None => return,
        };
        let whole: Vec<u8> = self.buffer.drain(..end).collect();
        let whole = String::from_utf8_lossy(&whole).replace('\r', "");
        let lines: Vec<&str> = whole.strip_suffix('\n').unwrap_or(&whole).split('\n').collect();
        // A program that writes commands writes one a line; so does who types ahead.
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
