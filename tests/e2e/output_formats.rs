//! `--output-format`: events, and messages in the format shared with other agents.

use crate::support::{Answer, Output, Project, Server, texts};
use serde_json::{Value, json};

/// Returns the JSON values on the lines of stdout.
#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
    output.stdout.lines().map(parse).collect()
}

#[track_caller]
fn messages(project: &Project, arguments: &[&str], code: i32) -> Vec<Value> {
    let all: Vec<&str> = ["exec", "--output-format", "stream-json"].iter().chain(arguments).copied().collect();
    lines(&project.aye(&all).exits(code))
}

fn content(line: &Value) -> &Value {
    &line["message"]["content"][0]
}

#[test]
fn the_events_format_equals_json() {
    let server = Server::new([Answer::text("Hello."), Answer::text("Hello.")]);
    let project = Project::with(&server);
    let kinds = |arguments: &[&str]| -> Vec<Value> {
        let read = lines(&project.aye(arguments).exits(0));
        read.into_iter().map(|line| line["eventType"].clone()).collect()
    };
    let of_json = kinds(&["exec", "--json", "hi"]);
    assert_eq!(of_json, kinds(&["-p", "--output-format", "events", "hi"]));
    assert!(of_json.contains(&json!("task_completed")), "{of_json:?}");
}

#[test]
fn a_run_can_be_followed_from_its_stream_json_messages() {
    let call = Answer::text("Reading.").and_call("call_1", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([call, Answer::text("It says ").and("alpha.")]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    let read = messages(&project, &["--mode", "auto-edit", "what does a.txt say?"], 0);
    let kinds: Vec<_> = read.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "assistant", "user", "assistant", "result"]);
    let init = &read[0];
    assert_eq!((&init["subtype"], &init["version"]), (&json!("init"), &json!(1)));
    assert_eq!((&init["model"], &init["permissionMode"]), (&json!("anthropic/claude-sonnet-5"), &json!("acceptEdits")));
    assert_eq!(init["cwd"], project.path("").canonicalize().unwrap().display().to_string());
    assert!(init["tools"].as_array().unwrap().contains(&json!("ReadFile")) && init["mcp_servers"] == json!([]), "{init}");
    assert_eq!(init["session_id"].as_str().map(str::len), Some(32));
    assert!(read.iter().all(|line| line["session_id"] == init["session_id"]));
    assert_eq!(content(&read[1]), &json!({"type": "text", "text": "Reading."}));
    let call = json!({"type": "tool_use", "id": "call_1", "name": "ReadFile", "input": {"path": "a.txt"}});
    assert_eq!(content(&read[2]), &call);
    assert_eq!(content(&read[3])["tool_use_id"], "call_1");
    assert!(content(&read[3])["content"].as_str().unwrap().contains("alpha") && content(&read[3])["is_error"] == false);
    let result = &read[5];
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("It says alpha."), &json!(2)));
    assert!(result["duration_ms"].is_u64() && result["total_cost_usd"].is_f64(), "{result}");
    assert!(result["usage"]["output_tokens"].as_u64() > Some(0) && result["permission_denials"] == json!([]), "{result}");
}

#[test]
fn the_result_contains_denials_and_failures() {
    let edit = json!({"path": "a.txt", "content": "x"});
    let server = Server::new([Answer::call("call_1", "WriteFile", edit.clone()), Answer::text("I could not.")]);
    let project = Project::with(&server);
    let read = messages(&project, &["write it"], 3);
    let denied = json!([{"tool_name": "WriteFile", "tool_use_id": "call_1", "tool_input": edit}]);
    assert_eq!((&read.last().unwrap()["permission_denials"], &read.last().unwrap()["subtype"]), (&denied, &json!("success")));
    let results = read.iter().find(|line| line["type"] == "user").unwrap();
    assert!(content(results)["content"].as_str().unwrap().contains(texts::NO_ONE_TO_ASK), "{results}");
    for number in 0..3 {
        server.push(Answer::call(&format!("call_{number}"), "Glob", json!({"pattern": format!("{number}*")})));
    }
    let read = messages(&project, &["--max-steps", "2", "loop"], 4);
    let result = read.last().unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_max_turns"), &json!(true)), "{result}");
    let server = Server::new([Answer::error(400, "invalid_request_error", "no such field")]);
    let read = messages(&Project::with(&server), &["hi"], 1);
    let result = read.last().unwrap();
    assert_eq!(result["subtype"], "error_during_execution");
    assert!(result["result"].as_str().unwrap().contains("no such field") && read[0]["subtype"] == "init", "{read:?}");
}

#[test]
fn a_repeated_result_starts_with_the_init_message() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server);
    let first = messages(&project, &["hi"], 0);
    let again = messages(&project, &["-c"], 0);
    assert_eq!((&again[0]["subtype"], &again[0]["session_id"]), (&json!("init"), &first[0]["session_id"]));
    assert_eq!((&again[1]["type"], &again[1]["result"]), (&json!("result"), &json!("Hello.")));
    assert_eq!(again.len(), 2);
}
