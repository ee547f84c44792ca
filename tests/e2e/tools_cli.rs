//! `aye tool`: list, plan and call tools.

use crate::support::{Output, Project, texts};
use serde_json::{Value, json};

const TOOLS: [&str; 31] = [
    "ReadFile",
    "ListDirectory",
    "Glob",
    "Grep",
    "Stat",
    "TextInspect",
    "HashFile",
    "DiskUsage",
    "UploadArtifact",
    "WriteFile",
    "EditFile",
    "ApplyPatch",
    "AppendFile",
    "TextPatch",
    "CreateDirectory",
    "Copy",
    "Move",
    "Delete",
    "RunCommand",
    "CliSession",
    "CliWrite",
    "CliRead",
    "CliStop",
    "CliGetPlatform",
    "CliEnv",
    "OpenPath",
    "RevealInOs",
    "HttpRequest",
    "AskUser",
    "ProposePlan",
    "UpdateSteps",
];

fn call(project: &Project, tool: &str, arguments: &Value, flags: &[&str]) -> Output {
    let arguments = arguments.to_string();
    let mut words = vec!["tool", "call", tool, "--args", &arguments, "--json"];
    words.extend(flags);
    project.aye(&words)
}

#[test]
fn every_tool_is_listed_and_has_a_schema() {
    let project = Project::empty();
    let list = project.aye(&["tool", "list"]).exits(0).stdout;
    for tool in TOOLS {
        assert!(list.contains(tool), "{tool} is missing in\n{list}");
        assert!(list.lines().all(|line| line.len() < 300), "a sentence each:\n{list}");
        let schema = project.aye(&["tool", "schema", tool]).exits(0).json();
        assert_eq!(schema["toolName"], tool);
        assert_eq!(schema["inputSchema"]["type"], "object", "{schema}");
        assert!(!schema["description"].as_str().unwrap().is_empty());
    }
    project.aye(&["tool", "schema", "NoSuchTool"]).exits(2).says(&["NoSuchTool"]);
}

#[test]
fn tool_descriptions_are_short_and_in_a_fixed_order() {
    let listed = Project::empty().aye(&["tool", "list", "--json"]).exits(0);
    let tools = listed.json();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["toolName"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS, "reads, writes, commands, network");
    assert!(listed.stdout.len() <= 21_000, "{} bytes", listed.stdout.len());
}

#[test]
fn a_read_call_returns_the_file_content() {
    let project = Project::empty().file("a.txt", "alpha\nbeta\n");
    let result = call(&project, "ReadFile", &json!({"path": "a.txt"}), &[]).exits(0).json();
    assert_eq!((&result["toolName"], &result["status"]), (&json!("ReadFile"), &json!("succeeded")));
    assert!(result["outputText"].as_str().unwrap().contains("beta"));
}

#[test]
fn an_edit_is_denied_without_approval_and_applied_with_it() {
    let project = Project::empty().bytes("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\nthree");
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]});
    let denied = call(&project, "EditFile", &edit, &[]).exits(1).json();
    assert_eq!(denied["status"], "denied");
    assert_eq!(project.read("a.txt"), "\u{feff}one\r\ntwo\r\nthree");
    call(&project, "EditFile", &edit, &["--yes"]).exits(0);
    assert_eq!(project.read("a.txt"), "\u{feff}one\r\n2\r\nthree", "only the word changed");
}

#[test]
fn a_plan_shows_the_changes_without_applying_them() {
    let project = Project::empty().file("a.txt", "one\ntwo\n");
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]});
    let proposal = call(&project, "EditFile", &edit, &["--plan"]).exits(0).json();
    let diff = proposal["diff"].as_str().unwrap();
    assert!(diff.contains("-two") && diff.contains("+2"), "{diff}");
    assert_eq!(proposal["paths"].as_array().unwrap().len(), 1);
    assert!(proposal["summary"].is_string() && proposal["bytes"].is_number(), "{proposal}");
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    let empty = call(&project, "ReadFile", &json!({"path": "a.txt"}), &["--plan"]).exits(0).json();
    assert_eq!(empty["paths"], json!([]), "a read touches nothing");
}

#[test]
fn arguments_can_be_read_from_a_file_or_stdin() {
    let project = Project::empty().file("a.txt", "alpha\n").file("args.json", r#"{"path": "a.txt"}"#);
    project.aye(&["tool", "call", "ReadFile", "--args", "@args.json", "--json"]).exits(0);
    project.aye_with_input(&["tool", "call", "ReadFile", "--args", "-", "--json"], r#"{"path": "a.txt"}"#).exits(0);
}

#[test]
fn failed_calls_have_an_error_code() {
    let project = Project::empty().file("a.txt", "alpha\n");
    let cases = [
        ("LaunchRocket", json!({}), "TOOL_NOT_FOUND"),
        ("ReadFile", json!({}), "INVALID_REQUEST"),
        ("ReadFile", json!({"path": "none.txt"}), "FILE_NOT_FOUND"),
        ("EditFile", json!({"path": "a.txt", "edits": [{"oldText": "no such text", "newText": ""}]}), "INVALID_REQUEST"),
    ];
    for (tool, arguments, code) in cases {
        let result = call(&project, tool, &arguments, &["--yes"]).exits(1).json();
        assert_eq!(result["error"]["code"], code, "{tool} {arguments}: {result}");
        assert!(!result["error"]["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn approval_does_not_override_a_denial() {
    let project = Project::empty();
    let outside = project.directory("home").join("out.txt").display().to_string();
    let result = call(&project, "WriteFile", &json!({"path": outside, "content": "x"}), &["--yes"]).exits(1).json();
    assert_eq!(result["status"], "denied", "{result}");
    let git = json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n", "createDirectories": true});
    let result = call(&project, "WriteFile", &git, &["--yes"]).exits(1).json();
    assert_eq!(result["status"], "denied", "{result}");
    assert!(!project.exists(".git"));
}

#[test]
fn symlinks_do_not_give_access_outside_the_workspace() {
    let project = Project::empty();
    std::fs::write(project.directory("home").join("secret"), "hidden words").unwrap();
    std::os::unix::fs::symlink(project.directory("home"), project.path("link")).unwrap();
    let output = call(&project, "ReadFile", &json!({"path": "link/secret"}), &[]).exits(1);
    assert!(!output.stdout.contains("hidden words"), "{}", output.stdout);
    assert_eq!(output.json()["status"], "denied");
}

#[test]
fn searches_find_matching_files() {
    let project = Project::empty().file("src/a.rs", "fn needle() {}\n").file("src/b.txt", "hay\n");
    let found =
        |tool, arguments| call(&project, tool, &arguments, &[]).exits(0).json()["outputText"].as_str().unwrap().to_owned();
    let grep = found("Grep", json!({"pattern": "need.e"}));
    assert!(grep.contains("a.rs") && !grep.contains("b.txt"), "{grep}");
    let glob = found("Glob", json!({"pattern": "**/*.rs"}));
    assert!(glob.contains("a.rs") && !glob.contains("b.txt"), "{glob}");
    let list = found("ListDirectory", json!({"path": "src"}));
    assert!(list.contains("a.rs") && list.contains("b.txt"), "{list}");
}

#[cfg(target_os = "linux")]
mod commands {
    use super::*;
    use crate::support::{TIMEOUT, processes_running, wait_until};

    #[test]
    fn a_command_that_times_out_is_killed_with_all_its_processes() {
        let project = Project::empty();
        let (first, second) = (format!("6161.{}", std::process::id()), format!("6162.{}", std::process::id()));
        let command = json!({"command": format!("echo begun; sleep {first} & sleep {second}; wait"), "timeout": 1});
        let result = call(&project, "RunCommand", &command, &["--yes"]).exits(1).json();
        assert_eq!(result["error"]["code"], "TOOL_EXECUTION_TIMEOUT", "{result}");
        assert!(result["outputText"].as_str().unwrap().contains("begun"), "what it said is kept: {result}");
        for seconds in [&first, &second] {
            assert!(wait_until(TIMEOUT, || processes_running(&["sleep", seconds]) == 0), "sleep {seconds} lives");
        }
    }

    #[test]
    fn leftover_processes_of_a_command_are_killed_without_waiting() {
        let project = Project::empty();
        let seconds = format!("6163.{}", std::process::id());
        let command = json!({"command": format!("sleep {seconds} & echo done")});
        let result = call(&project, "RunCommand", &command, &["--yes"]).exits(0).json();
        assert!(result["outputText"].as_str().unwrap().contains("done"), "{result}");
        assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0));
    }

    #[test]
    fn commands_run_with_the_aye_variable_set() {
        let result = call(&Project::empty(), "RunCommand", &json!({"command": "echo \"AYE=$AYE\""}), &["--yes"]).exits(0).json();
        assert!(result["outputText"].as_str().unwrap().contains("AYE=1"), "{result}");
    }
}

#[test]
fn tools_disabled_by_the_policy_are_not_offered_and_denied_under_every_name() {
    let bundle = "schema_version = 1\n[tools]\ndisabled = [\"run*\"]\n[capabilities.\"File.Read\"]\n\
        [capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\n";
    let project = Project::empty().file("bundle.toml", bundle).file("a.txt", "alpha\n");
    let list = project.aye(&["tool", "list", "--policy", "bundle.toml"]).exits(0).stdout;
    let offers = |name: &str| list.lines().any(|line| line.split_whitespace().next() == Some(name));
    assert!(offers("ReadFile") && !offers("RunCommand"), "{list}");
    for name in ["RunCommand", "bash"] {
        for flags in [&["--policy", "bundle.toml", "--yes"][..], &["--policy", "bundle.toml", "--plan"]] {
            let result = call(&project, name, &json!({"command": "true", "cwd": "missing"}), flags).exits(1).json();
            assert_eq!(result["status"], "denied", "{result}");
            assert!(result["error"]["message"].as_str().unwrap().contains("policy:3"), "{result}");
        }
        let line = json!({"tool": name, "arguments": {"command": "true"}}).to_string();
        let words = ["policy", "check", "--jsonl", "--policy", "bundle.toml"];
        let verdict = project.aye_with_input(&words, &(line + "\n")).exits(0).json();
        assert_eq!((&verdict["verdict"], &verdict["rule"]), (&json!("deny"), &json!("policy:3")), "{verdict}");
    }
    call(&project, "ReadFile", &json!({"path": "a.txt"}), &["--policy", "bundle.toml"]).exits(0);
}

#[test]
fn http_requests_need_permission_and_never_reach_the_local_machine() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let open = "schema_version = 1\n[capabilities.\"Network.Http\"]\nrequires_approval = false\n";
    let project = Project::empty().file("open.toml", open).file("none.toml", "schema_version = 1\n");
    let code = |url: &str, flags: &[&str]| {
        let result = call(&project, "HttpRequest", &json!({"url": url}), flags).exits(1).json();
        result["error"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(code("https://docs.example.com/", &[]), "NO_APPROVER");
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "127.1", "0"] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(code(&url, &["--yes"]), "POLICY_DENIED", "{url}");
        assert_eq!(code(&url, &["--policy", "open.toml"]), "POLICY_DENIED", "{url}");
    }
    assert_eq!(code("https://docs.example.com/", &["--yes", "--policy", "none.toml"]), "POLICY_DENIED");
    assert!(server.accept().is_err(), "somebody connected");
    let listed = project.aye(&["tool", "list", "--policy", "none.toml"]).exits(0).stdout;
    assert!(!listed.contains("HttpRequest"), "{listed}");
}

const NAMED: &str = r#"schema_version = 1
[capabilities."File.Read"]
allowed_paths = ["${workspace}"]
blocked_paths = ["**/private/**"]
[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = true
[[named_commands]]
name = "join"
description = "Joins two files into a third."
command = ["tests/join.sh", "--as={kind}", "{left}", "{out}", "{note}"]
arguments = { left = "input", out = "path", kind = ["text", "lines"], note = "text" }
[[named_commands]]
name = "wipe"
command = ["dd", "of={out}"]
arguments = { out = "path" }
[capabilities."Shell.Exec"]
allowed_commands = []
blocked_commands = ["dd"]
"#;

#[test]
fn a_named_command_runs_its_fixed_program_with_validated_arguments() {
    let script = "#!/bin/sh\nprintf '%s|%s|%s' \"$1\" \"$4\" \"$(cat \"$2\")\" > \"$3\"\necho done\n";
    let project = Project::empty().file("p.toml", NAMED).file("a b.txt", "alpha").file("private/k", "x");
    let project = project.file("tests/join.sh", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path("tests/join.sh"), mode).unwrap();
    let policy = ["--policy", "p.toml"];
    let list = project.aye(&["tool", "list", "--policy", "p.toml"]).exits(0).stdout;
    assert!(list.contains("join") && list.contains("Joins two files"), "{list}");
    let schema = project.aye(&["tool", "schema", "join", "--policy", "p.toml"]).exits(0).json();
    assert_eq!(schema["inputSchema"]["properties"]["kind"]["enum"], json!(["text", "lines"]), "{schema}");
    let good = json!({"left": "a b.txt", "out": "out.txt", "kind": "lines", "note": "it's $(id) ; ok"});
    let denied = call(&project, "join", &good, &policy).exits(1).json();
    assert_eq!((&denied["status"], &denied["error"]["code"]), (&json!("denied"), &json!("NO_APPROVER")), "{denied}");
    let yes = ["--policy", "p.toml", "--yes"];
    let done = call(&project, "join", &good, &yes).exits(0).json();
    assert!(done["outputText"].as_str().unwrap().contains("Exit code: 0"), "{done}");
    assert_eq!(project.read("out.txt"), "--as=lines|it's $(id) ; ok|alpha", "no shell reads the words");
    for (change, code) in [
        (json!({"left": "../x"}), "POLICY_DENIED"),
        (json!({"left": "private/k"}), "POLICY_DENIED"),
        (json!({"out": ".git/config"}), "POLICY_DENIED"),
        (json!({"out": "/etc/x"}), "POLICY_DENIED"),
        (json!({"kind": "other"}), "INVALID_REQUEST"),
        (json!({"note": "--output=/etc/x"}), "INVALID_REQUEST"),
        (json!({"note": "two\nlines"}), "INVALID_REQUEST"),
        (json!({"extra": "x"}), "INVALID_REQUEST"),
    ] {
        let mut arguments = good.clone();
        arguments.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let result = call(&project, "join", &arguments, &yes).exits(1).json();
        assert_eq!(result["error"]["code"], code, "{change}: {result}");
    }
    let blocked = call(&project, "wipe", &json!({"out": "x"}), &yes).exits(1).json();
    assert!(blocked["error"]["message"].as_str().unwrap().contains(texts::BLOCKED_COMMAND), "{blocked}");
    let shell = call(&project, "RunCommand", &json!({"command": "true"}), &yes).exits(1).json();
    assert_eq!(shell["error"]["code"], "POLICY_DENIED", "there is no shell: {shell}");
}

#[test]
fn projects_cannot_define_named_commands_and_tool_names_cannot_be_overridden() {
    let named = "schema_version = 1\n[[named_commands]]\nname = \"evil\"\ncommand = [\"sh\", \"x.sh\"]\n";
    let project = Project::empty().file(".aye/policy.toml", named).file("x.sh", "touch hurt\n");
    let list = project.aye(&["tool", "list", "--trust"]).exits(0).stdout;
    assert!(!list.contains("evil"), "{list}");
    call(&project, "evil", &json!({}), &["--trust", "--yes"]).exits(1);
    let own = named.replace("evil", "readfile");
    let project = Project::empty().file("p.toml", &own).file("a.txt", "alpha");
    let read = call(&project, "ReadFile", &json!({"path": "a.txt"}), &["--policy", "p.toml"]).exits(1).json();
    assert_eq!(read["error"]["code"], "POLICY_DENIED", "it is not granted, and it is the tool all the same: {read}");
}
