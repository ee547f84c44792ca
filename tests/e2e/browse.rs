//! Browsing a session: search, folding, copying to the clipboard of the terminal, export.

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::json;

const ANSWER: &str = "It is **done**.\n\n```rust\nlet answer = 42;\n```\n";

/// Returns a session in which a file of 60 lines was read and the model has responded.
#[track_caller]
fn done(project: &Project) -> Terminal {
    let mut terminal = project.open_sized(&["--trust"], 100, 30);
    terminal.prompt("read it");
    terminal.wait_for("let answer = 42;");
    terminal
}

fn project(server: &Server) -> Project {
    let long = (1..=60).map(|n| format!("entry number {n}\n")).collect::<Vec<_>>().concat();
    Project::with(server).file("long.txt", &long)
}

fn server() -> Server {
    Server::new([Answer::call("call_1", "ReadFile", json!({"path": "long.txt"})), Answer::text(ANSWER)])
}

#[test]
fn entries_and_code_are_copied_to_the_terminal_clipboard_and_the_method_is_shown() {
    let server = server();
    let project = project(&server);
    let mut terminal = done(&project);
    terminal.send("\x14");
    terminal.wait_for("j k move");
    terminal.send("y");
    let screen = terminal.wait_for("OSC 52");
    assert!(screen.contains("copied 5 lines · OSC 52"), "{screen}");
    assert_eq!(terminal.copied(), ANSWER.trim_end());
    terminal.send("c");
    terminal.wait_for("copied code, 16 characters");
    assert_eq!(terminal.copied(), "let answer = 42;\n");
    terminal.send("q");
    terminal.wait_for(texts::ENTER_SEND);
    terminal.prompt("/copy code");
    terminal.wait_for("copied the last code");
    assert!(terminal.quit().success());
    terminal.assert_restored();
}

#[test]
fn a_search_finds_and_opens_folded_entries() {
    let server = server();
    let project = project(&server);
    let mut terminal = done(&project);
    assert!(!terminal.screen().contains("entry number 37"));
    terminal.send("\x14");
    terminal.wait_for("j k move");
    terminal.type_text("/number 37", 5);
    let screen = terminal.wait_that("what was folded is open", |screen| screen.contains("│ entry number 37"));
    assert!(screen.lines().any(|row| row.trim().starts_with("/number 37") && row.trim_end().ends_with("1 of 1")), "{screen}");
}

#[test]
fn an_export_never_overwrites_an_existing_file() {
    let server = server();
    let project = project(&server).file("kept.md", "mine\n");
    let mut terminal = done(&project);
    terminal.prompt("/export md kept.md");
    terminal.wait_for("the file already exists");
    assert_eq!(project.read("kept.md"), "mine\n");
    terminal.prompt("/export md talk.md");
    terminal.wait_for("exported to");
    assert!(wait_until(TIMEOUT, || project.exists("talk.md")));
    assert!(project.read("talk.md").contains("let answer = 42;"));
}
