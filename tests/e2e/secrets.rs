//! Secrets in requests, in stored data and in written files.

use crate::support::{Answer, Output, Project, Server};
use serde_json::json;
use std::path::Path;

const TOKEN: &str = "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";
const OPENAI: &str = "sk-proj-bU56p98ALoD8FogVhERO_SyY0S7jDdj4rQta6tTSZt-BkvWIZ_TUrnFRsCgNT3Blbk";
const PASSWORD: &str = "Mx6zKO2uFguZx6ThByypn1N8";
const KEY: &str = "sk-ant-api03-g51mD8pQtP8ecyk3AHSuF72QJUcrMuJ66ijWP1npYvhKOSf79gm05qYd6cO";
const MODEL: &str = "anthropic/scripted";

/// Returns all files below a directory as one text. Omits snapshots, which contain the user's files unchanged and are
/// readable only by the user.
fn everything(directory: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.path().ends_with("snapshots/contents") {
            let mode = std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, 0o700);
        } else if entry.path().is_dir() {
            text += &everything(&entry.path());
        } else {
            text += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap());
        }
    }
    text
}

#[track_caller]
fn nowhere(server: &Server, project: &Project, output: &Output) {
    let requests: String = (0..server.requests().len()).map(|index| server.request(index).body.to_string()).collect();
    let data = everything(&project.directory("data"));
    for secret in [TOKEN, OPENAI, PASSWORD, KEY, "env-secret-4711-value"] {
        for (place, text) in [("requests", &requests), ("data", &data), ("stdout", &output.stdout), ("stderr", &output.stderr)] {
            assert!(!text.contains(secret), "{secret} is in the {place}");
        }
    }
    assert!(requests.contains("[redacted:"), "{requests}");
}

fn project(server: &Server) -> Project {
    Project::with(server)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("MY_SECRET", "env-secret-4711-value")
        .allowing_everything()
        .file("value.txt", "the value is env-secret-4711-value\n")
        .file(".env", &format!("NAME=x\nDB_PASSWORD={PASSWORD}\nGITHUB_TOKEN={TOKEN}\n"))
}

#[test]
fn secrets_in_prompts_files_and_output_are_never_sent_stored_or_printed() {
    let server = Server::new([
        Answer::call("c1", "ReadFile", json!({"path": ".env"})),
        Answer::call("c2", "RunCommand", json!({"command": "cat .env value.txt; env"})),
        Answer::call("c3", "Grep", json!({"pattern": "TOKEN"})),
        Answer::text("Done."),
    ]);
    let project = project(&server).file("AGENTS.md", &format!("The key is {OPENAI}.\n"));
    let prompt = format!("Use {TOKEN}, the password is {PASSWORD} and mine is {KEY}");
    let output = project.aye(&["--trust", "exec", "-m", MODEL, "--json", &prompt]).exits(0);
    nowhere(&server, &project, &output);
    assert!(output.stdout.contains("hid 3 secrets (github-token, password, anthropic-key) in your prompt"), "{}", output.stdout);
    assert!(output.stdout.contains("\"redactions\":[{\"kind\":"), "{}", output.stdout);
    let key = project.directory("data").join("redaction.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&key).unwrap().permissions());
    assert_eq!((std::fs::read(&key).unwrap().len(), mode & 0o777), (32, 0o600));
}

#[test]
fn edits_with_redaction_markers_preserve_the_secret_bytes() {
    let server = Server::new([]);
    let project = project(&server);
    let call = |tool: &str, arguments: serde_json::Value| {
        project.aye(&["tool", "call", tool, "--args", &arguments.to_string(), "--yes", "--json"]).json()
    };
    let shown = call("ReadFile", json!({"path": ".env"}))["outputText"].as_str().unwrap().to_owned();
    assert!(!shown.contains(TOKEN) && !shown.contains(PASSWORD), "{shown}");
    call("WriteFile", json!({"path": ".env", "content": shown.replace("NAME=x", "NAME=y")}));
    assert_eq!(project.read(".env"), format!("NAME=y\nDB_PASSWORD={PASSWORD}\nGITHUB_TOKEN={TOKEN}\n"));
    let refused = call("WriteFile", json!({"path": "copy", "content": shown}));
    assert_eq!(refused["error"]["code"], "INVALID_REQUEST", "{refused}");
}

#[test]
fn approvals_and_their_journal_contain_redaction_markers() {
    let write = json!({"path": ".env", "edits": [{"oldText": "NAME=x", "newText": "NAME=y"}]});
    let server = Server::new([Answer::call("c1", "EditFile", write), Answer::text("Done.")]);
    let project = project(&server).policy("schema_version = 1\n[capabilities.\"File.Write\"]\nrequires_approval = true\n");
    let output = project.aye(&["exec", "-m", MODEL, "--json", &format!("edit {TOKEN}")]);
    nowhere(&server, &project, &output);
    assert!(output.stdout.contains("approval_requested"), "{}", output.stdout);
}

#[test]
fn text_can_be_tested_against_the_redaction_patterns_of_a_policy() {
    let project =
        Project::empty().policy("schema_version = 1\n[[redaction]]\nname = \"company token\"\npattern = \"acme_[a-z0-9]{8}\"\n");
    let output = project.aye_with_input(&["policy", "redact"], "a acme_12345678 b\n").exits(0);
    assert!(output.stdout.starts_with("a [redacted:company-token:"), "{}", output.stdout);
    assert!(output.stderr.contains("1 company-token"), "{}", output.stderr);
    let line = json!({"id": 7, "text": format!("x {TOKEN}")}).to_string() + "\n";
    let answer = project.aye_with_input(&["policy", "redact", "--jsonl"], &line).exits(0).json();
    assert_eq!((&answer["id"], &answer["redacted"]), (&json!(7), &json!([{"kind": "github-token", "count": 1}])));
    for (pattern, says) in [("(", "line 4"), ("a*", "empty string")] {
        let project =
            Project::empty().policy(&format!("schema_version = 1\n[[redaction]]\nname = \"x\"\npattern = \"{pattern}\"\n"));
        project.aye_with_input(&["policy", "redact"], "x").exits(2).says(&[says]);
    }
}

#[test]
fn keys_repeated_in_provider_errors_are_redacted() {
    let server = Server::new([Answer::error(401, "authentication_error", &format!("there is no key {KEY}"))]);
    let project = project(&server);
    let output = project.aye(&["exec", "-m", MODEL, "--json", &format!("Use {TOKEN}")]);
    assert!(output.stdout.contains("there is no key [redacted:"), "{}", output.stdout);
    nowhere(&server, &project, &output);
}
