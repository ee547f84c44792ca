//! `kill -9` at random moments: no effect is lost, and none is repeated.
#![cfg(target_os = "linux")]

use crate::support::story::{seed, wanted};
use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, processes_running, texts, wait_until};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Number of kills in the long run, which is an ignored test.
const MANY_KILLS: usize = 2_000;
const KILLS: usize = 40;
const ANSWERS: usize = 150;

/// Generator of reproducible pseudo-random numbers.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Returns a response with commands that record their numbers in `ledger`. Some of them sleep until they are killed,
/// unless the project contains the file `calm`.
fn answer(number: usize, seconds: &str) -> Answer {
    let note = |part: usize| format!("echo {number}.{part} >> ledger");
    let stay = format!("; [ -e calm ] || sleep {seconds}");
    let line = |part| json!({"command": if number % 4 == 3 { note(part) + &stay } else { note(part) }});
    let write = json!({"path": format!("written/{number}.txt"), "content": "x\n".repeat(number), "createDirectories": true});
    let answer = Answer::text(&format!("Step {number}.")).and_call(&format!("{number}.0"), "RunCommand", line(0));
    match number % 3 {
        0 => answer,
        1 => answer.and_call(&format!("{number}.1"), "RunCommand", line(1)),
        _ => answer.and_call(&format!("{number}.w"), "WriteFile", write).and_call(
            &format!("{number}.r"),
            "ReadFile",
            json!({"path": "ledger"}),
        ),
    }
}

struct Run {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Run {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut child = project
            .command(&["exec", "--json", "--trust", "--max-steps", "1000"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn event(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Reads up to `lines` lines, or until a long-running command has started. Returns whether the process is still
    /// running.
    fn follow(&mut self, lines: u64, seconds: &str) -> bool {
        for _ in 0..lines {
            let Some(event) = self.event() else { return false };
            if event["eventType"] == "tool_started" && stays(&event) {
                assert!(wait_until(TIMEOUT, || processes_running(&["sleep", seconds]) > 0), "it never began to wait");
                return true;
            }
        }
        true
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of the process and returns its events, its exit code and stderr.
    fn finish(mut self) -> (Vec<Value>, Option<i32>, String) {
        let events = std::iter::from_fn(|| self.event()).collect();
        let code = self.child.wait().unwrap().code();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (events, code, said)
    }
}

fn stays(event: &Value) -> bool {
    let id = event["payload"]["toolCallId"].as_str().unwrap_or_default();
    let number: Option<usize> = id.split('.').next().and_then(|number| number.parse().ok());
    number.is_some_and(|number| number % 4 == 3) && !id.ends_with(['w', 'r'])
}

/// Collects the names of all files below a directory.
fn files(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), found);
        } else {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn a_repeatedly_killed_task_runs_each_effect_at_most_once_and_completes() {
    rounds_of_kills(wanted(KILLS, 10).div_ceil(KILLS));
}

#[test]
#[ignore = "takes half an hour or more; run it with `cargo test --test e2e -- --ignored --nocapture two_thousand`"]
fn two_thousand_seeded_kills_lose_no_effect_and_repeat_none() {
    rounds_of_kills(MANY_KILLS.div_ceil(KILLS));
}

/// Runs rounds of kills, one session per round. `AYE_CRASH_SEED` determines the moments of the kills.
fn rounds_of_kills(rounds: usize) {
    let mut random = Seeded(seed());
    println!("seed {}", random.0);
    for round in 1..=rounds {
        killed_again_and_again(&mut random, round);
        println!("moments nobody chose: {} of {} kills", round * KILLS, rounds * KILLS);
    }
}

fn killed_again_and_again(random: &mut Seeded, round: usize) {
    let seconds = format!("6161.{}{round:03}", std::process::id());
    let script = (1..=ANSWERS).map(|number| answer(number, &seconds));
    let server = Server::new(script.chain([Answer::text("All is done.")]));
    let project = Project::with(&server).allowing_everything();
    for kill in 0..KILLS {
        let arguments: &[&str] = if kill == 0 { &["do all the steps"] } else { &["-c"] };
        let mut run = Run::start(&project, arguments);
        let lines = 2 + random.below(24);
        let runs = run.follow(lines, &seconds);
        assert!(runs, "kill {kill}: it ended by itself after less than {lines} lines: {:?}", run.finish());
        for _ in 0..random.below(2_000) {
            std::thread::yield_now();
        }
        run.kill();
        assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0), "a command outlives aye");
    }
    std::fs::write(project.path("calm"), "").unwrap();
    let (events, code, said) = Run::start(&project, &["-c"]).finish();
    assert_eq!(code, Some(0), "{said}\n{:?}", events.last());
    let ended: Vec<_> = events.iter().filter(|event| event["eventType"] == "task_completed").collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["payload"]["text"], "All is done.");
    check_ledger(&project, &server);
    check_files(&project);
    check_store(&project);
}

/// Checks that the results sent to the model match the actual effects.
fn check_ledger(project: &Project, server: &Server) {
    let mut noted: HashMap<String, usize> = HashMap::new();
    for line in project.read("ledger").lines() {
        *noted.entry(line.to_owned()).or_default() += 1;
    }
    let last = server.requests().pop().unwrap();
    let told = last.tool_results();
    let mut unknown = 0;
    for (id, text) in told.iter().filter(|(id, _)| !id.ends_with(['w', 'r'])) {
        let times = noted.remove(id).unwrap_or(0);
        if text.contains("OUTCOME_UNKNOWN") {
            unknown += 1;
            assert!(times <= 1, "{id} was done {times} times");
        } else {
            assert_eq!(times, 1, "{id} was done {times} times: {text}");
        }
    }
    assert!(noted.is_empty(), "done, and the model does not know of it: {noted:?}");
    assert!(unknown > 0, "no kill met a command");
    assert!(last.messages().matches("do all the steps").count() == 1);
}

fn check_files(project: &Project) {
    let mut found = Vec::new();
    files(&project.path(""), &mut found);
    let strange = |name: &String| name.starts_with('.');
    found.retain(strange);
    assert!(found.is_empty(), "left behind: {found:?}");
}

fn check_store(project: &Project) {
    let store = rusqlite::Connection::open(project.directory("data").join("aye.db")).unwrap();
    let verdict: String = store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let sessions: i64 = store.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(sessions, 1, "the session is there once");
    let damaged = std::fs::read_dir(project.directory("data")).unwrap().flatten();
    let damaged: Vec<_> = damaged.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).collect();
    assert!(damaged.is_empty(), "{damaged:?}");
}

/// Continues a resumed session: reports a call with an unknown outcome to the model, or continues the paused task.
fn go_on(terminal: &mut Terminal) {
    let screen = terminal.wait_that("it says where it stands", |screen| {
        screen.contains(texts::OUTCOME_UNKNOWN) || screen.contains("aye exited during")
    });
    if screen.contains(texts::OUTCOME_UNKNOWN) {
        terminal.decide('t');
    } else {
        terminal.prompt("/continue");
    }
}

#[test]
fn a_killed_screen_session_continues_where_it_stopped() {
    const STEPS: usize = 8;
    let seconds = format!("6162.{}", std::process::id());
    let step = |number: usize| {
        let command = json!({"command": format!("echo {number}.0 >> ledger; [ -e calm ] || sleep {seconds}")});
        Answer::text(&format!("Step {number}.")).and_call(&format!("{number}.0"), "RunCommand", command)
    };
    let server = Server::new((1..=STEPS).map(step).chain([Answer::text("All is done.")]));
    let project = Project::with(&server).allowing_everything();
    let mut terminal = project.open(&[]);
    terminal.prompt("do all the steps");
    for number in 1..=4 {
        let noted = format!("{number}.0\n");
        let reached =
            wait_until(TIMEOUT, || std::fs::read_to_string(project.path("ledger")).is_ok_and(|ledger| ledger.ends_with(&noted)));
        assert!(reached, "step {number} never came\n{}", terminal.screen());
        terminal.kill();
        assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0), "a command outlives aye");
        if number == 4 {
            std::fs::write(project.path("calm"), "").unwrap();
        }
        terminal = project.open(&["--resume"]);
        go_on(&mut terminal);
    }
    terminal.wait_for("All is done.");
    let told = server.request(STEPS).tool_results();
    assert_eq!(told.len(), STEPS);
    assert_eq!(told.iter().filter(|(_, text)| text.contains("OUTCOME_UNKNOWN")).count(), 4, "{told:?}");
    let ledger: Vec<_> = (1..=STEPS).map(|number| format!("{number}.0")).collect();
    assert_eq!(project.read("ledger").lines().collect::<Vec<_>>(), ledger);
}

#[test]
fn continuing_a_completed_session_prints_its_result_again() {
    let server = Server::new([Answer::text("Done.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "a question"]).exits(0);
    let output = project.aye(&["exec", "-c"]).exits(0).says(&[texts::NOTHING_TO_CONTINUE]);
    assert_eq!(output.stdout, "Done.\n");
    let event = project.aye(&["exec", "-c", "--output-format", "json"]).exits(0).json();
    assert_eq!(event["eventType"], "task_completed", "{event}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn continuing_a_session_retries_a_failed_task() {
    let server = Server::new([Answer::error(401, "authentication_error", "bad key"), Answer::text("Done.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "a question"]).exits(5);
    let output = project.aye(&["exec", "-c"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "Done.");
    assert!(server.request(1).messages().contains("a question"));
}

/// A command that a signal stopped has an outcome, so the user is not asked.
#[test]
fn a_signal_stops_the_running_command_and_its_outcome_is_recorded() {
    let seconds = format!("6163.{}", std::process::id());
    let command = json!({"command": format!("echo once >> ledger; sleep {seconds}")});
    let server = Server::new([Answer::call("call_1", "RunCommand", command), Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything();
    let running = project.start(&["exec", "--trust", "run it"]);
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) > 0), "it never ran");
    running.signal(nix::sys::signal::Signal::SIGTERM);
    running.finish().exits(143);
    assert_eq!(processes_running(&["sleep", &seconds]), 0);
    project.aye(&["exec", "--trust", "-c"]).exits(0);
    let told = server.request(1).tool_results();
    assert!(!told[0].1.contains("OUTCOME_UNKNOWN"), "{told:?}");
    assert_eq!(project.read("ledger"), "once\n");
}

#[test]
fn quitting_the_screen_stops_the_running_command_and_its_outcome_is_recorded() {
    let seconds = format!("6164.1{}", std::process::id());
    let command = json!({"command": format!("echo once >> ledger; sleep {seconds}")});
    let server = Server::new([Answer::call("call_1", "RunCommand", command), Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything();
    let mut terminal = project.open(&[]);
    terminal.prompt("run it");
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) > 0), "it never ran");
    terminal.signal(nix::sys::signal::Signal::SIGTERM);
    terminal.finish();
    assert_eq!(processes_running(&["sleep", &seconds]), 0);
    project.aye(&["exec", "--trust", "-c"]).exits(0);
    let told = server.request(1).tool_results();
    assert!(!told[0].1.contains("OUTCOME_UNKNOWN"), "{told:?}");
    assert_eq!(project.read("ledger"), "once\n");
}

/// Returns a shell with a small disk as its data directory, or `None`, with a message, if this system does not allow
/// mounts.
fn on_a_small_disk(project: &Project, script: &str) -> Option<Command> {
    let possible = Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success());
    if !possible {
        println!("skipped: this system lets nobody mount a disk of his own");
        return None;
    }
    let data = project.directory("data");
    let script = format!("set -e; mount -t tmpfs -o size=1m none '{0}'; cd .; data='{0}'; {script}", data.display());
    let mut command = Command::new("unshare");
    command.args(["-Urm", "bash", "-c", &script]);
    command.current_dir(project.path("")).env_clear().envs(project.environment());
    Some(command)
}

#[test]
fn a_full_disk_pauses_before_the_next_effect_and_the_session_continues_later() {
    let command = |number: usize| json!({"command": format!("echo {number} >> ledger")});
    // The first command fills the disk of the store, so the second command cannot be recorded before it runs.
    let fill = json!({"command": "echo 1 >> ledger; dd if=/dev/zero of=../data/filler bs=4k 2>/dev/null; true"});
    let server = Server::new([
        Answer::call("call_1", "RunCommand", fill),
        Answer::text(&"long words ".repeat(4_000)).and_call("call_2", "RunCommand", command(2)),
        Answer::text(&"long words ".repeat(4_000)).and_call("call_3", "RunCommand", command(3)),
        Answer::call("call_4", "RunCommand", command(4)),
        Answer::text("Done."),
    ]);
    let project = Project::with(&server).allowing_everything();
    let script = format!(
        "'{0}' exec --trust 'fill it' >first 2>&1 || echo \"code $?\" >>first; cat ledger >before; \
         rm \"$data/filler\"; '{0}' exec --trust -c >second 2>&1 || echo \"code $?\" >>second",
        env!("CARGO_BIN_EXE_aye")
    );
    let Some(mut shell) = on_a_small_disk(&project, &script) else { return };
    let status = shell.status().unwrap();
    let (first, second) = (project.read("first"), project.read("second"));
    assert!(status.success(), "{first}\n{second}");
    assert!(first.contains("Cannot save this session (disk full, ") && first.contains(" free in `"), "{first}");
    assert!(first.contains("`aye exec -c`") && first.ends_with("code 1\n"), "{first}");
    assert!(second.contains("Done."), "{second}");
    let before = project.read("before");
    assert!(!before.contains('4'), "it went on unsaved: {before}");
    let ledger = project.read("ledger");
    let mut lines: Vec<_> = ledger.lines().collect();
    assert!(ledger.starts_with(&before));
    lines.dedup();
    assert_eq!(lines.join("\n") + "\n", ledger, "something was done twice");
    let told = server.requests().pop().unwrap();
    assert!(told.messages().contains("fill it"));
    assert_eq!(told.tool_results()[0].0, "call_1", "{:?}", told.tool_results());
}
