//! What is said while the agent works: it waits in sight, steers the next step, and can be taken back.

use crate::support::{Answer, Gate, Project, Server};
use serde_json::json;

#[test]
fn what_steers_reaches_the_model_with_the_next_step_and_stands_where_it_was_heard() {
    let gate = Gate::default();
    let read = json!({"path": "README.md"});
    let server = Server::new([
        Answer::text("Busy now").and_wait(&gate).and_call("call_1", "ReadFile", read),
        Answer::text("With tabs from now on."),
    ]);
    let project = Project::with(&server).file("README.md", "hello\n");
    let mut terminal = project.open(&[]);
    terminal.prompt("the first");
    terminal.wait_for("Busy now");
    terminal.prompt("/steer use tabs");
    terminal.wait_for("1 for the next step: use tabs");
    gate.open();
    terminal.wait_for("With tabs from now on.");
    assert_eq!(server.requests().len(), 2, "it is no task of its own");
    assert!(server.request(1).messages().contains("use tabs"));
    assert!(terminal.screen().contains("❯ use tabs"), "{}", terminal.screen());
}

#[test]
fn a_message_that_waits_is_taken_back_into_the_draft_and_not_sent() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Busy now").and_wait(&gate).and(" and done.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("the first");
    terminal.wait_for("Busy now");
    terminal.prompt("the second");
    terminal.wait_for("1 queued: the second");
    terminal.send("\x1b[1;3A");
    terminal.wait_for("❯ the second");
    gate.open();
    terminal.wait_for("and done.");
    terminal.wait_for("❯ the second");
    assert_eq!(server.requests().len(), 1);
}
