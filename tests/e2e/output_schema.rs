//! `--output-schema`: a response that matches a JSON Schema, or an error.

use crate::support::{Answer, Project, Server};
use serde_json::json;

const SCHEMA: &str = r#"{"type": "object", "required": ["name", "count"], "additionalProperties": false,
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}"#;
const GOOD: &str = "{\"name\": \"a\",\n \"count\": 2}";

fn with_schema(server: &Server) -> Project {
    Project::with(server).file("schema.json", SCHEMA)
}

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["exec", "--output-schema", "schema.json"].iter().chain(more).copied().collect()
}

#[test]
fn stdout_is_the_json_value_and_the_schema_is_sent_to_the_model() {
    let read = Answer::text("Let me look.").and_call("c1", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([read, Answer::text(GOOD)]);
    let output = with_schema(&server).file("a.txt", "a\n").aye(&arguments(&["count"])).exits(0);
    assert_eq!(output.stdout, "{\"name\":\"a\",\"count\":2}\n");
    let system = server.request(0).body["system"].to_string();
    assert!(system.contains("Response format") && system.contains("additionalProperties"), "{system}");
}

#[test]
fn a_value_in_a_code_block_is_accepted_and_its_numbers_are_preserved() {
    let server = Server::new([Answer::text("```json\n{\"name\": \"a\", \"count\": 12345678901234567890123}\n```")]);
    let output = with_schema(&server).aye(&arguments(&["count"])).exits(0);
    assert_eq!(output.stdout, "{\"name\":\"a\",\"count\":12345678901234567890123}\n");
}

#[test]
fn a_mismatched_response_is_corrected_once() {
    for wrong in ["{\"name\": \"a\"}", "Here it is: {}"] {
        let server = Server::new([Answer::text(wrong), Answer::text(GOOD)]);
        let output = with_schema(&server).aye(&arguments(&["count"])).exits(0);
        assert_eq!(output.stdout, "{\"name\":\"a\",\"count\":2}\n");
        let asked = server.request(1).messages();
        assert!(asked.contains("does not match the JSON Schema"), "{asked}");
        assert!(output.stderr.contains("asking the model to correct it"), "{}", output.stderr);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_response_that_never_matches_exits_with_6_and_prints_no_value() {
    for (format, members) in [("text", None), ("json", Some("eventType")), ("stream-json", Some("type"))] {
        let server = Server::new([Answer::text("{\"name\": 1}"), Answer::text("{\"name\": \"a\", \"other\": 2}")]);
        let output = with_schema(&server).aye(&arguments(&["--output-format", format, "count"])).exits(6);
        let output = output.says(&[
            "error: the response does not match `schema.json`",
            "`count` is missing",
            "`other` is not in the schema",
        ]);
        assert_eq!(server.requests().len(), 2, "{format}: one correction");
        match members {
            None => assert_eq!(output.stdout, ""),
            Some(member) => {
                let last: serde_json::Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
                assert!(last[member].is_string(), "{last}");
            }
        }
        if format == "text" {
            assert!(output.stderr.contains("{\"name\": \"a\", \"other\": 2}"), "the response is shown: {}", output.stderr);
        }
    }
    let server = Server::new([Answer::text("1"), Answer::text("2")]);
    Project::with(&server).file("schema.json", "false").aye(&arguments(&["hi"])).exits(6);
}

#[test]
fn stream_json_results_contain_the_value_or_an_error() {
    let last = |answers: [&str; 2], code| {
        let server = Server::new(answers.map(Answer::text));
        let output = with_schema(&server).aye(&arguments(&["--output-format", "stream-json", "count"])).exits(code);
        let lines: Vec<serde_json::Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let prompts = lines.iter().filter(|line| line["message"]["content"][0]["type"] == "text" && line["type"] == "user");
        assert_eq!(prompts.count(), 1, "the prompt for the correction");
        lines.last().unwrap().clone()
    };
    let result = last(["no", GOOD], 0);
    assert_eq!((&result["structured_output"], &result["subtype"]), (&json!({"name": "a", "count": 2}), &json!("success")));
    let result = last(["no", "no"], 6);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_max_structured_output_retries"), &json!(true)));
    assert!(result["errors"][0].as_str().unwrap().contains("not a JSON value") && result["result"] == "no", "{result}");
}

#[test]
fn denials_and_limits_keep_their_exit_codes() {
    let server = Server::new([Answer::call("c1", "WriteFile", json!({"path": "b", "content": "x"})), Answer::text(GOOD)]);
    let output = with_schema(&server).aye(&arguments(&["write"])).exits(3);
    assert_eq!(output.stdout, "{\"name\":\"a\",\"count\":2}\n");
    let server = Server::new([
        Answer::call("c1", "WriteFile", json!({"path": "b", "content": "x"})),
        Answer::text("no"),
        Answer::text("no"),
    ]);
    with_schema(&server).aye(&arguments(&["write"])).exits(6);
    let server =
        Server::new([Answer::call("c1", "Glob", json!({"pattern": "*"})), Answer::call("c2", "Glob", json!({"pattern": "a*"}))]);
    let output = with_schema(&server).aye(&arguments(&["--max-steps", "2", "loop"])).exits(4);
    assert_eq!(output.stdout, "");
    assert!(!output.stderr.contains("does not match"), "{}", output.stderr);
}

#[test]
fn invalid_schema_files_are_errors_before_any_request() {
    let server = Server::new([]);
    for (file, parts) in [
        (None, &["cannot read the schema `schema.json`"][..]),
        (Some("{"), &["the schema `schema.json` is not JSON"]),
        (Some("{\"type\": \"strng\"}"), &["`schema.json` is not a valid JSON Schema", "hint: "]),
        (Some("{\"$ref\": \"other.json\"}"), &["is not a valid JSON Schema", "can only refer to itself"]),
    ] {
        let project = Project::with(&server);
        let project = if let Some(text) = file { project.file("schema.json", text) } else { project };
        project.aye(&arguments(&["hi"])).exits(2).says(parts);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn repeated_results_are_validated_again() {
    let server = Server::new([Answer::text(GOOD), Answer::text("no")]);
    let project = with_schema(&server);
    project.aye(&["exec", "count"]).exits(0);
    assert_eq!(project.aye(&arguments(&["-c"])).exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n");
    project.aye(&["exec", "-c", "again"]).exits(0);
    project.aye(&arguments(&["-c"])).exits(6).says(&["does not match"]);
    assert_eq!(server.requests().len(), 2, "nothing is sent");
}
