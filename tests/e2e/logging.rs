//! Log file: one line of JSON per event, without content of the conversation.

use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};

const SECRET: &str = "sk-ant-scripted";

fn lines(project: &Project) -> Vec<Value> {
    let logs = project.directory("data/logs");
    let mut files: Vec<_> = std::fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn every_event_is_logged_with_its_ids_and_without_message_content() {
    let call = Answer::call("c1", "ReadFile", json!({"path": "letter.txt"}));
    let server = Server::new([call, Answer::text("It is a love letter.")]);
    let project = Project::with(&server).file("letter.txt", "dear diary\n");
    project.aye(&["exec", "what is in letter.txt?"]).exits(0);
    let lines = lines(&project);
    let of = |name: &str| lines.iter().filter(|line| line["eventType"] == name).count();
    for name in ["session_started", "tool_requested", "tool_completed", "task_completed", "session_completed"] {
        assert_eq!(of(name), 1, "{name}");
    }
    assert_eq!((of("step_started"), of("llm_request_completed")), (2, 2));
    let tool = lines.iter().find(|line| line["eventType"] == "tool_completed").unwrap();
    for id in ["workspaceId", "sessionId", "taskId", "stepId"] {
        assert!(tool[id].as_str().is_some_and(|id| !id.is_empty()), "{id}: {tool}");
    }
    assert_eq!(tool["payload"]["toolName"], "ReadFile");
    let all = serde_json::to_string(&lines).unwrap();
    for said in ["dear diary", "love letter", "what is in", SECRET] {
        assert!(!all.contains(said), "{said}");
    }
}

#[test]
fn no_log_is_written_if_logging_is_off() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).env("AYE_LOG", "off");
    project.aye(&["exec", "say hello"]).exits(0);
    assert!(!project.directory("data/logs").exists());
}
