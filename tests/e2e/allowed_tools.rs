//! `--allowed-tools`: the tools that a run offers and calls.

use crate::remote_tools::with_server;
use crate::support::{Answer, Project, Request, Server};
use serde_json::json;

fn names(request: &Request) -> Vec<String> {
    let tools = request.body["tools"].as_array();
    tools.into_iter().flatten().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn only_allowed_tools_are_offered_and_calls_of_others_fail() {
    let calls = Answer::call("c1", "RunCommand", json!({"command": "touch made"}))
        .and_call("c2", "WriteFile", json!({"path": "made", "content": "x"}))
        .and_call("c3", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([calls, Answer::text("Done.")]);
    let project = Project::with(&server).allowing_everything().file("a.txt", "alpha\n");
    let output = project.aye(&["exec", "--json", "--allowed-tools", "Read,HashFile", "read it"]).exits(3);
    assert_eq!(names(&server.request(0)), ["ReadFile", "HashFile"], "also one that is otherwise loaded on demand");
    let results = server.request(1).tool_results();
    for (_, text) in &results[..2] {
        assert!(text.contains("is not allowed in this run (rule: --allowed-tools)"), "{text}");
    }
    assert!(results[2].1.contains("alpha") && !project.exists("made"), "{results:?}");
    assert_eq!(output.events().only("policy_in_force")["tools"], json!(["ReadFile", "HashFile"]));
}

#[test]
fn the_allowed_tools_option_grants_no_permissions() {
    let server = Server::new([Answer::call("c1", "WriteFile", json!({"path": "made", "content": "x"})), Answer::text("No.")]);
    let project = Project::with(&server);
    let output = project.aye(&["-p", "--allowedTools", "Write", "--json", "write it"]).exits(3);
    assert_eq!(output.events().only("tool_completed")["error"]["code"], "NO_APPROVER");
    assert!(!project.exists("made"));
    let server = Server::new([Answer::text("Nothing.")]);
    let project =
        Project::with(&server).policy("schema_version = 1\n[tools]\ndisabled = [\"Grep\"]\n[capabilities.\"File.Read\"]\n");
    project.aye(&["exec", "--allowed-tools", "Grep Glob RunCommand", "look"]).exits(0);
    assert_eq!(names(&server.request(0)), ["Glob"], "what the policy disables or does not grant");
}

#[test]
fn a_run_can_offer_no_tools() {
    let server = Server::new([Answer::text("Blue.")]);
    Project::with(&server).aye(&["exec", "--allowed-tools=", "which colour?"]).exits(0);
    assert!(names(&server.request(0)).is_empty());
}

#[test]
fn server_tools_are_accepted_in_every_notation() {
    for entry in ["docs__echo", "mcp__docs__echo", "docs/*", "mcp__docs"] {
        let server = Server::new([Answer::call("c1", "docs__echo", json!({"text": "hi"})), Answer::text("Done.")]);
        let project = with_server(Project::with(&server), "Says it again.");
        project.aye(&["exec", "-m", "anthropic/scripted", "--allowed-tools", entry, "say hi"]).exits(0);
        assert_eq!(names(&server.request(0)), ["docs__echo"], "{entry}");
        assert!(server.request(1).tool_results()[0].1.contains("said: hi"), "{entry}");
    }
}

#[test]
fn unknown_tool_names_are_errors_before_any_request() {
    let server = Server::new([]);
    let project = Project::with(&server);
    for (entry, parts) in [
        ("ReedFile", &["error: unknown tool `ReedFile` in `--allowed-tools`", "hint: did you mean `ReadFile`"][..]),
        ("Grep,nothing__x", &["unknown MCP server `nothing`", "aye mcp list"]),
        ("Bash(npm test:*)", &["without a pattern", "command = [\"npm\", \"test\"]", "hint: write `RunCommand`"]),
    ] {
        project.aye(&["exec", "--allowed-tools", entry, "hi"]).exits(2).says(parts);
    }
    assert!(server.requests().is_empty());
    assert_eq!(project.aye(&["sessions", "list", "--json"]).exits(0).json(), json!([]));
}

#[test]
fn the_rule_suggested_instead_of_a_pattern_is_valid() {
    let server =
        Server::new([Answer::call("c1", "RunCommand", json!({"command": "git status --short"})), Answer::text("Clean.")]);
    let project = Project::with(&server);
    let stderr = project.aye(&["exec", "--allowed-tools", "Bash(git status:*)", "hi"]).exits(2).stderr;
    let rule = stderr.lines().filter_map(|line| line.strip_prefix("    ")).collect::<Vec<_>>().join("\n");
    let policy =
        format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\nrequires_approval = true\n{rule}");
    let project = project.policy(&policy);
    project.aye(&["exec", "--trust", "--allowed-tools", "Bash", "is it clean?"]).exits(0);
}
