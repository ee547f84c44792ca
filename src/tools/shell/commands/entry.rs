//! One command that goes on beside the agent's work: its output as far as it is kept, its end, who may type.

use super::Inner;
use super::screen::{Screen, last_line_of};
use super::tape::{Fresh, Tape};
use crate::policy::redact::Redactor;
use crate::protocol::{CallId, RunningCommand, RunningState, Target};
use crate::sys::process::{Keys, TerminalSize};
use crate::tools::shell::confine::Writes;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Kept of what a command prints until it is read.
const KEPT_BYTES: usize = 256 * 1024;
/// Of an output this much is looked at for its last line.
const LAST_LINE_BYTES: usize = 4 * 1024;
/// Of a line this much is told to who only looks on.
const TOLD_CHARACTERS: usize = 200;
/// So long nothing must come until an answer counts as whole.
const DEBOUNCE: Duration = Duration::from_millis(250);

/// What a command is before it runs.
pub struct New {
    /// As it was judged and shown.
    pub line: String,
    pub cwd: Target,
    pub call: Option<CallId>,
    pub kind: Kind,
    /// What of the workspace it may write.
    pub writes: Writes,
    pub redactor: Arc<Redactor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It has a terminal.
    Session { size: TerminalSize, reads: Reads },
    /// It has pipes, and nobody to ask.
    Background,
}

/// What becomes of a line that is typed into a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// A shell that aye started for it runs it.
    Shell,
    /// Some shell that the command starts may run it.
    Code,
    /// The program knows.
    Data,
}

pub struct Entry {
    pub line: String,
    pub cwd: Target,
    pub kind: Kind,
    pub writes: Writes,
    /// Fires when it is to end.
    pub kill: CancellationToken,
    pub typed: Mutex<Typed>,
    id: OnceLock<String>,
    call: Option<CallId>,
    since: Timestamp,
    redactor: Arc<Redactor>,
    output: Mutex<Output>,
    keys: OnceLock<Keys>,
    /// Bytes that were there when it was read last.
    read: AtomicU64,
    /// Bytes until now; sent once more at the end.
    progress: watch::Sender<u64>,
    ended: OnceLock<String>,
    home: OnceLock<Weak<Inner>>,
}

/// What was typed until now, as far as it decides how the next line is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// How often something was.
    pub times: u64,
    /// A line that has no end yet.
    pub open: String,
    /// Whether the shell still means by a line what a new one would.
    pub plain: bool,
}

enum Output {
    Tape(Tape),
    Screen(Box<Screen>),
}

/// What a reader is told.
pub enum Read {
    /// What is new.
    New(Fresh),
    /// All that stands on the screen, which a program has for itself.
    Screen(String),
}

impl Entry {
    pub fn new(new: New) -> Arc<Self> {
        let New { line, cwd, call, kind, writes, redactor } = new;
        let output = match kind {
            Kind::Session { size, .. } => Output::Screen(Box::new(Screen::new(size, KEPT_BYTES))),
            Kind::Background => Output::Tape(Tape::new(KEPT_BYTES)),
        };
        Arc::new(Self {
            line,
            cwd,
            kind,
            writes,
            kill: CancellationToken::new(),
            typed: Mutex::new(Typed { times: 0, open: String::new(), plain: true }),
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

    /// Empty as long as it is in no list.
    pub fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    pub(super) fn admitted(&self, id: String, home: Weak<Inner>) {
        let _ = self.id.set(id);
        let _ = self.home.set(home);
    }

    pub fn give_keys(&self, keys: Keys) {
        let _ = self.keys.set(keys);
    }

    /// What types into it; none where there is no terminal, or not yet.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.get()
    }

    /// Takes what it printed; what its terminal says to that comes back.
    pub fn push(&self, bytes: &[u8]) -> Vec<u8> {
        let mut output = locked(&self.output);
        let (answers, total) = match &mut *output {
            Output::Tape(tape) => {
                tape.push(bytes);
                (Vec::new(), tape.total())
            }
            Output::Screen(screen) => (screen.push(bytes), screen.total()),
        };
        drop(output);
        self.progress.send_replace(total);
        self.told(false);
        answers
    }

    pub fn end(&self, how: String) {
        let _ = self.ended.set(how);
        self.progress.send_modify(|_| {});
        self.told(true);
    }

    fn told(&self, at_once: bool) {
        if let Some(home) = self.home.get().and_then(Weak::upgrade) {
            if at_once { home.tell() } else { home.tell_soon() }
        }
    }

    /// How it ended; nothing while it runs.
    pub fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Waits until it ended.
    pub async fn over(&self) {
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|_| self.ended().is_some()).await;
    }

    /// Bytes that it printed.
    pub fn total(&self) -> u64 {
        *self.progress.borrow()
    }

    /// Whether something was printed that nobody read.
    pub fn has_unread(&self) -> bool {
        self.total() > self.read.load(Ordering::Acquire)
    }

    /// The size of its terminal.
    pub fn size(&self) -> Option<TerminalSize> {
        match &*locked(&self.output) {
            Output::Tape(_) => None,
            Output::Screen(screen) => Some(screen.size()),
        }
    }

    /// Waits until it printed more than `since` and then nothing for a moment, or ended, but no longer than `longest`.
    pub async fn quiet(&self, since: u64, longest: Duration) {
        let mut progress = self.progress.subscribe();
        let deadline = Instant::now() + longest;
        let begun = progress.wait_for(|total| *total > since || self.ended().is_some());
        if timeout_at(deadline, begun).await.is_err() {
            return;
        }
        while self.ended().is_none() && Instant::now() < deadline {
            let pause = DEBOUNCE.min(deadline - Instant::now());
            if !matches!(timeout(pause, progress.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    pub fn read(&self) -> Read {
        let more_comes = self.ended().is_none();
        self.read.store(self.total(), Ordering::Release);
        match &mut *locked(&self.output) {
            Output::Tape(tape) => Read::New(tape.fresh(more_comes)),
            Output::Screen(screen) if screen.is_taken() => Read::Screen(screen.text()),
            Output::Screen(screen) => Read::New(screen.fresh()),
        }
    }

    /// All that stands on its terminal.
    pub fn screen(&self) -> Option<String> {
        match &*locked(&self.output) {
            Output::Tape(_) => None,
            Output::Screen(screen) => Some(screen.text()),
        }
    }

    pub fn resize(&self, size: TerminalSize) -> std::io::Result<()> {
        if let Output::Screen(screen) = &mut *locked(&self.output) {
            screen.resize(size);
        }
        self.keys().map_or(Ok(()), |keys| keys.resize(size))
    }

    pub(super) fn listed(&self) -> RunningCommand {
        let last_line = match &*locked(&self.output) {
            Output::Tape(tape) => last_line_of(&tape.tail(LAST_LINE_BYTES)),
            Output::Screen(screen) => screen.last_line(),
        };
        let told = |text: &str| self.redactor.redact(text).text.chars().take(TOLD_CHARACTERS).collect::<String>();
        RunningCommand {
            id: self.id().to_owned(),
            line: told(&self.line),
            tool_call_id: self.call.clone(),
            state: self
                .ended()
                .map_or(RunningState::Running, |how| RunningState::Ended { how: self.redactor.redact(how).text.into_owned() }),
            since: self.since,
            last_line: told(&last_line),
        }
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
