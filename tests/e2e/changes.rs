//! Changes of a session: shown by `/diff`, reported by `aye exec`, printed at exit, and preserved after `kill -9`.

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::json;
use std::fs;

fn scripted() -> Server {
    Server::new([
        Answer::call("call_1", "WriteFile", json!({"path": "written.txt", "content": "by a tool\n"})),
        Answer::call("call_2", "RunCommand", json!({"command": "echo by a command >> run.txt"})),
        Answer::text("Both are done."),
        Answer::text("Nothing to do."),
    ])
}

fn project(server: &Server) -> Project {
    Project::with(server).allowing_everything().file("written.txt", "old\n").file("run.txt", "first\n").file("mine.txt", "mine\n")
}

#[track_caller]
fn opened(terminal: &mut Terminal) -> String {
    terminal.prompt("/diff");
    terminal.wait_that("the list is open", |screen| {
        screen.contains("esc close") && screen.contains("Changed since this session began")
    })
}

#[test]
fn changes_by_tools_commands_and_the_user_are_listed_and_survive_a_kill() {
    let server = scripted();
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("do both");
    terminal.wait_for("Both are done.");
    fs::write(project.path("mine.txt"), "mine, changed\n").unwrap();
    let screen = opened(&mut terminal);
    for words in ["3 files", "M mine.txt", "outside aye", "M run.txt", "a command", "M written.txt", "mine, changed"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.send("n");
    terminal.wait_for("by a command");
    terminal.send("\t");
    terminal.wait_for("by a tool");
    terminal.send("p");
    terminal.wait_until_gone("by a tool");
    fs::write(project.path("mine.txt"), "mine\n").unwrap();
    terminal.send("r");
    terminal.wait_that("what is undone is no change", |screen| screen.contains("2 files") && !screen.contains("mine.txt"));
    terminal.send("\x1b");
    terminal.wait_for("Both are done.");
    terminal.kill();

    let mut terminal = project.open_sized(&["--resume"], 100, 30);
    terminal.wait_for("Both are done.");
    let screen = opened(&mut terminal);
    assert!(screen.contains("2 files (+2 −1)") && screen.contains("M run.txt") && screen.contains("M written.txt"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_until_gone("Changed since this session began");
    assert!(terminal.quit().success());
    let printed = terminal.wait_for("aye --resume");
    for words in ["Changed since this session began: 2 files (+2 −1)", "M run.txt  +1 −0", "M written.txt  +1 −1"] {
        assert!(printed.contains(words), "{words}\n{printed}");
    }
    assert!(!printed.contains("Both are done."), "this process received no response:\n{printed}");
}

#[test]
fn the_changes_view_reports_if_there_are_no_changes() {
    let server = Server::new([Answer::text("Nothing to do.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 60, 20);
    terminal.prompt("look");
    terminal.wait_for("Nothing to do.");
    terminal.prompt("/changes");
    terminal.wait_for("No changes: every file");
    terminal.send("\x1b");
    terminal.wait_for("Nothing to do.");
    assert!(terminal.quit().success());
    assert!(!terminal.screen().contains("Changed:"), "{}", terminal.screen());
}

#[test]
fn exec_reports_changed_files_in_a_line_and_as_an_event() {
    let server = scripted();
    let output = project(&server).aye(&["exec", "do both"]).exits(0);
    assert!(output.stderr.contains("changed: 2 files (+2 −1)"), "{}", output.stderr);
    let server = scripted();
    let events = project(&server).aye(&["exec", "--json", "do both"]).exits(0).events();
    events.in_order(&["task_completed", "changed_files", "session_completed"]);
    let files = &events.only("changed_files")["files"];
    assert_eq!(files[0]["path"], "run.txt");
    assert_eq!((&files[0]["status"], &files[0]["by"]), (&json!("modified"), &json!(["command"])));
    assert_eq!((&files[1]["status"], &files[1]["by"]), (&json!("modified"), &json!(["tool"])));
    assert!(files[1]["diff"].as_str().unwrap().ends_with("@@ -1 +1 @@\n-old\n+by a tool\n"), "{files}");
}

#[test]
fn changes_of_a_command_killed_together_with_aye_are_listed() {
    let line = "echo half >> run.txt; echo begun > begun; sleep 6161.25";
    let server = Server::new([Answer::call("call_1", "RunCommand", json!({"command": line}))]);
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("run it");
    assert!(wait_until(TIMEOUT, || project.exists("begun")), "it never ran\n{}", terminal.screen());
    terminal.kill();
    let mut terminal = project.open_sized(&["--resume"], 100, 30);
    terminal.wait_for(texts::OUTCOME_UNKNOWN);
    terminal.send("\x1b");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    let screen = opened(&mut terminal);
    assert!(screen.contains("A begun") && screen.contains("M run.txt") && screen.contains("a command"), "{screen}");
}
