//! Startup: the screen appears before the store is open, keys typed in the meantime are preserved, and errors are
//! reported.

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, wait_until};
use serde_json::json;
use std::fs::File;
use std::process::Command;

/// Locks the store, so that no other process can open it until the returned file is dropped.
fn closed(project: &Project) -> File {
    let lock = File::options().create(true).write(true).truncate(false).open(project.directory("data").join("aye.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

fn begun(project: &Project, arguments: &[&str], typed: &str) -> Terminal {
    let mut terminal = project.open_sized(arguments, 120, 30);
    terminal.wait_for("starting");
    terminal.type_text(typed, 2);
    terminal.wait_for(typed);
    terminal
}

#[test]
fn text_typed_before_the_store_is_open_is_sent_or_stays_in_the_draft() {
    let server = Server::new([Answer::text("The answer.")]);
    let project = Project::with(&server);
    let lock = closed(&project);
    let mut terminal = begun(&project, &[], "a question");
    terminal.enter();
    terminal.type_text("half a thought", 2);
    terminal.wait_for("❯ half a thought");
    assert_eq!(server.requests().len(), 0);
    drop(lock);
    let screen = terminal.wait_for("The answer.");
    assert!(screen.contains("❯ half a thought"), "{screen}");
    assert!(server.request(0).messages().contains("a question"));
}

#[test]
fn text_typed_at_startup_becomes_the_draft_of_the_chosen_session() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    project.aye(&["exec", "the second thing"]).exits(0);
    let lock = closed(&project);
    let mut terminal = begun(&project, &["--resume"], "half a thought");
    drop(lock);
    terminal.wait_for("the first thing");
    terminal.send("\x1b[B");
    terminal.wait_that("the older one is highlighted", |screen| {
        screen.lines().any(|line| line.contains("the first thing") && (line.contains('❯') || line.contains('>')))
    });
    terminal.enter();
    terminal.wait_for("One.");
    terminal.wait_for("❯ half a thought");
    terminal.enter();
    terminal.wait_for("Three.");
    assert!(server.request(2).messages().contains("half a thought"));
}

#[test]
fn a_failed_start_prints_its_reason_and_the_unsent_text_on_the_main_screen() {
    let project = Project::empty();
    let lock = closed(&project);
    let mut terminal = begun(&project, &["--resume=abcdef12"], "half a thought");
    drop(lock);
    let screen = terminal.wait_for("unknown session `abcdef12`");
    assert_eq!(terminal.finish().exit_code(), 2, "{screen}");
    terminal.wait_for("your unsent text: half a thought");
    terminal.assert_restored();
}

#[test]
fn a_draft_left_before_the_session_is_open_is_saved_in_the_session() {
    let server = Server::new([Answer::text("The answer.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "a question"]).exits(0);
    let lock = closed(&project);
    let mut terminal = begun(&project, &["-c"], "half a thought");
    terminal.signal(nix::sys::signal::Signal::SIGTERM);
    terminal.wait_until_gone("starting");
    drop(lock);
    assert_eq!(terminal.finish().exit_code(), 143);
    let mut terminal = project.open(&["-c"]);
    terminal.wait_for("❯ half a thought");
}

#[test]
fn a_long_session_open_in_another_process_opens_read_only_at_its_end() {
    const STEPS: usize = 130;
    let read = |step: usize| {
        let arguments = json!({"path": "note.txt", "offset": step + 1, "limit": 1});
        Answer::text(&format!("Looking for the time number {step}.")).and_call(&format!("call_{step}"), "ReadFile", arguments)
    };
    let server = Server::new((0..STEPS).map(read).chain([Answer::text("All of it was read.")]));
    let project = Project::with(&server).file("note.txt", &"one line\n".repeat(STEPS + 1));
    project.aye(&["exec", "--max-steps", "500", "the very first question"]).exits(0);
    let mut holder = project.open(&["-c"]);
    holder.wait_for("All of it was read.");
    let mut terminal = project.open_sized(&["-c"], 120, 30);
    let screen = terminal.wait_for(&format!("is open in process {} (since ", holder.pid()));
    assert!(screen.contains(" UTC)"), "{screen}");
    terminal.decide('r');
    terminal.wait_for("read-only: open in process");
    terminal.wait_for("All of it was read.");
    let reached = wait_until(TIMEOUT, || {
        terminal.send("\x1b[H");
        terminal.screen().contains("the very first question")
    });
    assert!(reached, "{}", terminal.screen());
    terminal.send("\x1b[F");
    terminal.wait_for("All of it was read.");
    assert!(terminal.quit().success());
}

#[test]
fn the_start_screen_shows_uncommitted_changes() {
    let server = Server::new([Answer::text("Validated.")]);
    let project = Project::with(&server).file("name.rs", "fn name() {}\n").file("other.rs", "");
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(words).current_dir(project.path(""));
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q"]) {
        eprintln!("skipped: there is no git");
        return;
    }
    assert!(git(&["add", "."]) && git(&["commit", "-q", "-m", "one"]));
    project.aye(&["exec", "Validate the name"]).exits(0);
    std::fs::write(project.path("name.rs"), "fn name() { todo!() }\n").unwrap();
    std::fs::write(project.path("new.rs"), "").unwrap();
    let mut terminal = project.open_sized(&[], 140, 30);
    let screen = terminal.wait_for("Last session: \"Validate the name\"");
    assert!(screen.contains("just now; run `aye --resume="), "{screen}");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("2 uncommitted changes in the repository"), "{screen}");
}
