//! The mode of a session when it is resumed.

use crate::support::{Answer, Project, Server};
use serde_json::json;

const SETTINGS: &str = "[approval]\nmode = \"auto-edit\"\n";

fn write(id: &str, path: &str) -> Answer {
    Answer::call(id, "WriteFile", json!({"path": path, "content": "written\n"}))
}

#[test]
fn a_resumed_session_keeps_the_mode_chosen_with_the_mode_command() {
    let server = Server::new([Answer::text("One."), write("c1", "new.txt"), Answer::text("Two.")]);
    let project = Project::with(&server).config(SETTINGS);
    let mut terminal = project.open(&[]);
    terminal.prompt("first");
    terminal.wait_for("One.");
    // The mode is chosen after the last prompt.
    terminal.prompt("/mode plan");
    terminal.wait_for("mode plan");
    assert!(terminal.quit().success());
    let output = project.aye(&["exec", "-c", "second"]);
    output.says(&["mode plan"]);
    assert!(!project.exists("new.txt"), "plan mode allows no writes");
}

#[test]
fn a_resumed_session_keeps_the_mode_of_its_command_line_unless_another_is_given() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three."), Answer::text("Four.")]);
    let project = Project::with(&server).config(SETTINGS);
    project.aye(&["exec", "--mode", "plan", "first"]).exits(0).says(&["mode plan"]);
    project.aye(&["exec", "-c", "second"]).exits(0).says(&["mode plan"]);
    let output = project.aye(&["exec", "-c", "--mode", "ask", "third"]).exits(0);
    output.says(&["mode ask (from the command line); this session was in mode plan"]);
    let output = project.aye(&["exec", "-c", "fourth"]).exits(0).says(&["mode ask"]);
    assert!(!output.stderr.contains("this session was"), "{}", output.stderr);
}

#[test]
fn a_mode_from_changed_settings_is_reported_when_a_session_is_resumed() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "first"]).exits(0).says(&["mode ask"]);
    let project = project.config(SETTINGS);
    let output = project.aye(&["exec", "-c", "second"]).exits(0);
    output.says(&["mode auto-edit (from your settings); this session was in mode ask"]);
}

#[test]
fn a_fork_does_not_inherit_a_more_permissive_mode() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "--mode", "auto-edit", "first"]).exits(0);
    let output = project.aye(&["exec", "--fork", "second"]).exits(0);
    output.says(&["mode ask (from your settings); this session was in mode auto-edit"]);
}

#[test]
fn a_resumed_task_keeps_the_mode_chosen_for_its_session() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = Project::outside_tmp_with(&server);
    project.aye(&["task", "start", "--mode", "auto-edit", "first"]).exits(0).says(&["mode auto-edit"]);
    let id = project.aye(&["tasks", "--json"]).exits(0).json()[0]["id"].as_str().unwrap()[..8].to_owned();
    project.aye(&["task", "resume", "--mode", "plan", &id, "second"]).exits(0).says(&["mode plan"]);
    let output = project.aye(&["task", "resume", &id, "third"]).exits(0).says(&["mode plan"]);
    assert!(!output.stderr.contains("this session was"), "{}", output.stderr);
}
