//! Interrupts by the user: they stop the model and the running command immediately and preserve the partial response.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, processes_running, texts, wait_until};
use serde_json::json;

const MARK: &str = "[The user interrupted your response here.]";

#[test]
fn escape_keeps_the_partial_response_even_after_a_crash() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("I talk and").and_wait(&gate).and(" talk."), Answer::text("The second answer.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("talk");
    terminal.wait_for("I talk and");
    terminal.wait_for("esc stop");
    terminal.send("\x1b");
    let screen = terminal.wait_for("interrupted");
    assert!(screen.contains("I talk and") && !screen.contains("discarded"), "{screen}");
    terminal.kill();
    gate.open();
    let mut terminal = project.open(&["--trust", "-c"]);
    let screen = terminal.wait_for("interrupted");
    assert!(screen.contains("I talk and"), "{screen}");
    terminal.wait_for("❯");
    terminal.prompt("something else");
    terminal.wait_for("The second answer.");
    let told = server.request(1).messages();
    let place = |words: &str| told.find(words).unwrap_or_else(|| panic!("{words} is missing in {told}"));
    assert!(place("I talk and") < place(MARK) && place(MARK) < place("something else"), "{told}");
    assert!(terminal.quit().success());
}

#[test]
fn escape_interrupts_the_running_command_and_sends_its_output_to_the_model() {
    let line = "trap 'echo cleaned up; exit 1' INT; echo begun; touch begun; while :; do sleep 0.1; done";
    let server = Server::new([Answer::call("call_1", "RunCommand", json!({"command": line})), Answer::text("I see.")]);
    let project = Project::with(&server).allowing_everything();
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("run it");
    assert!(wait_until(TIMEOUT, || project.exists("begun")));
    terminal.wait_for("esc stop");
    terminal.send("\x1b");
    terminal.wait_until_gone("esc stop");
    terminal.wait_for("interrupted");
    terminal.prompt("and now");
    terminal.wait_for("I see.");
    let (_, told) = server.request(1).tool_results().remove(0);
    assert!(told.contains(texts::COMMAND_INTERRUPTED) && told.contains("begun\ncleaned up"), "{told}");
    assert!(terminal.quit().success());
}

#[test]
fn a_command_that_ignores_the_interrupt_is_killed() {
    let sleep = ["sleep", "7642"];
    let line = "trap '' INT; touch begun; sleep 7642";
    let server = Server::new([Answer::call("call_1", "RunCommand", json!({"command": line})), Answer::text("I see.")]);
    let project = Project::with(&server).allowing_everything();
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("run it");
    assert!(wait_until(TIMEOUT, || project.exists("begun")));
    terminal.wait_for("esc stop");
    terminal.send("\x1b");
    terminal.wait_for("interrupted");
    assert_eq!(processes_running(&sleep), 0);
    assert!(terminal.quit().success());
}
