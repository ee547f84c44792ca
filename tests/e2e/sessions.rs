//! Terminal sessions and background commands: their use by the model, permitted input, and their end.

use crate::support::{Answer, Project, Server, TIMEOUT, processes_running, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

fn done() -> Answer {
    Answer::text("Finished the work.")
}

#[test]
fn the_model_uses_terminal_sessions_which_end_with_aye() {
    let server = Server::new([
        Answer::call("c1", "CliSession", json!({"command": "read -rp 'Your name? ' name; echo \"Hello $name\"; sleep 987001"})),
        Answer::call("c2", "CliWrite", json!({"id": "s1", "text": "Ada"})),
        Answer::call("c3", "RunCommand", json!({"command": "echo meanwhile"})),
        Answer::call("c4", "CliRead", json!({"id": "s1", "screen": true})),
        done(),
    ]);
    let project = Project::with(&server).allowing_everything();
    let output = project.aye(&["exec", "--json", "greet"]).exits(0);
    let result = |number: usize| server.request(number).tool_results().last().unwrap().1.clone();
    assert!(result(1).contains("s1 is running: read") && result(1).contains("Your name?"), "{}", result(1));
    assert!(result(2).contains("Hello Ada"), "{}", result(2));
    assert!(result(3).contains("meanwhile"), "{}", result(3));
    assert!(result(4).contains("Your name? Ada\nHello Ada"), "{}", result(4));
    let events = output.events();
    let listed = events.all("commands_running");
    assert!(listed.iter().any(|list| list["commands"][0]["state"]["state"] == "running"), "{listed:?}");
    assert_eq!(listed[0]["commands"][0]["toolCallId"], "c1");
    assert_eq!(processes_running(&["sleep", "987001"]), 0);
}

#[test]
fn background_commands_can_be_read_and_end_with_aye() {
    let server = Server::new([
        Answer::call("c1", "RunCommand", json!({"command": "echo serving; sleep 987002", "background": true})),
        Answer::call("c2", "CliRead", json!({"id": "s1", "waitSeconds": 1})),
        done(),
    ]);
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "--json", "serve it"]).exits(0);
    let result = |number: usize| server.request(number).tool_results().last().unwrap().1.clone();
    assert!(result(1).contains("in the background as s1") && result(1).contains("serving"), "{}", result(1));
    // Depending on timing, the first or the second result contains the output, but not both.
    let late = result(2).contains("--- output ---\nserving");
    assert!(result(2).contains("s1 is running") && result(2).contains("no new output") != late, "{}", result(2));
    assert_eq!(processes_running(&["sleep", "987002"]), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_of_a_session_outlives_a_killed_aye() {
    let gate = crate::support::Gate::default();
    let line = "trap '' HUP TERM; setsid sleep 987003 & sleep 987003; cat";
    let server = Server::new([
        Answer::call("c1", "CliSession", json!({"command": line})),
        Answer::call("c2", "RunCommand", json!({"command": "sleep 987003", "background": true})),
        Answer::text("Waiting.").and_wait(&gate),
    ]);
    let project = Project::with(&server).allowing_everything();
    let run = project.start(&["exec", "--json", "wait"]);
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", "987003"]) == 3), "not all of it began");
    run.signal(Signal::SIGKILL);
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", "987003"]) == 0), "something lives on");
    gate.open();
}

const RULES: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\n\
    requires_approval = true\nblocked_commands = [\"sudo\"]\n\
    [[capabilities.\"Shell.Exec\".rules]]\ncommand = [[\"echo\", \"cat\", \"bash\"]]\ndecision = \"allow\"\n";

#[test]
fn rules_apply_to_commands_and_not_to_their_input() {
    // A plain shell needs approval under every rule, because its input is unknown.
    let server = Server::new([Answer::call("c1", "CliSession", json!({})), done()]);
    let output = Project::with(&server).policy(RULES).aye(&["exec", "--json", "x"]).exits(3);
    assert_eq!(output.events().all("tool_completed")[0]["error"]["code"], "NO_APPROVER");
    // A rule allows the command. Text typed into the command is input, to which no rule applies.
    let server = Server::new([
        Answer::call("c1", "CliSession", json!({"command": "cat"})),
        Answer::call("c2", "CliWrite", json!({"id": "s1", "text": "echo hi"})),
        done(),
    ]);
    let output = Project::with(&server).policy(RULES).aye(&["exec", "--json", "x"]).exits(3);
    let events = output.events();
    let completed = events.all("tool_completed");
    assert_eq!(completed[0]["status"], "succeeded", "{completed:?}");
    assert_eq!(completed[1]["error"]["code"], "NO_APPROVER", "{completed:?}");
}

#[test]
fn each_line_typed_into_a_shell_is_checked_like_a_command() {
    let server = Server::new([
        Answer::call("c1", "CliSession", json!({})),
        Answer::call("c2", "CliWrite", json!({"id": "s1", "text": "echo allowed"})),
        Answer::call("c3", "CliWrite", json!({"id": "s1", "text": "sudo id"})),
        Answer::call("c4", "CliWrite", json!({"id": "s1", "text": "touch made"})),
        done(),
    ]);
    let project = Project::with(&server).policy(RULES);
    let mut terminal = project.open(&["work in a shell"]);
    terminal.review("bash");
    terminal.decide('y');
    // A writable shell has no read-only view, so even a line that is allowed as read-only needs approval.
    terminal.review("echo allowed");
    terminal.decide('y');
    let screen = terminal.review("touch made");
    assert!(screen.contains("typed into s1"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    let result = |number: usize| server.request(number).tool_results().last().unwrap().1.clone();
    assert!(result(2).contains("\nallowed"), "{}", result(2));
    assert!(result(3).contains("POLICY_DENIED") && result(3).contains("sudo"), "{}", result(3));
    assert!(wait_until(TIMEOUT, || project.exists("made")));
    assert!(terminal.quit().success());
}

#[test]
fn plan_mode_denies_terminal_sessions() {
    let server = Server::new([
        Answer::call("c1", "CliSession", json!({"command": "touch made; cat"})).and_call("c2", "CliGetPlatform", json!({})),
        done(),
    ]);
    let project = Project::with(&server).allowing_everything();
    let output = project.aye(&["exec", "--json", "--mode", "plan", "x"]);
    let events = output.events();
    let completed = events.all("tool_completed");
    let of = |id: &str| completed.iter().find(|one| one["toolCallId"] == id).unwrap();
    assert_eq!(of("c1")["error"]["code"], "POLICY_DENIED", "{completed:?}");
    assert_eq!(of("c2")["status"], "succeeded", "{completed:?}");
}
