//! Tests of the full-screen UI in a terminal. Each test starts its own program again inside a PTY, with a simulated
//! session.

pub(crate) mod fixtures;
pub(crate) mod snapshot;
mod untrusted_text;

use super::{Editor, ExitReason, ModelAccess, Start, TuiHandles, host};
use crate::protocol::*;
use fixtures::*;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

const CHILD: &str = "tui::tests::a_simulated_session_runs_inside_the_terminal";
/// Time limit that is long enough for a busy machine. No test depends on how long something takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Terminal emulator in which the child process runs.
struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

fn emulator(rows: u16, cols: u16) -> vt100::Parser {
    vt100::Parser::new(rows.try_into().unwrap(), cols.try_into().unwrap(), 0)
}

impl Terminal {
    fn start(scene: &str, rows: u16, cols: u16) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args([CHILD, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("AYE_TEST_SCENE", scene);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let seen = Arc::new((Mutex::new(Seen { parser: emulator(rows, cols), bytes: Vec::new(), ended: false }), Condvar::new()));
        let keys = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let (reader, shared) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&seen));
        let answers = Arc::clone(&keys);
        std::thread::spawn(move || read(reader, &shared, &answers));
        let keys: Box<dyn Write + Send> = Box::new(Shared(keys));
        Self { master: pair.master, keys, child, seen }
    }

    fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    #[track_caller]
    fn wait(&self, what: impl Fn(&str) -> bool) -> String {
        let (seen, changed) = &*self.seen;
        let until = Instant::now() + TIMEOUT;
        let mut seen = seen.lock().unwrap();
        loop {
            let screen = seen.parser.screen().contents();
            if what(&screen) {
                return screen;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.ended, "never came:\n{screen}");
            seen = changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    #[track_caller]
    fn wait_for(&self, words: &str) -> String {
        self.wait(|screen| screen.contains(words))
    }

    fn finish(mut self) -> (bool, Vec<u8>, vt100::Parser) {
        let ok = self.child.wait().unwrap().success();
        drop(self.master);
        let (seen, changed) = &*self.seen;
        let mut seen = seen.lock().unwrap();
        while !seen.ended {
            seen = changed.wait(seen).unwrap();
        }
        (ok, std::mem::take(&mut seen.bytes), std::mem::replace(&mut seen.parser, emulator(1, 1)))
    }
}

struct Shared(Arc<Mutex<Box<dyn Write + Send>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap().flush()
    }
}

/// Displays the output and replies to queries, as a terminal would.
fn read(mut reader: Box<dyn Read + Send>, seen: &(Mutex<Seen>, Condvar), answers: &Mutex<Box<dyn Write + Send>>) {
    let mut bytes = [0; 16384];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        let questions = bytes[..count].windows(4).filter(|window| *window == b"\x1b[5n").count();
        {
            let mut seen = seen.0.lock().unwrap();
            seen.parser.process(&bytes[..count]);
            seen.bytes.extend_from_slice(&bytes[..count]);
        }
        for _ in 0..questions {
            answers.lock().unwrap().write_all(b"\x1b[0n").unwrap();
        }
        seen.1.notify_all();
    }
    seen.0.lock().unwrap().ended = true;
    seen.1.notify_all();
}

thread_local! {
    /// Whether panics on this thread will be caught.
    static IS_CONTAINED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Simulates a session by responding to the UI's commands with events.
async fn play(scene: String, mut commands: mpsc::Receiver<SessionCommand>, events: mpsc::UnboundedSender<Event>) {
    let tell = |kind| events.send(event(kind)).is_ok();
    while let Some(command) = commands.recv().await {
        let SessionCommand::Turn(command) = command else { continue };
        match command {
            Command::Prompt { text: prompt } => {
                tell(started(&prompt));
                match scene.as_str() {
                    "edit" => {
                        tell(text("I change the function.\n"));
                        tell(requested("call-a", "EditFile", "Edit src/main.rs"));
                        tell(EventKind::ApprovalRequested(edit_approval("a")));
                    }
                    "stream" => {
                        for n in 0..32_768 {
                            tell(text(&format!("word{:05} and some more text{}", n, if n % 3 == 2 { "\n\n" } else { " " })));
                        }
                        tell(text("THE END\n"));
                        done(&tell);
                    }
                    "panic" => {
                        // Frames are drawn without interruption.
                        let told = events.clone();
                        tokio::spawn(async move {
                            while told.send(event(text("more and more "))).is_ok() {
                                tokio::time::sleep(Duration::from_millis(1)).await;
                            }
                        });
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        panic!("this is a test");
                    }
                    "contained panic" => {
                        super::set_contained_check(|| IS_CONTAINED.get());
                        IS_CONTAINED.set(true);
                        let caught = std::panic::catch_unwind(|| panic!("this is a test"));
                        IS_CONTAINED.set(false);
                        assert!(caught.is_err());
                        tell(text("the session goes on\n"));
                        done(&tell);
                    }
                    "panic beside" => {
                        done(&tell);
                        std::thread::spawn(|| {
                            // By then, the UI has drawn everything.
                            std::thread::sleep(Duration::from_millis(300));
                            panic!("this is a test");
                        });
                    }
                    _ => done(&tell),
                }
            }
            Command::Decide { decision, .. } => {
                tell(text(&format!("decided: {decision:?}\n")));
                done(&tell);
            }
            Command::Quit => return,
            Command::UndoGrant
            | Command::ListGrants
            | Command::SetApprove { .. }
            | Command::ListUnasked
            | Command::AskRule { .. } => {}
            Command::ListRewindPoints | Command::PlanRewind { .. } | Command::Rewind { .. } => {}
            Command::Steer { .. } | Command::EditWaiting { .. } | Command::RetryNow => {}
            Command::Compact { .. } | Command::UndoCompaction | Command::ShowContext => {}
            Command::ShowBudget | Command::SetBudget { .. } | Command::AssumePrice { .. } => {}
            Command::SetGoal { .. } | Command::SetGoalCheck { .. } | Command::StopGoal => {}
            Command::SetModel { .. } | Command::AddKey { .. } | Command::SetEffort { .. } | Command::ListModels { .. } => {}
            Command::Preview { .. } | Command::ShowProposed { .. } | Command::Background { .. } | Command::Stop { .. } => {}
            Command::SaveDraft { .. }
            | Command::Shell { .. }
            | Command::Resolve { .. }
            | Command::SetMode { .. }
            | Command::ReloadPolicy
            | Command::Cancel
            | Command::Kill
            | Command::Finish
            | Command::Continue => {}
        }
    }
}

fn done(tell: &impl Fn(EventKind) -> bool) {
    tell(EventKind::TaskCompleted { text: "the last words".to_owned(), usage: Usage::default(), cost_usd: None, step_count: 1 });
}

#[test]
#[ignore = "run by other tests in a terminal"]
fn a_simulated_session_runs_inside_the_terminal() {
    let Ok(scene) = std::env::var("AYE_TEST_SCENE") else { return };
    let is_panic = scene == "panic";
    if scene == "contained panic" {
        // The program logs such a panic, but prints nothing.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let (commands, received) = mpsc::channel(16);
        let (told, events) = mpsc::unbounded_channel();
        let (begin, start) = oneshot::channel();
        let access = if scene == "no key" {
            ModelAccess::NoKey { message: "No key here.".to_owned(), model: None }
        } else {
            ModelAccess::Ready
        };
        begin.send(Start { model_access: access, ..fixtures::start() }).unwrap();
        if is_panic {
            // Printing takes so long that the UI ends first.
            let says = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                std::thread::sleep(Duration::from_millis(300));
                says(info);
            }));
            let editor = Editor(std::sync::Arc::new(|_, text| Ok(text.to_owned())));
            let (typed, ahead) = (String::new(), mpsc::unbounded_channel().1);
            let front = TuiHandles {
                commands,
                queries: mpsc::channel(1).0,
                events,
                options: options(),
                prompt: None,
                typed,
                start,
                ahead,
                editor,
            };
            let panics = tokio::spawn(play(scene, received, told));
            let screen = host::run(front);
            tokio::select! { _ = panics => None, outcome = screen => Some(outcome) }
        } else {
            tokio::spawn(play(scene, received, told));
            let editor = Editor(std::sync::Arc::new(|_, text| Ok(text.to_owned())));
            let (typed, ahead) = (String::new(), mpsc::unbounded_channel().1);
            Some(
                host::run(TuiHandles {
                    commands,
                    queries: mpsc::channel(1).0,
                    events,
                    options: options(),
                    prompt: None,
                    typed,
                    start,
                    ahead,
                    editor,
                })
                .await,
            )
        }
    });
    if reads_lines() {
        println!("COOKED");
    }
    if is_panic {
        // As at the end of the program, nothing waits for output of other threads.
        std::process::exit(101);
    }
    match outcome {
        Some(Ok(outcome)) => {
            println!("OUTCOME {:?} {:?} {:?}", outcome.ended, outcome.last_answer, outcome.resume_hint);
            assert_ne!(outcome.ended, ExitReason::Closed);
        }
        Some(Err(error)) => println!("ERROR {error}"),
        None => {}
    }
    runtime.shutdown_background();
}

/// Returns whether the terminal is in the line-editing mode that shells set for the programs they start.
fn reads_lines() -> bool {
    use nix::sys::termios::{LocalFlags, tcgetattr};
    tcgetattr(std::io::stdin()).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO))
}

#[test]
fn an_edit_is_approved_by_key_presses_in_a_terminal() {
    let mut terminal = Terminal::start("edit", 40, 120);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("change it\r");
    let screen = terminal.wait_for("y  yes");
    assert!(screen.contains("fn greet(name: &str) -> Result<String, GreetError>"), "{screen}");
    terminal.wait(|screen| !screen.contains("◔"));
    terminal.send("y");
    terminal.wait_for("decided: Approved");
    terminal.send("\x04");
    let (ok, bytes, parser) = terminal.finish();
    assert!(ok);
    assert!(parser.screen().contents().contains("OUTCOME Quit Some(\"the last words\") Some(\"aye --resume=7f3a0c\")"));
    assert!(!parser.screen().alternate_screen() && !parser.screen().bracketed_paste() && !parser.screen().hide_cursor());
    assert!(bytes.windows(4).any(|window| window == b"\x1b[5n"));
}

#[test]
fn a_sentence_typed_while_a_dialog_opens_stays_in_the_draft() {
    let mut terminal = Terminal::start("edit", 30, 100);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("change it\ryes please y n a");
    let screen = terminal.wait(|screen| screen.contains("❯ yes please y n a") && screen.contains("tab to review"));
    assert!(!screen.contains("decided"), "{screen}");
    terminal.send("\t");
    terminal.wait_for("draft: yes please y n a");
    terminal.send("\x1b");
    terminal.wait_for("❯ yes please y n a");
    terminal.send("\x03\x04\x04");
    assert!(terminal.finish().0);
}

#[test]
fn a_long_response_is_drawn_with_few_bytes() {
    let mut terminal = Terminal::start("stream", 40, 120);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("go\r");
    terminal.wait_for("THE END");
    terminal.wait_for("Ask, or describe a change");
    terminal.send("\x04");
    let (ok, bytes, _) = terminal.finish();
    assert!(ok);
    assert!(bytes.len() < 1_000_000, "{} bytes", bytes.len());
}

#[test]
fn a_signal_restores_the_terminal_and_is_reported() {
    use nix::sys::signal::{Signal, kill};
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut terminal = Terminal::start("edit", 24, 80);
        terminal.wait_for("Ask, or describe a change");
        terminal.send("change it\r");
        terminal.wait_for("y  yes");
        let pid = terminal.child.process_id().unwrap();
        kill(nix::unistd::Pid::from_raw(pid.cast_signed()), signal).unwrap();
        let (ok, _, parser) = terminal.finish();
        let screen = parser.screen();
        assert!(ok && !screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor(), "{signal}");
        assert!(screen.contents().contains(&format!("OUTCOME Signal({})", signal as i32)), "{}", screen.contents());
        assert!(screen.contents().contains("COOKED"), "{signal}");
    }
}

/// Replies of a terminal that supports every feature. [`SWITCHED`] contains the sequences that enable and disable the
/// modes aye then uses.
const ANSWERS: &str = "\x1b[?0u\x1b[?2026;2$y\x1b[?2027;2$y\x1b[?2031;2$y\x1b[?62c";
const SWITCHED: [(&str, &str); 4] =
    [("\x1b[>1u", "\x1b[<u"), ("\x1b[?2027h", "\x1b[?2027l"), ("\x1b[?2031h", "\x1b[?2031l"), ("\x1b[?7l", "\x1b[?7h")];

#[track_caller]
fn check_switched_off(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (on, off) in SWITCHED {
        let (on, off) = (text.rfind(on), text.rfind(off));
        assert!(on.is_some() && on < off, "{on:?} {off:?}");
    }
}

#[test]
fn terminal_modes_are_reset_on_exit_signal_and_panic() {
    use nix::sys::signal::{Signal, kill};
    for end in [None, Some(Signal::SIGTERM), Some(Signal::SIGHUP)] {
        let mut terminal = Terminal::start("edit", 24, 80);
        terminal.wait_for("Ask, or describe a change");
        terminal.send(ANSWERS);
        terminal.wait_for("shift+enter new line");
        match end {
            None => terminal.send("\x04"),
            Some(signal) => {
                let pid = terminal.child.process_id().unwrap();
                kill(nix::unistd::Pid::from_raw(pid.cast_signed()), signal).unwrap();
            }
        }
        let (_, bytes, _) = terminal.finish();
        check_switched_off(&bytes);
    }
    let mut terminal = Terminal::start("panic", 24, 80);
    terminal.wait_for("Ask, or describe a change");
    terminal.send(ANSWERS);
    terminal.wait_for("shift+enter new line");
    terminal.send("go\r");
    let (_, bytes, _) = terminal.finish();
    check_switched_off(&bytes);
}

#[test]
fn a_contained_panic_leaves_the_screen_unchanged() {
    let mut terminal = Terminal::start("contained panic", 24, 80);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("go\r");
    terminal.wait_for("the session goes on");
    terminal.send("still here");
    terminal.wait_for("❯ still here");
    terminal.send("\x03\x04");
    let (ok, _, parser) = terminal.finish();
    let shown = parser.screen().contents();
    assert!(ok && shown.contains("OUTCOME Quit Some(\"the last words\")"), "{shown}");
}

#[test]
fn a_background_panic_ends_the_tui_even_without_a_redraw() {
    let mut terminal = Terminal::start("panic beside", 24, 80);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("go\r");
    let (ok, _, parser) = terminal.finish();
    let shown = parser.screen().contents();
    assert!(ok && shown.contains("COOKED") && shown.contains("ERROR aye panicked and released"), "{shown}");
}

#[test]
fn a_panic_restores_the_terminal() {
    let mut terminal = Terminal::start("panic", 24, 80);
    terminal.wait_for("Ask, or describe a change");
    terminal.send("go\r");
    let (_, bytes, parser) = terminal.finish();
    assert!(!parser.screen().alternate_screen() && !parser.screen().hide_cursor());
    let left = bytes.windows(8).position(|window| window == b"\x1b[?1049l").unwrap();
    assert!(String::from_utf8_lossy(&bytes[left..]).contains("this is a test"));
    assert!(String::from_utf8_lossy(&bytes[left..]).contains("COOKED"));
}

#[test]
fn without_an_api_key_nothing_is_sent_and_the_draft_stays() {
    let mut terminal = Terminal::start("no key", 24, 80);
    terminal.wait_for("No key here.");
    terminal.send("explain it\r");
    terminal.wait(|screen| screen.contains("not sent: No key here") && screen.contains("❯ explain it"));
    terminal.send("\x03\x04");
    assert!(terminal.finish().0);
}
