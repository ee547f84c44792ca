//! Custom tools from manifests: those of the user, and those of a project after the project is trusted.

use crate::support::{Answer, Gate, Output, Project, Server, TIMEOUT, processes_running, texts, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const COMMANDS: &str =
    "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nsandbox = \"workspace-write\"\n";

fn manifest(name: &str, more: &str) -> String {
    format!("name = \"{name}\"\ndescription = \"Does {name}.\"\ncommand = [\"./{name}.sh\"]\n{more}")
}

fn put(directory: &Path, name: &str, manifest: &str, program: &str) {
    fs::create_dir_all(directory).unwrap();
    let path = directory.join(format!("{name}.sh"));
    fs::write(&path, format!("#!/bin/sh\n{program}\n")).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let new = directory.join(format!("{name}.new"));
    fs::write(&new, manifest).unwrap();
    fs::rename(new, directory.join(format!("{name}.toml"))).unwrap();
}

/// Writes a tool of the user.
fn own(project: &Project, name: &str, more: &str, program: &str) {
    put(&project.directory("config").join("tools"), name, &manifest(name, more), program);
}

/// Writes a tool of the project.
fn brought(project: &Project, name: &str, more: &str, program: &str) {
    put(&project.path(".aye/tools"), name, &manifest(name, more), program);
}

fn call(project: &Project, tool: &str, arguments: &Value, flags: &[&str]) -> Output {
    let arguments = arguments.to_string();
    let mut words = vec!["tool", "call", tool, "--args", &arguments, "--json"];
    words.extend(flags);
    project.aye(&words)
}

#[track_caller]
fn refused(output: Output, code: &str) -> String {
    let told = output.exits(1).json();
    assert_eq!(told["error"]["code"], code, "{told}");
    told["error"]["message"].as_str().unwrap().to_owned()
}

fn listed(project: &Project, flags: &[&str]) -> String {
    project.aye(&[&["tool", "list"], flags].concat()).exits(0).stdout
}

const TEXT: &str = "[input_schema]\ntype = \"object\"\nrequired = [\"text\"]\nproperties = { text = { type = \"string\" } }\n";

#[test]
fn a_user_tool_is_listed_and_runs_after_approval() {
    let project = Project::empty().env("SECRET_TOKEN", "hush-hush-hush");
    own(&project, "shout", TEXT, "tr a-z A-Z; env; echo here > made");
    assert!(listed(&project, &[]).contains("shout"));
    let schema = project.aye(&["tool", "schema", "shout"]).exits(0).json();
    assert_eq!(schema["inputSchema"]["required"], json!(["text"]));
    assert_eq!(project.aye(&["tool", "schema", "--manifest"]).exits(0).json()["required"], json!(["name", "description"]));
    let message = refused(call(&project, "shout", &json!({"text": "abc"}), &[]), "NO_APPROVER");
    assert!(message.contains("needs approval until one of your rules allows it"), "{message}");
    assert!(
        refused(call(&project, "shout", &json!({"txt": "abc"}), &["--yes"]), "INVALID_REQUEST").contains("`text` is missing")
    );
    assert!(!project.exists("made"));
    let told = call(&project, "shout", &json!({"text": "abc"}), &["--yes"]).exits(0).json();
    let text = told["outputText"].as_str().unwrap();
    assert!(text.starts_with("{\"TEXT\":\"ABC\"}") && !text.contains("hush-hush"), "{text}");
    assert!(project.exists("made"), "it runs in the workspace");
    refused(call(&project, "shout", &json!({"text": "abc"}), &["--mode", "plan", "--yes"]), "POLICY_DENIED");
}

#[test]
fn project_tools_do_not_run_before_the_user_has_reviewed_them() {
    let server = Server::new([Answer::text("Done.")]);
    let project = Project::with(&server).policy(COMMANDS);
    brought(&project, "lint", "", "echo linted");
    assert!(!listed(&project, &[]).contains("lint"));
    refused(call(&project, "lint", &json!({}), &["--yes"]), "TOOL_NOT_FOUND");
    // `--trust` only offers the tool. The flag is not a review, so the tool needs approval in every mode.
    assert!(listed(&project, &["--trust"]).contains("lint"));
    for mode in ["ask", "auto"] {
        let message = refused(call(&project, "lint", &json!({}), &["--trust", "--mode", mode]), "NO_APPROVER");
        assert!(message.contains("is new or has changed since you reviewed it"), "{message}");
    }
    let mut terminal = project.open_sized(&[], 100, 30);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains(".aye/tools/lint.toml") && screen.contains(".aye/tools/lint.sh"), "{screen}");
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    assert!(terminal.quit().success());
    let asked = refused(call(&project, "lint", &json!({}), &[]), "NO_APPROVER");
    assert!(asked.contains(texts::NEEDS_APPROVAL), "{asked}");
    // The review does not cover a different program, with or without `--trust`.
    fs::write(project.path(".aye/tools/lint.sh"), "#!/bin/sh\ntouch evil\n").unwrap();
    refused(call(&project, "lint", &json!({}), &["--yes"]), "TOOL_NOT_FOUND");
    let message = refused(call(&project, "lint", &json!({}), &["--trust", "--mode", "auto"]), "NO_APPROVER");
    assert!(message.contains(texts::CHANGED_SINCE_REVIEW), "{message}");
    assert!(!project.exists("evil"));
}

#[test]
fn a_fingerprint_rule_allows_only_the_unchanged_tool() {
    let project = Project::empty();
    own(&project, "lint", "", "echo linted");
    let plan = project.aye(&["tool", "call", "lint", "--plan"]).exits(0).json();
    let notes = plan["notes"].to_string();
    let print = notes.split("fingerprint ").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let rule = format!(
        "{}sandbox = \"off\"\n[[capabilities.\"Tool.Custom\".rules]]\ntools = [\"lint\"]\nfingerprint = \"{print}\"\ndecision = \"allow\"\n",
        COMMANDS.replace("sandbox = \"workspace-write\"\n", "")
    );
    let project = project.policy(&rule);
    let told = call(&project, "lint", &json!({}), &[]).exits(0).json();
    assert_eq!(told["outputText"], "linted");
    own(&project, "lint", "", "echo other");
    let message = refused(call(&project, "lint", &json!({}), &["--mode", "auto"]), "NO_APPROVER");
    assert!(message.contains("changed since it was allowed"), "{message}");
    own(&project, "lint", "timeout = 9\n", "echo linted");
    refused(call(&project, "lint", &json!({}), &[]), "NO_APPROVER");
    own(&project, "lint", "", "echo linted");
    call(&project, "lint", &json!({}), &[]).exits(0);
}

#[test]
fn a_tool_timeout_kills_all_processes_of_the_tool() {
    let project = Project::empty();
    own(&project, "slow", "timeout = 1\n", "(setsid sleep 98761 &); echo begun; sleep 98761");
    let told = call(&project, "slow", &json!({}), &["--yes"]).exits(1).json();
    assert_eq!(told["error"]["code"], "TOOL_EXECUTION_TIMEOUT", "{told}");
    assert!(told["outputText"].as_str().unwrap().contains("begun"));
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", "98761"]) == 0));
}

#[test]
fn a_read_only_tool_cannot_write() {
    let project = Project::empty();
    own(&project, "peek", "effects = \"reads\"\n", "cat notes.txt; touch written || echo kept");
    let project = project.file("notes.txt", "hello\n");
    let told = call(&project, "peek", &json!({}), &["--yes"]).exits(0).json();
    let doctor = project.aye(&["doctor", "--json"]).json();
    if doctor["tier"] == "bare" {
        eprintln!("skipped: nothing holds a command here");
        return;
    }
    assert!(told["outputText"].as_str().unwrap().starts_with("hello\n") && !project.exists("written"), "{told}");
}

#[test]
fn an_invalid_manifest_is_reported_with_its_line_and_other_tools_work() {
    let project = Project::empty();
    own(&project, "good", "", "echo good");
    let tools = project.directory("config").join("tools");
    fs::write(tools.join("a.toml"), "name = \"a\"\ndescription = \"d\"\ncomand = [\"x\"]\n").unwrap();
    fs::write(tools.join("b.toml"), "name = \"grep\"\ndescription = \"d\"\ncommand = [\"x\"]\n").unwrap();
    fs::write(tools.join("c.toml"), b"name = \"\xff\"\n").unwrap();
    put(&tools, "good2", &manifest("GOOD", ""), "echo second");
    let list = project.aye(&["tool", "list"]).exits(0);
    assert!(list.stdout.contains("good"));
    for words in
        ["a.toml` line 3: unknown field `comand`", "b.toml` line 1", "built-in tool Grep", "c.toml` line 1", texts::TOOL_EXISTS]
    {
        assert!(list.stderr.contains(words), "{words}: {}", list.stderr);
    }
    call(&project, "good", &json!({}), &["--yes"]).exits(0);
    let doctor = project.aye(&["doctor"]).stdout;
    assert!(doctor.contains("custom tools") && doctor.contains("a.toml` line 3"), "{doctor}");
    // A missing program is an error of the call, with a hint.
    fs::remove_file(tools.join("good.sh")).unwrap();
    assert!(refused(call(&project, "good", &json!({}), &["--yes"]), "TOOL_EXECUTION_FAILED").contains("install it there"));
}

#[test]
fn a_user_tool_takes_precedence_over_a_project_tool_of_the_same_name() {
    let project = Project::empty();
    own(&project, "lint", "", "echo mine");
    brought(&project, "lint", "", "echo theirs");
    let told = call(&project, "lint", &json!({}), &["--trust", "--yes"]).exits(0);
    assert!(told.stderr.contains(texts::TOOL_EXISTS), "{}", told.stderr);
    assert_eq!(told.json()["outputText"], "mine");
}

#[test]
fn settings_disable_tools_by_name_alias_and_pattern() {
    let project = Project::empty().file("a.txt", "x").config("[tools]\ndisabled = [\"bash\", \"Cli*\", \"lint\"]\n");
    own(&project, "lint", "", "echo linted");
    let list = listed(&project, &[]);
    for gone in ["RunCommand", "CliRead", "lint"] {
        assert!(!list.contains(gone), "{gone}: {list}");
        let message = refused(call(&project, gone, &json!({}), &["--yes"]), "POLICY_DENIED");
        assert!(message.contains("config.toml:2"), "{message}");
    }
    assert!(list.contains("ReadFile"));
    let project = project
        .config("[tools]\nenabled = [\"read_file\", \"Grep\"]\n")
        .file(".aye/config.toml", "[tools]\ndisabled = [\"Grep\"]\nenabled = [\"Grep\", \"ReadFile\", \"RunCommand\"]\n");
    assert_eq!(listed(&project, &[]).lines().count(), 2);
    // A project can only remove tools, and only after it is trusted.
    let list = listed(&project, &["--trust"]);
    assert_eq!((list.lines().count(), list.contains("ReadFile")), (1, true), "{list}");
    let message = refused(call(&project, "grep", &json!({"pattern": "x"}), &["--trust"]), "POLICY_DENIED");
    assert!(message.contains(".aye/config.toml:2"), "{message}");
    let check = project.aye_with_input(
        &["policy", "check", "--jsonl"],
        "{\"tool\": \"WriteFile\", \"arguments\": {\"path\": \"a\", \"content\": \"\"}}\n",
    );
    assert_eq!(check.exits(0).json()["verdict"], "deny");
    project.aye(&["tool", "list", "--set", "tools.conflict=both"]).exits(2).says(&["local-first"]);
}

#[test]
fn a_session_calls_custom_tools_and_loads_new_ones_while_running() {
    let gate = Gate::default();
    let server = Server::new([
        Answer::text("First.").and_call("call_1", "shout", json!({"text": "abc"})).and_wait(&gate),
        Answer::text("Second.").and_call("call_2", "later", json!({})),
        Answer::text("Done."),
    ]);
    let project = Project::with(&server);
    own(&project, "shout", TEXT, "tr a-z A-Z");
    let mut terminal = project.open(&["go"]);
    terminal.wait_for("First.");
    fs::write(project.directory("config").join("tools/broken.toml"), "name = 7\n").unwrap();
    terminal.wait_for("broken.toml` line 1");
    own(&project, "later", "", "echo came later");
    terminal.wait_for("tools reloaded (later, shout)");
    gate.open();
    let screen = terminal.review(texts::NEEDS_APPROVAL);
    assert!(screen.contains("shout.sh") && screen.contains("your tool"), "{screen}");
    terminal.decide('y');
    terminal.review("the tool `later` needs approval");
    terminal.decide('y');
    terminal.wait_for("Done.");
    let tools = |number: usize| server.request(number).body["tools"].to_string();
    assert!(tools(0).contains("shout") && !tools(0).contains("\"later\"") && tools(1).contains("\"later\""));
    assert!(server.request(1).tool_results()[0].1.contains("{\"TEXT\":\"ABC\"}"), "{:?}", server.request(1).tool_results());
    assert!(server.request(2).tool_results().iter().any(|(_, told)| told.contains("came later")));
    // A setting removes the tool again. An invalid setting changes nothing.
    let config = project.directory("config").join("config.toml");
    fs::write(&config, "[tools]\ndisabled = [\"later\"]\n").unwrap();
    // The notice about another tool appears once both changes are in effect.
    own(&project, "third", "", "echo third");
    terminal.wait_for("tools reloaded (later, shout, third)");
    server.push(Answer::text("Third.").and_call("call_3", "later", json!({})));
    server.push(Answer::text("All over."));
    terminal.prompt("again");
    terminal.wait_for("All over.");
    assert!(!tools(3).contains("\"later\""));
    assert!(server.request(4).tool_results().iter().any(|(_, told)| told.contains("POLICY_DENIED")));
    fs::write(&config, "[tools]\ndisabled = 7\n").unwrap();
    terminal.wait_for("the previous tool settings apply");
    assert!(terminal.quit().success());
}

#[test]
fn a_tool_chain_needs_one_approval_and_each_step_is_checked_by_the_policy() {
    let project = Project::empty().file("src/a.txt", "needle\n");
    own(&project, "count", TEXT, "wc -c");
    let chain = "name = \"find_and_count\"\ndescription = \"d\"\nsteps = [\n  { tool = \"Grep\", arguments = { pattern = \"{input.pattern}\" } },\n  \
        { tool = \"count\", arguments = { text = \"{steps[0].output}\" } },\n]\n[input_schema]\ntype = \"object\"\n\
        required = [\"pattern\"]\nproperties = { pattern = { type = \"string\" } }\n";
    fs::write(project.directory("config").join("tools/chain.toml"), chain).unwrap();
    refused(call(&project, "find_and_count", &json!({"pattern": "needle"}), &[]), "NO_APPROVER");
    let told = call(&project, "find_and_count", &json!({"pattern": "needle"}), &["--yes"]).exits(0).json();
    assert!(told["outputText"].as_str().unwrap().trim().parse::<u32>().is_ok(), "{told}");
    // A chain has only the permissions that all of its steps have.
    let project = project.policy(
        "schema_version = 1\n[capabilities.\"File.Read\"]\nblocked_paths = [\"**/src\"]\n[capabilities.\"Shell.Exec\"]\n[tools]\ndisabled = [\"count\"]\n",
    );
    refused(call(&project, "find_and_count", &json!({"pattern": "needle"}), &["--yes"]), "POLICY_DENIED");
}

#[test]
fn the_policy_commands_evaluate_custom_tools() {
    let project = Project::empty();
    brought(&project, "lint", "", "echo linted");
    let line = "{\"tool\": \"lint\", \"arguments\": {}}\n";
    let judged =
        |flags: &[&str]| project.aye_with_input(&[&["policy", "check", "--jsonl"], flags].concat(), line).exits(0).json();
    assert_eq!(judged(&[])["verdict"], "deny", "there is no such tool");
    assert_eq!(judged(&["--trust"])["verdict"], "ask");
    let told = project.aye(&["policy", "explain", "--trust", "--tool", "lint", "--args", "{}"]).exits(0).stdout;
    assert!(told.contains("lint.sh") && told.contains(texts::CHANGED_SINCE_REVIEW), "{told}");
}

#[test]
fn a_step_with_a_missing_tool_fails_with_the_available_tools() {
    let project = Project::empty();
    let manifest = "name = \"two\"\ndescription = \"Does two.\"\nsteps = [{ tool = \"tickets_of\", arguments = {} }]\n[input_schema]\ntype = \"object\"\n";
    put(&project.directory("config").join("tools"), "two", manifest, "true");
    let message = refused(call(&project, "two", &json!({}), &["--yes"]), "TOOL_NOT_FOUND");
    assert!(message.contains("tickets_of") && message.contains("ReadFile"), "{message}");
}
