//! Providers in `config.toml`: key commands and custom headers.

use crate::support::{Answer, Project, Server};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const MODEL: &str = "anthropic/scripted";
const FIRST: &str = "k1-Zq4vT9xWm2LbR8sYd3NfHc6";
const SECOND: &str = "k2-Vb8nM3qLs7TgJ5wXe9RkPd1";

/// Creates a program that runs `script` and records its runs. Returns the paths of the program and of the record.
fn printing(project: &Project, script: &str) -> (PathBuf, PathBuf) {
    let (program, runs) = (project.directory("home").join("print-key"), project.directory("home").join("runs"));
    fs::write(&program, format!("#!/bin/sh\necho run >> {}\n{script}\n", runs.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program, runs)
}

fn runs(record: &PathBuf) -> usize {
    fs::read_to_string(record).map(|text| text.lines().count()).unwrap_or(0)
}

fn project(server: &Server) -> Project {
    Project::empty().env("ANTHROPIC_BASE_URL", &server.url()).allowing_everything()
}

#[test]
fn a_key_command_runs_once_and_its_key_is_not_disclosed() {
    let server =
        Server::new([Answer::call("call_1", "RunCommand", json!({"command": "cat ../home/print-key"})), Answer::text("Done.")]);
    let project = project(&server);
    let (program, record) = printing(&project, &format!("echo {FIRST}; echo user: me"));
    let project = project.config(&format!("[providers.anthropic]\napi_key_command = [\"{}\"]\n", program.display()));
    let status = project.aye(&["auth", "status", "--json"]).exits(0).json();
    let row = status.as_array().unwrap().iter().find(|row| row["provider"] == "anthropic").unwrap().clone();
    assert_eq!(row["source"], "command");
    assert_eq!(runs(&record), 0, "the status runs no program");
    let said = project.aye(&["exec", "-m", MODEL, "--json", "look around"]).exits(0);
    assert_eq!(runs(&record), 1);
    for request in 0..2 {
        assert_eq!(server.request(request).header("x-api-key"), Some(FIRST));
    }
    let results = server.request(1).tool_results();
    assert!(!results[0].1.contains(FIRST), "{results:?}");
    assert!(!said.stdout.contains(FIRST) && !said.stderr.contains(FIRST), "{}", said.stdout);
}

#[test]
fn a_rejected_key_reruns_the_key_command_and_the_request_is_retried_once() {
    let rejected = || Answer::error(401, "authentication_error", "invalid x-api-key");
    let server = Server::new([rejected(), Answer::text("Done.")]);
    let project = project(&server);
    let (program, record) =
        printing(&project, &format!("if [ $(wc -l < $HOME/runs) = 1 ]; then echo {FIRST}; else echo {SECOND}; fi"));
    let settings = format!("[providers.anthropic]\napi_key_command = [\"{}\"]\n", program.display());
    let project = project.config(&settings);
    project.aye(&["exec", "-m", MODEL, "hello"]).exits(0);
    assert_eq!(server.request(0).header("x-api-key"), Some(FIRST));
    assert_eq!(server.request(1).header("x-api-key"), Some(SECOND));
    assert_eq!(runs(&record), 2);
    let server = Server::new([rejected(), rejected()]);
    let project = project.env("ANTHROPIC_BASE_URL", &server.url());
    project.aye(&["exec", "-m", MODEL, "hello"]).exits(5).says(&["invalid x-api-key", "api_key_command"]);
    assert_eq!(server.requests().len(), 2, "one repetition only");
}

#[test]
fn a_failing_key_command_is_reported_with_its_error_output() {
    let server = Server::new([]);
    let project = project(&server);
    let (program, _) = printing(&project, "echo 'the vault is locked' >&2; exit 3");
    let settings = format!("[providers.anthropic]\napi_key_command = [\"{}\", \"x\"]\n", program.display());
    let project = project.config(&settings);
    let output = project.aye(&["exec", "-m", MODEL, "hello"]).exits(5);
    output.says(&["api_key_command", "exit code 3", "the vault is locked"]);
}

#[test]
fn invalid_commands_and_headers_are_errors_with_their_line() {
    let server = Server::new([]);
    for (line, says) in [
        ("api_key_command = []", "the program is missing"),
        ("api_key_command = [\"pass show x\"]", "aye runs the command without a shell"),
        ("api_key_command = [\"./key\"]", "relative path"),
        ("api_key_command = \"pass\"", "expected an array of strings"),
        ("headers = { \"X-Api-Key\" = \"a\" }", "is set by aye for this API"),
        ("headers = { Host = \"a\" }", "is set by aye"),
        ("headers = { \"a b\" = \"a\" }", "invalid header name"),
        ("headers = { X-A = \"a\\nb\" }", "not allowed in a header"),
    ] {
        let project = project(&server).config(&format!("[providers.anthropic]\n{line}\n"));
        project.aye(&["exec", "-m", MODEL, "hello"]).exits(2).says(&["config.toml` line 2", says]);
    }
    let project = project(&server).config("[providers.anthropic]\nheaders = { X-A = \"${NOWHERE}\" }\n");
    project.aye(&["exec", "-m", MODEL, "hello"]).exits(2).says(&["line 2", "X-A", "NOWHERE is not set"]);
}

#[test]
fn headers_are_sent_with_each_request_and_their_secrets_are_redacted() {
    let server = Server::new([
        Answer::call("call_1", "RunCommand", json!({"command": "echo token-4711-abcd search-team"})),
        Answer::text("Done."),
    ]);
    let project = project(&server)
        .env("ANTHROPIC_API_KEY", "sk-ant-scripted")
        .env("GATEWAY", "token-4711-abcd")
        .config("[providers.anthropic.headers]\nX-Team = \"search-team\"\nX-Gateway = \"Token ${GATEWAY}\"\n");
    project.aye(&["exec", "-m", MODEL, "hello"]).exits(0);
    for request in 0..2 {
        assert_eq!(server.request(request).header("x-team"), Some("search-team"));
        assert_eq!(server.request(request).header("x-gateway"), Some("Token token-4711-abcd"));
    }
    let results = server.request(1).tool_results();
    assert!(!results[0].1.contains("4711") && results[0].1.contains("search-team"), "{results:?}");
    let shown = project.aye(&["config", "show"]).exits(0).stdout;
    assert!(shown.contains("providers.anthropic.headers") && !shown.contains("Token"), "{shown}");
}

#[test]
fn projects_cannot_set_key_commands_or_headers() {
    let server = Server::new([Answer::text("Done.")]);
    let project = project(&server).env("ANTHROPIC_API_KEY", "sk-ant-scripted");
    let (program, record) = printing(&project, "echo key-of-the-project");
    let settings =
        format!("[providers.anthropic]\napi_key_command = [\"{}\"]\nheaders = {{ X-Team = \"a\" }}\n", program.display());
    let project = project.file(".aye/config.toml", &settings);
    let output = project.aye(&["exec", "-m", MODEL, "--trust", "hello"]).exits(0);
    assert_eq!((server.request(0).header("x-team"), runs(&record)), (None, 0));
    let doctor = project.aye(&["doctor", "--trust"]);
    for says in ["a project cannot start programs or set keys", "a project cannot set the headers of requests"] {
        assert!(doctor.stdout.contains(says), "{}\n{}", doctor.stdout, output.stderr);
    }
}
