//! Terminal with aye in it: keys go in, the screen comes out as text, and queries to the terminal are answered.

use super::project::Invocation;
use super::texts;
use super::{TIMEOUT, wait_until};
use base64::Engine as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a wait checks whether the process still runs.
const LOOK: Duration = Duration::from_millis(500);

/// Maximum time for which the screen before an unfinished frame remains visible.
const FRAME: Duration = Duration::from_secs(2);

type Writer = Arc<Mutex<Box<dyn Write + Send>>>;

/// Minimum time that a user needs to react to a change on the screen.
const REACTION: Duration = Duration::from_millis(400);

/// Terminal with its process, which is killed on drop.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    writer: Writer,
    view: Arc<View>,
    /// Line settings before aye started, for a comparison with the settings after its end.
    settings: String,
    /// Handle that keeps the line open, so that its settings can be read after the process has ended.
    line: Option<Box<dyn portable_pty::SlavePty + Send>>,
}

struct View {
    parser: Mutex<vt100::Parser<Replies>>,
    changed: Condvar,
    /// Delay of terminal replies in milliseconds. A negative value suppresses replies.
    line_ms: AtomicI64,
    /// Whether all output has been processed.
    ended: AtomicBool,
}

/// Replies of the terminal, and its state besides the cells.
#[derive(Default)]
struct Replies {
    /// Replies that have not been sent yet.
    answers: Vec<u8>,
    /// Last text for the clipboard, still in Base64.
    copied: Vec<u8>,
    /// Start time of an unfinished frame and the screen before it, which stays visible until the frame is complete.
    before: Option<(Instant, String)>,
}

impl vt100::Callbacks for Replies {
    fn unhandled_csi(&mut self, screen: &mut vt100::Screen, i1: Option<u8>, _: Option<u8>, params: &[&[u16]], c: char) {
        let first = params.first().and_then(|param| param.first()).copied().unwrap_or(0);
        match (i1, first, c) {
            (None, 5, 'n') => self.answers.extend(b"\x1b[0n"),
            (None, 6, 'n') => {
                let (row, column) = screen.cursor_position();
                self.answers.extend(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
            }
            (None, 0, 'c') => self.answers.extend(b"\x1b[?62;22c"),
            (Some(b'?'), 2026, 'h') => self.before = Some((Instant::now(), screen.contents())),
            (Some(b'?'), 2026, 'l') => self.before = None,
            _ => {}
        }
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.copied = data.to_vec();
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        match params {
            [b"10", b"?"] => self.answers.extend(b"\x1b]10;rgb:e6e6/e6e6/e6e6\x1b\\"),
            [b"11", b"?"] => self.answers.extend(b"\x1b]11;rgb:1010/1010/1010\x1b\\"),
            _ => {}
        }
    }
}

impl Terminal {
    pub(super) fn start(invocation: &Invocation<'_>, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let settings = settings(pair.master.as_ref());
        let mut command = CommandBuilder::new(invocation.program);
        command.args(&invocation.arguments);
        command.cwd(&invocation.directory);
        command.env_clear();
        for (name, value) in &invocation.environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let writer: Writer = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let parser = vt100::Parser::new_with_callbacks(cells(rows), cells(columns), 1000, Replies::default());
        let view = Arc::new(View {
            parser: Mutex::new(parser),
            changed: Condvar::new(),
            line_ms: AtomicI64::new(0),
            ended: AtomicBool::new(false),
        });
        let reader = pair.master.try_clone_reader().unwrap();
        let (shown, answers) = (Arc::clone(&view), Arc::clone(&writer));
        thread::spawn(move || follow(reader, &shown, &answers));
        Self { child, master: pair.master, writer, view, settings, line: Some(pair.slave) }
    }

    /// Delays terminal replies by `line_ms` milliseconds, or suppresses them if `line_ms` is `None`.
    pub fn set_reply_delay(&self, line_ms: Option<u16>) {
        self.view.line_ms.store(line_ms.map_or(-1, i64::from), Ordering::Release);
    }

    /// Returns whether an approval is open, with or without the focus.
    pub fn asks(screen: &str) -> bool {
        row(screen, 'y').is_some() || screen.contains(texts::TAB_TO_REVIEW)
    }

    /// Returns the screen as text, one line per row, without trailing blanks.
    pub fn screen(&self) -> String {
        visible(&lock(&self.view.parser))
    }

    /// Returns the clipboard of the terminal.
    pub fn copied(&self) -> String {
        let data = lock(&self.view.parser).callbacks().copied.clone();
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Waits until the screen contains this text. Returns the screen.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait_that(&format!("the screen shows `{text}`"), |screen| screen.contains(text))
    }

    /// Waits until the screen no longer contains this text. Returns the screen.
    #[track_caller]
    pub fn wait_until_gone(&mut self, text: &str) -> String {
        self.wait_that(&format!("the screen no longer shows `{text}`"), |screen| !screen.contains(text))
    }

    /// Waits until the screen meets a condition. Returns the screen.
    #[track_caller]
    pub fn wait_that(&mut self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // The process is checked before the screen, because its last output can appear after its end.
            let end = self.child.try_wait().ok().flatten();
            match self.look(LOOK, &condition) {
                Ok(screen) => return screen,
                Err(screen) if end.is_some() || Instant::now() > deadline => {
                    let state = end.map_or("it runs".to_owned(), |end| end.to_string());
                    panic!("waited in vain until {what}; {state}\n{screen}")
                }
                Err(_) => {}
            }
        }
    }

    /// Waits until the screen meets a condition. Returns the screen, which is the error if `patience` has elapsed.
    pub fn look(&self, patience: Duration, condition: impl Fn(&str) -> bool) -> Result<String, String> {
        let deadline = Instant::now() + patience;
        let mut parser = lock(&self.view.parser);
        loop {
            let screen = visible(&parser);
            if condition(&screen) {
                return Ok(screen);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(screen);
            }
            parser = self.view.changed.wait_timeout(parser, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends bytes as the terminal would.
    pub fn send(&mut self, bytes: &str) {
        let mut writer = lock(&self.writer);
        writer.write_all(bytes.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Types text like a user, one key at a time.
    pub fn type_text(&mut self, text: &str, between_ms: u64) {
        for letter in text.chars() {
            self.send(letter.encode_utf8(&mut [0; 4]));
            thread::sleep(Duration::from_millis(between_ms));
        }
    }

    /// Types a prompt into the composer and sends it.
    #[track_caller]
    pub fn prompt(&mut self, text: &str) {
        self.wait_that("the composer is there", |screen| screen.contains('❯'));
        self.type_text(text, 2);
        self.wait_for(text);
        self.enter();
    }

    /// Presses Enter after a pause. Without the pause, the key would be part of a paste.
    pub fn enter(&mut self) {
        thread::sleep(Duration::from_millis(100));
        self.send("\r");
    }

    /// Waits as long as a user needs to react to a change on the screen.
    pub fn react() {
        thread::sleep(REACTION);
    }

    /// Focuses an approval and waits until it accepts keys. Returns the screen.
    #[track_caller]
    pub fn review(&mut self, title: &str) -> String {
        let asked = |screen: &str| screen.contains(title) && (takes_keys(screen) || screen.contains(texts::TAB_TO_REVIEW));
        let screen = self.wait_that(&format!("an approval of `{title}` opens"), asked);
        if !takes_keys(&screen) && screen.contains(texts::TAB_TO_REVIEW) {
            self.send("\t");
        }
        let screen = self.wait_that("the approval takes keys", takes_keys);
        // A letter immediately after typed text or after a change of the prompt counts as text.
        Self::react();
        screen
    }

    /// Presses the letter of a choice of the focused approval, and waits until the approval is closed.
    #[track_caller]
    pub fn decide(&mut self, letter: char) {
        self.wait_that(&format!("`{letter}` may be chosen"), |screen| row(screen, letter).is_some() && !is_arming(screen));
        Self::react();
        self.send(letter.encode_utf8(&mut [0; 4]));
        let gone = |screen: &str| row(screen, letter).is_none();
        // At low risk, the letter decides. Otherwise, the choice is only highlighted and needs Enter.
        let highlighted = |screen: &str| row(screen, letter).is_some_and(|row| row.trim_start().starts_with('❯'));
        let screen =
            self.wait_that(&format!("`{letter}` decides or is highlighted"), |screen| gone(screen) || highlighted(screen));
        if !gone(&screen) {
            Self::react();
            self.send("\r");
        }
        self.wait_that("the question has gone", |screen| gone(screen) || is_arming(screen));
    }

    #[track_caller]
    pub fn resize(&mut self, columns: u16, rows: u16) {
        lock(&self.view.parser).set_size(cells(rows), cells(columns));
        self.master.resize(size(columns, rows)).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).unwrap();
    }

    /// Kills the process, like a crash. The process has ended when this method returns.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Waits for the end of the process. Fails if the process does not end in time or panicked.
    #[track_caller]
    pub fn finish(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let mut status = None;
        wait_until(TIMEOUT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap_or_else(|| panic!("it did not end\n{}", self.screen()))
    }

    /// Presses the quit key, and presses it again if aye requires that.
    #[track_caller]
    pub fn quit(&mut self) -> ExitStatus {
        self.send("\x04");
        let mut asked = false;
        wait_until(TIMEOUT, || {
            asked = self.screen().contains("ctrl+d again to quit");
            asked || self.child.try_wait().unwrap().is_some()
        });
        if asked {
            self.send("\x04");
        }
        self.finish()
    }

    /// Fails unless the terminal is restored: main screen, cursor, line settings, paste mode and mouse mode.
    #[track_caller]
    pub fn assert_restored(&mut self) {
        assert_eq!(settings(self.master.as_ref()), self.settings, "line settings");
        // The reader ends when the last handle of the line is closed.
        self.line = None;
        let shown = wait_until(TIMEOUT, || self.view.ended.load(Ordering::Acquire));
        assert!(shown, "something still holds the line\n{}", self.screen());
        let parser = lock(&self.view.parser);
        let screen = parser.screen();
        let left = [
            ("the other screen", screen.alternate_screen()),
            ("a hidden cursor", screen.hide_cursor()),
            ("bracketed paste", screen.bracketed_paste()),
            ("the mouse", screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None),
        ];
        let left: Vec<_> = left.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        assert!(left.is_empty(), "a mode is left on: {left:?}\n{}", screen.contents());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGKILL);
            drop(self.child.wait());
        }
    }
}

/// Returns the visible screen, without an unfinished frame.
fn visible(parser: &vt100::Parser<Replies>) -> String {
    match &parser.callbacks().before {
        Some((since, before)) if since.elapsed() < FRAME => before.clone(),
        _ => parser.screen().contents(),
    }
}

/// Returns the row with a choice: letter, blanks, words. A marker may precede the choice, and other choices may follow.
fn row(screen: &str, letter: char) -> Option<&str> {
    let (start, beside) = (format!("{letter}  "), format!("   {letter}  "));
    screen.lines().find(|line| {
        let line = line.trim_start_matches([' ', '❯', '◔', '▁', '▃', '▅', '▇', '█']);
        line.starts_with(&start) || line.starts_with("y  ") && line.contains(&beside)
    })
}

/// Returns whether a prompt has just opened and no key decides yet.
fn is_arming(screen: &str) -> bool {
    screen.contains('◔')
}

/// Returns whether the focused approval accepts keys.
fn takes_keys(screen: &str) -> bool {
    row(screen, 'y').is_some() && !is_arming(screen) && !screen.contains(texts::TAB_TO_REVIEW)
}

/// Processes output until the line is closed.
fn follow(mut reader: Box<dyn Read + Send>, view: &View, writer: &Writer) {
    let mut bytes = [0; 8192];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        let replies = {
            let mut parser = lock(&view.parser);
            parser.process(&bytes[..count]);
            std::mem::take(&mut parser.callbacks_mut().answers)
        };
        view.changed.notify_all();
        if replies.is_empty() {
            continue;
        }
        match u64::try_from(view.line_ms.load(Ordering::Acquire)) {
            Ok(0) => drop(lock(writer).write_all(&replies)),
            Ok(late) => {
                let writer = Arc::clone(writer);
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(late));
                    drop(lock(&writer).write_all(&replies));
                });
            }
            Err(_) => {}
        }
    }
    view.ended.store(true, Ordering::Release);
    view.changed.notify_all();
}

fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios())
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
