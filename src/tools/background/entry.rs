//! A command that continues to run while the agent works: its stored output, its exit status, and its input.

use super::Inner;
use super::ring_buffer::{NewOutput, RingBuffer};
use super::screen::{CommandScreen, last_screen_line};
use crate::policy::redact::Redactor;
use crate::protocol::{CallId, RunningCommand, RunningState, Target};
use crate::sys::process::{TerminalInput, TerminalSize};
use crate::tools::sandbox::Writes;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes of unread output.
const BUFFER_BYTES: usize = 256 * 1024;
/// Number of bytes of output that are searched for the last line.
const LAST_LINE_BYTES: usize = 4 * 1024;
/// Maximum number of characters of a line to show in lists.
const MAX_LINE_CHARACTERS: usize = 200;
/// Time without new output after which a response is considered complete.
const DEBOUNCE: Duration = Duration::from_millis(250);

/// A command that is about to run.
pub(crate) struct NewCommand {
    /// The command line, exactly as it was checked and shown.
    pub line: String,
    pub cwd: Target,
    pub call: Option<CallId>,
    pub kind: BackgroundKind,
    /// Which part of the workspace the command can write to.
    pub writes: Writes,
    pub redactor: Arc<Redactor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackgroundKind {
    /// Runs in a terminal.
    Session { size: TerminalSize, reads: InputLanguage },
    /// Runs with pipes, and therefore cannot prompt the user.
    Background,
}

/// How lines typed into a session are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputLanguage {
    /// A shell that aye started runs the lines.
    Shell,
    /// A shell that the command started may run the lines.
    Code,
    /// The program reads the lines as data.
    Data,
}

pub(crate) struct BackgroundCommand {
    pub line: String,
    pub cwd: Target,
    pub kind: BackgroundKind,
    pub writes: Writes,
    /// Token that is cancelled when the command should end.
    pub kill: CancellationToken,
    pub typed: Mutex<PendingInput>,
    id: OnceLock<String>,
    call: Option<CallId>,
    since: Timestamp,
    redactor: Arc<Redactor>,
    output: Mutex<Output>,
    keys: OnceLock<TerminalInput>,
    /// Total number of output bytes at the time of the last read.
    read: AtomicU64,
    /// Total number of output bytes. Sent once more when the command has ended.
    progress: watch::Sender<u64>,
    ended: OnceLock<String>,
    home: OnceLock<Weak<Inner>>,
}

/// State left by earlier input that affects how the next line is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingInput {
    /// Number of times that text has been typed.
    pub times: u64,
    /// Text that has been typed so far without pressing Enter.
    pub open: String,
    /// Whether a line would have the same meaning as in a new shell.
    pub plain: bool,
}

enum Output {
    Tape(RingBuffer),
    Screen(Box<CommandScreen>),
}

/// Output that a reader receives.
pub(crate) enum Read {
    /// Output that has not been read before.
    New(NewOutput),
    /// The screen content of a full-screen program.
    Screen(String),
}

impl BackgroundCommand {
    pub(crate) fn new(new: NewCommand) -> Arc<Self> {
        let NewCommand { line, cwd, call, kind, writes, redactor } = new;
        let output = match kind {
            BackgroundKind::Session { size, .. } => Output::Screen(Box::new(CommandScreen::new(size, BUFFER_BYTES))),
            BackgroundKind::Background => Output::Tape(RingBuffer::new(BUFFER_BYTES)),
        };
        Arc::new(Self {
            line,
            cwd,
            kind,
            writes,
            kill: CancellationToken::new(),
            typed: Mutex::new(PendingInput { times: 0, open: String::new(), plain: true }),
            id: OnceLock::new(),
            call,
            since: Timestamp::now(),
            redactor,
            output: Mutex::new(output),
            keys: OnceLock::new(),
            read: AtomicU64::new(0),
            progress: watch::Sender::new(0),
            ended: OnceLock::new(),
            home: OnceLock::new(),
        })
    }

    /// Returns the ID, which is empty until the entry has been added to a list.
    pub(crate) fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    pub(super) fn set_id(&self, id: String, home: Weak<Inner>) {
        let _ = self.id.set(id);
        let _ = self.home.set(home);
    }

    pub(crate) fn give_keys(&self, keys: TerminalInput) {
        let _ = self.keys.set(keys);
    }

    /// Returns the input to the terminal, or `None` if there is no terminal or the command has not started yet.
    pub(crate) fn keys(&self) -> Option<&TerminalInput> {
        self.keys.get()
    }

    /// Adds output, and returns the responses that the terminal sends to it.
    pub(crate) fn push(&self, bytes: &[u8]) -> Vec<u8> {
        let mut output = lock_ignoring_poison(&self.output);
        let (answers, total) = match &mut *output {
            Output::Tape(tape) => {
                tape.push(bytes);
                (Vec::new(), tape.total())
            }
            Output::Screen(screen) => (screen.push(bytes), screen.total()),
        };
        drop(output);
        self.progress.send_replace(total);
        self.publish(false);
        answers
    }

    pub(crate) fn end(&self, how: String) {
        let _ = self.ended.set(how);
        self.progress.send_modify(|_| {});
        self.publish(true);
    }

    fn publish(&self, at_once: bool) {
        if let Some(home) = self.home.get().and_then(Weak::upgrade) {
            if at_once { home.publish() } else { home.publish_debounced() }
        }
    }

    /// Returns a description of how the command ended, or `None` while it is running.
    pub(crate) fn end_reason(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Waits until the command has ended.
    pub(crate) async fn over(&self) {
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|_| self.end_reason().is_some()).await;
    }

    /// Returns the total number of output bytes.
    pub(crate) fn total(&self) -> u64 {
        *self.progress.borrow()
    }

    /// Returns whether there is unread output.
    pub(crate) fn has_unread(&self) -> bool {
        self.total() > self.read.load(Ordering::Acquire)
    }

    /// Returns the terminal size, or `None` if there is no terminal.
    pub(crate) fn size(&self) -> Option<TerminalSize> {
        match &*lock_ignoring_poison(&self.output) {
            Output::Tape(_) => None,
            Output::Screen(screen) => Some(screen.size()),
        }
    }

    /// Waits until the command has produced more than `since` bytes of output and then pauses, or until it ends, but
    /// for no longer than `longest`.
    pub(crate) async fn wait_until_quiet(&self, since: u64, longest: Duration) {
        let mut progress = self.progress.subscribe();
        let deadline = Instant::now() + longest;
        let begun = progress.wait_for(|total| *total > since || self.end_reason().is_some());
        if timeout_at(deadline, begun).await.is_err() {
            return;
        }
        while self.end_reason().is_none() && Instant::now() < deadline {
            let pause = DEBOUNCE.min(deadline - Instant::now());
            if !matches!(timeout(pause, progress.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    pub(crate) fn read(&self) -> Read {
        let more_comes = self.end_reason().is_none();
        self.read.store(self.total(), Ordering::Release);
        match &mut *lock_ignoring_poison(&self.output) {
            Output::Tape(tape) => Read::New(tape.take_new(more_comes)),
            Output::Screen(screen) if screen.is_taken() => Read::Screen(screen.text()),
            Output::Screen(screen) => Read::New(screen.take_new()),
        }
    }

    /// Returns the terminal's content, or `None` if there is no terminal.
    pub(crate) fn screen(&self) -> Option<String> {
        match &*lock_ignoring_poison(&self.output) {
            Output::Tape(_) => None,
            Output::Screen(screen) => Some(screen.text()),
        }
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> std::io::Result<()> {
        if let Output::Screen(screen) = &mut *lock_ignoring_poison(&self.output) {
            screen.resize(size);
        }
        self.keys().map_or(Ok(()), |keys| keys.resize(size))
    }

    pub(super) fn to_running_command(&self) -> RunningCommand {
        let last_line = match &*lock_ignoring_poison(&self.output) {
            Output::Tape(tape) => last_screen_line(&tape.tail(LAST_LINE_BYTES)),
            Output::Screen(screen) => screen.last_line(),
        };
        let told = |text: &str| self.redactor.redact(text).text.chars().take(MAX_LINE_CHARACTERS).collect::<String>();
        RunningCommand {
            id: self.id().to_owned(),
            line: told(&self.line),
            tool_call_id: self.call.clone(),
            state: self
                .end_reason()
                .map_or(RunningState::Running, |how| RunningState::Ended { how: self.redactor.redact(how).text.into_owned() }),
            since: self.since,
            last_line: told(&last_line),
        }
    }
}

pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
