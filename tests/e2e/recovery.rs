//! Recovery: calls left open by a crash, and sessions locked by another process.
#![cfg(target_os = "linux")]

use crate::support::{Answer, Project, Server, TIMEOUT, processes_running, texts, wait_until};
use nix::fcntl::OFlag;
use nix::pty::PtyMaster;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn aye(project: &Project, arguments: &[&str]) -> Child {
    project.command(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs aye and kills it when it reports the start of a call.
fn killed_as_a_call_begins(project: &Project) {
    let mut child = aye(project, &["exec", "--json", "--trust", "write it"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let begun = lines.by_ref().map_while(Result::ok).any(|line| {
        let event: Value = serde_json::from_str(&line).unwrap();
        event["eventType"] == "tool_started"
    });
    assert!(begun, "no call began");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn holds(file: &Path, text: &str) -> bool {
    std::fs::read(file).is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[test]
fn after_a_crash_the_outcome_of_a_write_is_determined_from_the_file() {
    for lines in [1, 10_000, 50_000] {
        let content = "all new\n".repeat(lines);
        let write = json!({"path": "notes.txt", "content": content});
        // The task cannot end before the crash, even if the kill is late.
        let is_killed = Arc::new(AtomicBool::new(false));
        let may_end = Arc::clone(&is_killed);
        let server = Server::with_responder(move |request| {
            if request.tool_results().is_empty() {
                Answer::call("call_1", "WriteFile", write.clone())
            } else if may_end.load(Ordering::SeqCst) {
                Answer::text("Done.")
            } else {
                Answer::text("Not yet").then_stalled()
            }
        });
        let project = Project::with(&server).allowing_everything().file("notes.txt", "as it was\n");
        killed_as_a_call_begins(&project);
        is_killed.store(true, Ordering::SeqCst);
        let resumed = project.aye(&["exec", "--trust", "-c"]).exits(0);
        assert!(resumed.stdout.contains("Done."), "{lines} lines\n{}", resumed.stderr);
        assert!(!resumed.stderr.contains("OUTCOME_UNKNOWN"), "{lines} lines\n{}", resumed.stderr);
        assert_eq!(project.read("notes.txt").len(), content.len(), "{lines} lines");
        let (_, result) = server.requests().last().unwrap().tool_results().pop().unwrap();
        assert!(result.contains("done") || result.contains("Wrote"), "{result}");
    }
}

#[test]
fn the_last_command_output_before_a_crash_is_sent_to_the_model() {
    let line = json!({"command": "echo half-$((40+2)); touch began; sleep 6161.7"});
    let server = Server::new([Answer::call("call_1", "RunCommand", line), Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything();
    let mut child = aye(&project, &["exec", "--trust", "run it"]);
    let log = project.path("../data/aye.db-wal");
    assert!(wait_until(TIMEOUT, || holds(&log, "half-42")), "what it printed was not kept");
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = project.aye(&["exec", "--trust", "-c"]).exits(0);
    assert!(resumed.stdout.contains("Done."), "{}", resumed.stderr);
    let (_, result) = server.request(1).tool_results().pop().unwrap();
    assert!(result.contains("half-42") && result.contains("aye exited while this call ran"), "{result}");
}

#[test]
fn taking_over_an_open_session_makes_its_process_save_and_exit() {
    let line = json!({"command": "touch began; sleep 6161.8"});
    let server = Server::new([Answer::call("call_1", "RunCommand", line), Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything();
    let holder = project.start(&["exec", "--trust", "run it"]);
    assert!(wait_until(TIMEOUT, || project.exists("began")), "it never began");
    let refused = project.aye(&["exec", "--trust", "-c"]).exits(2);
    assert!(refused.stderr.contains(texts::BY_PROCESS) && refused.stderr.contains("--take-over"), "{}", refused.stderr);
    let taken = project.aye(&["exec", "--trust", "-c", "--take-over"]).exits(0);
    assert!(taken.stdout.contains("Done."), "{}", taken.stderr);
    holder.finish().exits(143);
}

#[test]
fn sighup_ends_a_run_unless_it_is_ignored() {
    let line = json!({"command": "touch began; until [ -e go ]; do sleep 0.05; done"});
    let script = || [Answer::call("call_1", "RunCommand", line.clone()), Answer::text("Done.")];
    let server = Server::new(script());
    let project = Project::with(&server).allowing_everything();
    let running = project.start(&["exec", "--trust", "run it"]);
    assert!(wait_until(TIMEOUT, || project.exists("began")), "it never began");
    running.signal(Signal::SIGHUP);
    running.finish().exits(143);
    project.aye(&["exec", "--trust", "-c"]).exits(0);

    let server = Server::new(script());
    let project = Project::with(&server).allowing_everything();
    let mut child = Command::new("nohup")
        .args([env!("CARGO_BIN_EXE_aye"), "exec", "--trust", "run it"])
        .current_dir(project.path(""))
        .env_clear()
        .envs(project.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_until(TIMEOUT, || project.exists("began")), "it never began");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGHUP).unwrap();
    std::fs::write(project.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_session_open_elsewhere_can_be_viewed_or_taken_over_on_the_screen() {
    let line = json!({"command": "touch began; sleep 6161.9"});
    let server = Server::new([Answer::call("call_1", "RunCommand", line), Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything();
    let holder = project.start(&["exec", "--trust", "run it for me"]);
    assert!(wait_until(TIMEOUT, || project.exists("began")), "it never began");
    let mut terminal = project.open(&["--trust", "-c"]);
    terminal.wait_for(texts::OPEN_IN_PROCESS);
    terminal.decide('r');
    terminal.wait_for("read-only: open in process");
    terminal.wait_for("run it for me");
    assert!(terminal.quit().success());
    let mut terminal = project.open(&["--trust", "-c"]);
    terminal.wait_for(texts::OPEN_IN_PROCESS);
    terminal.decide('t');
    terminal.wait_for("to save and exit");
    holder.finish().exits(143);
    let screen = terminal.wait_for("run it for me");
    assert!(!screen.contains("read-only"), "{screen}");
    assert!(terminal.quit().success());
}

/// Terminal window with aye in it. Only this value keeps the terminal open.
struct Window {
    child: Child,
    line: PtyMaster,
}

impl Window {
    fn open(project: &Project, shell: &str) -> Self {
        // `O_CLOEXEC` prevents processes of other tests from keeping the terminal open.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let line = nix::pty::posix_openpt(flags).unwrap();
        nix::pty::grantpt(&line).unwrap();
        nix::pty::unlockpt(&line).unwrap();
        let name = nix::pty::ptsname_r(&line).unwrap();
        // Without `O_NOCTTY`, a test run under `setsid` would get the terminal as its controlling terminal, which an
        // ordinary user cannot undo.
        let own = OFlag::O_NOCTTY.bits();
        let end = || Stdio::from(std::fs::OpenOptions::new().read(true).write(true).custom_flags(own).open(&name).unwrap());
        let child = Command::new("setsid")
            .args(["-c", "bash", "-c", shell])
            .current_dir(project.path(""))
            .env_clear()
            .envs(project.environment())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Self { child, line }
    }

    /// Reads the output until the condition holds, so that the terminal buffer does not fill up. Returns whether the
    /// condition held in time.
    fn until(&mut self, condition: impl Fn() -> bool) -> bool {
        let line = &mut self.line;
        wait_until(TIMEOUT, || {
            let mut bytes = [0; 8192];
            while matches!(line.read(&mut bytes), Ok(1..)) {}
            condition()
        })
    }

    /// Closes the window while aye runs in it. Returns the process.
    fn vanish(self) -> Child {
        self.child
    }
}

#[test]
fn a_closed_terminal_ends_the_screen_and_its_commands_even_if_sighup_is_ignored() {
    let seconds = format!("6162.{}", std::process::id());
    for ignores in ["", "trap '' HUP; "] {
        let line = json!({"command": format!("touch began; sleep {seconds}")});
        let server = Server::new([Answer::call("call_1", "RunCommand", line), Answer::text("Done.")]);
        let project = Project::with(&server).allowing_everything();
        let shell = format!("{ignores}exec '{}' --trust 'run it for me'", env!("CARGO_BIN_EXE_aye"));
        let mut window = Window::open(&project, &shell);
        assert!(window.until(|| project.exists("began")), "it never began");
        let mut child = window.vanish();
        let ended = wait_until(TIMEOUT, || child.try_wait().unwrap().is_some());
        if !ended {
            child.kill().unwrap();
        }
        assert!(ended, "it goes on without a terminal: {ignores:?}");
        assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0), "what it ran goes on");
        let resumed = project.aye(&["exec", "--trust", "-c"]).exits(0);
        assert!(resumed.stdout.contains("Done."), "{}", resumed.stderr);
    }
}

#[test]
fn a_session_can_continue_unsaved_on_a_full_disk_and_is_saved_once_space_is_free() {
    let possible = Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success());
    if !possible {
        println!("skipped: this system lets nobody mount a disk of his own");
        return;
    }
    let long = "long words ".repeat(4_000);
    let call = |id: &str, command: &str| Answer::text(&long).and_call(id, "RunCommand", json!({"command": command}));
    let server = Server::new([
        Answer::call("call_1", "RunCommand", json!({"command": "dd if=/dev/zero of=../data/filler bs=4k 2>/dev/null; true"})),
        call("call_2", "echo 2 >> ledger"),
        call("call_3", "echo 3 >> ledger; dd if=/dev/null of=../data/filler 2>/dev/null"),
        Answer::text("All of it is done."),
    ]);
    let project = Project::with(&server).allowing_everything();
    let data = project.directory("data");
    let script = format!(
        "set -e; mount -t tmpfs -o size=1m none '{0}'; cd .; '{1}' --trust 'fill it'; '{1}' exec --trust -c >after 2>&1 || true",
        data.display(),
        env!("CARGO_BIN_EXE_aye")
    );
    let mut terminal = project.open_program("unshare", &["-Urm", "bash", "-c", &script]);
    terminal.wait_for("Cannot save this session (disk full");
    assert!(!project.exists("ledger"), "it went on by itself");
    terminal.wait_for("r retry");
    // The key takes effect only after the notice has been visible for a while. An earlier key counts as typed text.
    std::thread::sleep(std::time::Duration::from_millis(700));
    terminal.send("c");
    terminal.wait_for("All of it is done.");
    terminal.wait_for("saving works again");
    assert_eq!(project.read("ledger"), "2\n3\n");
    assert!(terminal.quit().success());
    let after = project.read("after");
    assert!(after.contains(texts::NOTHING_TO_CONTINUE), "{after}");
}
