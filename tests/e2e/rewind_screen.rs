//! Rewind and redo with the keys of the screen, and a session that is open on another screen.

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::json;
use std::fs;

fn scripted() -> Server {
    Server::new([
        Answer::call("call_1", "WriteFile", json!({"path": "written.txt", "content": "by a tool\n"})),
        Answer::call("call_2", "WriteFile", json!({"path": "new.txt", "content": "made\n"})),
        Answer::text("Both are done."),
        Answer::text("And so is this."),
    ])
}

/// Policy without approvals that also allows rewinds to remove files.
const POLICY: &str = r#"
schema_version = 1

[capabilities."File.Read"]
allowed_paths = ["${workspace}"]

[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = false

[capabilities."File.Delete"]
allowed_paths = ["${workspace}"]
requires_approval = false
"#;

fn project(server: &Server) -> Project {
    Project::with(server).policy(POLICY).file("written.txt", "old\n")
}

/// Starts a session with one completed prompt.
#[track_caller]
fn done(project: &Project) -> Terminal {
    let mut terminal = project.open_sized(&[], 100, 36);
    terminal.prompt("do both");
    terminal.wait_for("Both are done.");
    // The text appears before the task has ended, and a running task cannot be rewound.
    terminal.wait_for(texts::EMPTY_DRAFT);
    terminal
}

#[track_caller]
fn holds(project: &Project, path: &str, text: &str) {
    assert!(wait_until(TIMEOUT, || fs::read_to_string(project.path(path)).is_ok_and(|now| now == text)), "{path}: {text}");
}

#[test]
fn a_prompt_is_undone_and_redone_with_its_files() {
    let server = scripted();
    let project = project(&server);
    let mut terminal = done(&project);
    terminal.prompt("/undo");
    let screen = terminal.wait_that("the plan is shown", |screen| screen.contains("Rewind to before prompt 1: do both"));
    for words in ["written.txt", "new.txt", "deleted", "conversation and files", "files only", "show the diff"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    assert_eq!(project.read("written.txt"), "by a tool\n", "nothing is done yet");
    terminal.decide('1');
    holds(&project, "written.txt", "old\n");
    assert!(wait_until(TIMEOUT, || !project.exists("new.txt")));
    let screen = terminal.wait_for("/redo");
    assert!(screen.contains("│ Both are done."), "what was undone is marked\n{screen}");
    terminal.wait_that("the prompt is back", |screen| screen.contains("❯ do both"));
    // The restored prompt is cleared instead of sent.
    terminal.send("\x15");
    terminal.wait_for(texts::EMPTY_DRAFT);
    terminal.prompt("/redo");
    terminal.wait_for("Redo: undo the last rewind");
    terminal.decide('1');
    holds(&project, "written.txt", "by a tool\n");
    holds(&project, "new.txt", "made\n");
    terminal.wait_until_gone(" │Both are done.");
}

#[test]
fn a_fork_before_a_prompt_has_the_prompt_as_its_draft_and_files_are_kept() {
    let server = Server::new(["One.", "Two.", "Three."].map(Answer::text));
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 100, 36);
    terminal.prompt("the first thing");
    terminal.wait_for("One.");
    terminal.prompt("the second thing");
    terminal.wait_for("Two.");
    terminal.prompt("/undo");
    terminal.wait_for("fork instead: copy the session up to before prompt 2");
    terminal.decide('f');
    terminal.wait_until_gone("Two.");
    let screen = terminal.wait_that("the prompt is the draft", |screen| screen.contains("❯ the second thing"));
    assert!(screen.contains("One.") && !screen.contains("Two."), "{screen}");
    terminal.enter();
    terminal.wait_for("Three.");
    let sent = server.request(2).messages();
    assert!(sent.contains("One.") && !sent.contains("Two."), "{sent}");
    assert!(terminal.quit().success());
    let listed = project.aye(&["sessions", "list"]).exits(0).stdout;
    assert!(listed.contains("(fork)") && listed.lines().filter(|line| line.contains("the first thing")).count() == 2, "{listed}");
}

#[test]
fn files_changed_by_the_user_are_kept_unless_selected() {
    let server = scripted();
    let project = project(&server);
    let mut terminal = done(&project);
    fs::write(project.path("written.txt"), "mine\n").unwrap();
    for (takes, after) in [(false, "mine\n"), (true, "old\n")] {
        terminal.prompt("/rewind");
        terminal.wait_for("#1 do both");
        terminal.enter();
        terminal.wait_that("the plan is armed", |screen| {
            screen.contains("[ ] written.txt") && screen.contains("space select [ ] move")
        });
        if takes {
            Terminal::react();
            terminal.send(" ");
            terminal.wait_for("[x] written.txt");
            // A key immediately after another key counts as text.
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        terminal.decide('3');
        let words = if takes { "/redo" } else { "left as is  written.txt" };
        terminal.wait_for(words);
        holds(&project, "written.txt", after);
    }
}

#[test]
fn a_sentence_typed_into_the_rewind_plan_does_not_confirm_it() {
    let server = scripted();
    let project = project(&server);
    let mut terminal = done(&project);
    terminal.prompt("/undo");
    terminal.wait_for("Rewind to before prompt 1");
    terminal.type_text("1 more thing", 60);
    terminal.wait_for("❯ 1 more thing");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    assert_eq!(project.read("written.txt"), "by a tool\n");
}

#[test]
fn a_session_open_on_another_screen_can_be_viewed_and_then_taken_over() {
    let server = scripted();
    let project = project(&server);
    let mut first = done(&project);
    first.type_text("half a thought", 5);
    first.wait_for("❯ half a thought");

    let mut second = project.open_sized(&["--resume"], 100, 36);
    second.wait_for(&format!("is open in process {}", first.pid()));
    second.decide('r');
    let screen = second.wait_for("read-only: open in process");
    assert!(screen.contains("Both are done."), "{screen}");
    second.type_text("and more", 5);
    second.enter();
    second.wait_for(texts::NOT_SENT);
    second.send("\x15");
    assert!(second.quit().success());

    let mut third = project.open_sized(&["--resume"], 100, 36);
    third.wait_for(texts::OPEN_IN_PROCESS);
    third.decide('t');
    third.wait_for("half a thought");
    first.finish();
    third.send("\x15");
    third.prompt("go on");
    third.wait_for("And so is this.");
}
