//! Approval of agent calls: the policy of the session evaluates them, and the user of the session decides.

use crate::agents::{start, starts, title};
use crate::support::{Answer, Project, Request, Rpc, Server, texts, wait_until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FIXER: &str =
    "---\nname: fixer\ndescription: Fixes files.\ntools: Read, Write, Edit, Bash(git log:*), Bash(touch:*)\n---\nFix.\n";
/// Policy that allows writes and commands in the workspace.
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = false\n\
                    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

/// Returns a model that starts one agent. The first response to the agent contains the given calls.
fn one_agent(calls: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
    Server::with_responder(move |request| match (title(request), request.tool_results().len()) {
        (None, 0) => starts(&[start("c1", "fixer", "the files")]),
        (None, _) => Answer::text("All done."),
        (Some(_), 0) => calls(),
        (Some(_), _) => Answer::text("Fixed what I could."),
    })
}

fn write(id: &str, path: &str) -> (String, Value) {
    (id.to_owned(), json!({"path": path, "content": "new\n"}))
}

fn writes(calls: &[(String, Value)]) -> Answer {
    calls.iter().fold(Answer::empty(), |answer, (id, arguments)| answer.and_call(id, "WriteFile", arguments.clone()))
}

fn project(server: &Server) -> Project {
    Project::with(server).file("one.txt", "1\n").file(".claude/agents/fixer.md", FIXER)
}

/// Returns the results of the agent's tool calls.
fn results_of_agent(server: &Server) -> Vec<String> {
    let last: Request = server.requests().into_iter().rfind(|request| title(request).is_some()).unwrap();
    last.tool_results().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn approvals_of_agent_calls_name_the_agent() {
    let server = Server::with_responder(|request| match (title(request), request.tool_results().len()) {
        (None, 0) => starts(&[start("c1", "fixer", "the files")]),
        (None, _) => Answer::text("All done."),
        (Some(_), 0) => writes(&[write("w1", "first.txt")]),
        (Some(_), 1) => writes(&[write("w2", "second.txt")]),
        (Some(_), _) => Answer::text("Fixed what I could."),
    });
    let project = project(&server);
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("fix everything");
    let screen = terminal.review("first.txt");
    assert!(screen.contains("Agent fixer: Create first.txt"), "{screen}");
    assert!(!project.exists("first.txt"));
    terminal.decide('y');
    terminal.review("second.txt");
    assert!(project.exists("first.txt"));
    terminal.decide('n');
    terminal.wait_for("All done.");
    assert!(!project.exists("second.txt"));
    let results = results_of_agent(&server);
    assert!(results[1].contains("denied"), "{results:?}");
    terminal.prompt("/changes");
    terminal.wait_for("first.txt");
    terminal.send("\x1b");
    terminal.wait_for(texts::EMPTY_DRAFT);
    terminal.prompt("/undo");
    terminal.wait_for("Rewind to before prompt 1");
    terminal.decide('1');
    terminal.wait_that("the change of the agent is undone", |_| !project.exists("first.txt"));
}

#[test]
fn without_a_user_an_agent_writes_only_files_that_the_policy_allows() {
    let server = one_agent(|| {
        writes(&[write("w1", "first.txt")])
            .and_call("w2", "RunCommand", json!({"command": "touch second.txt"}))
            .and_call("w3", "RunCommand", json!({"command": "rm one.txt"}))
            .and_call("w4", "Delete", json!({"path": "one.txt"}))
    });
    let asking = project(&server);
    let told = asking.aye(&["exec", "--json", "--trust", "fix everything"]).exits(0);
    assert!(!asking.exists("first.txt") && asking.exists("one.txt"), "{}", told.stdout);
    let events = told.events();
    let asked: Vec<&Value> = events.all("approval_requested").into_iter().filter(|event| event["agent"].is_object()).collect();
    assert_eq!(asked[0]["agent"]["name"], "fixer", "{}", told.stdout);
    let allowing = project(&server).policy(OPEN);
    allowing.aye(&["exec", "--trust", "fix everything"]).exits(0);
    assert!(allowing.exists("first.txt") && allowing.exists("second.txt") && allowing.exists("one.txt"));
    let results = results_of_agent(&server);
    assert!(results[2].contains("the agent `fixer` does not list this tool in its `tools`"), "{results:?}");
    let planning = project(&server).policy(OPEN);
    planning.aye(&["exec", "--trust", "--mode", "plan", "fix everything"]).exits(0);
    assert!(!planning.exists("first.txt") && !planning.exists("second.txt"), "plan mode applies to agents too");
}

#[test]
fn a_client_can_approve_a_call_by_an_agent() {
    let server = one_agent(|| writes(&[write("w1", "first.txt")]));
    let project = project(&server);
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "fix everything"}));
    let approval = client.event("approval_requested");
    assert_eq!(approval["agent"]["name"], "fixer", "{approval}");
    let state = client.call("GetSessionState", json!({}));
    assert_eq!(state["pendingApprovals"][0]["approvalId"], approval["approvalId"], "{state}");
    assert_eq!(state["task"]["status"], "EXECUTING_TOOLS", "{state}");
    let decided = client.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "approved"}));
    assert_eq!(decided["status"], "approved");
    client.event("task_completed");
    assert_eq!(project.read("first.txt"), "new\n");
    let state = client.call("GetSessionState", json!({}));
    assert_eq!(state["pendingApprovals"], json!([]), "{state}");
}

#[test]
fn a_client_can_stop_an_agent_and_the_task_continues() {
    let server = one_agent(|| writes(&[write("w1", "first.txt")]));
    let project = project(&server);
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "fix everything"}));
    let approval = client.event("approval_requested");
    let id = &approval["agent"]["agentSessionId"];
    assert_eq!(client.fails("StopAgent", json!({"agentSessionId": "another"})), -32602);
    assert_eq!(client.call("StopAgent", json!({"agentSessionId": id}))["status"], "stopping");
    assert_eq!(client.event("task_completed")["text"], "All done.");
    assert_eq!(client.fails("StopAgent", json!({"agentSessionId": id})), -32602, "it has ended");
    assert!(!project.exists("first.txt"));
}

#[test]
fn agent_approvals_are_requested_again_after_a_kill() {
    let server = one_agent(|| writes(&[write("w1", "first.txt")]));
    let project = project(&server);
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("fix everything");
    terminal.review("first.txt");
    terminal.kill();
    assert!(!project.exists("first.txt"));
    let mut terminal = project.open(&["--trust", "--resume"]);
    terminal.wait_for("fix everything");
    terminal.prompt("/continue");
    let screen = terminal.review("first.txt");
    assert!(screen.contains("Agent fixer: Create first.txt"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("All done.");
    assert!(project.exists("first.txt"));
}

#[test]
fn stopping_an_agent_withdraws_its_approval() {
    let server = one_agent(|| writes(&[write("w1", "first.txt")]));
    let project = project(&server);
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("fix everything");
    terminal.review("first.txt");
    terminal.send("\x1b");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.prompt("/agents stop 1");
    terminal.wait_for("All done.");
    assert!(!terminal.screen().contains("Agent fixer: Create"), "{}", terminal.screen());
    assert!(!project.exists("first.txt"));
}

#[test]
fn a_stricter_mode_applies_to_running_agents() {
    let tightened = Arc::new(AtomicBool::new(false));
    let is_tight = Arc::clone(&tightened);
    let server = Server::with_responder(move |request| {
        let results = request.tool_results();
        match title(request) {
            None if results.is_empty() => starts(&[start("c1", "fixer", "the files")]),
            None => Answer::text("All done."),
            Some(_) => {
                if results.len() == 1 {
                    wait_until(Duration::from_secs(60), || is_tight.load(Ordering::SeqCst));
                }
                if results.last().is_some_and(|(_, text)| text.contains("plan mode")) {
                    return Answer::text("I was told to stop writing.");
                }
                let number = results.len();
                writes(&[write(&format!("w{number}"), &format!("{number}.txt"))])
            }
        }
    });
    let project = project(&server);
    let mut terminal = project.open(&["--trust", "--mode", "auto-edit"]);
    terminal.prompt("fix everything");
    terminal.wait_that("the first file is written", |_| project.exists("0.txt"));
    terminal.prompt("/mode plan");
    terminal.wait_for("│ plan │");
    tightened.store(true, Ordering::SeqCst);
    terminal.wait_for("All done.");
    let last = results_of_agent(&server).pop().unwrap();
    assert!(last.contains("plan mode"), "the agent is told after some calls at the latest: {last}");
}
