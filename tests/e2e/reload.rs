//! Policy files and settings that change during a session.

use super::remote_tools::{FAREWELL, SERVER, with_server};
use crate::support::{Answer, Gate, Project, Server, texts, wait_until};
use serde_json::json;
use std::fs;

fn policy(version: &str, rest: &str) -> String {
    format!(
        "schema_version = 1\nbundle_version = \"{version}\"\n{rest}\n[capabilities.\"File.Read\"]\n\
         [capabilities.\"File.Write\"]\nrequires_approval = true\n"
    )
}

/// Writes the policy like an editor: as a new file, renamed over the old one.
fn put(project: &Project, text: &str) {
    let path = project.directory("config").join("policy.toml");
    fs::write(path.with_extension("new"), text).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

#[test]
fn an_edited_policy_applies_immediately_and_an_invalid_one_does_not() {
    let gate = Gate::default();
    let read = || Answer::text("Reading.").and_call("call_1", "ReadFile", json!({"path": "notes.txt"}));
    let server = Server::new([read().and_wait(&gate), Answer::text("First done."), read(), Answer::text("Second done.")]);
    let project = Project::with(&server).file("notes.txt", "x\n").policy(&policy("one", ""));
    let mut terminal = project.open(&[]);
    terminal.prompt("read it");
    terminal.wait_for("Reading.");
    put(&project, "schema_version = 1\nbundle_versio = \"two\"\n");
    let screen = terminal.wait_for(texts::PREVIOUS_POLICY);
    for words in ["line 2", "2 │ bundle_versio", "bundle_version", texts::POLICY_INVALID] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    gate.open();
    terminal.wait_for("First done.");
    assert!(!server.request(1).tool_results()[0].1.contains("POLICY_DENIED"), "the last good policy lets it read");
    put(&project, &policy("three", "").replace("\"File.Read\"]", "\"File.Read\"]\nblocked_paths = [\"**/notes.txt\"]"));
    terminal.wait_for("policy reloaded: user (bundle three)");
    terminal.wait_until_gone(texts::POLICY_INVALID);
    terminal.prompt(texts::READ_AGAIN);
    terminal.wait_for("Second done.");
    assert!(server.request(3).tool_results().last().is_some_and(|(_, told)| told.contains("POLICY_DENIED")));
    terminal.prompt("/policy");
    let screen = terminal.wait_for(texts::FILES_WATCHED);
    assert!(screen.contains("Policy · ") && screen.contains("three"), "{screen}");
    terminal.send("\x1b[F");
    terminal.wait_for("policy.toml");
    terminal.send("\x1b");
    terminal.wait_until_gone(texts::FILES_WATCHED);
    fs::remove_file(project.directory("config").join("policy.toml")).unwrap();
    terminal.wait_for("policy reloaded: built-in");
    assert!(terminal.quit().success());
}

#[test]
fn the_offered_tools_follow_policy_changes() {
    let gate = Gate::default();
    let read = Answer::text("Reading.").and_call("call_1", "ReadFile", json!({"path": "notes.txt"})).and_wait(&gate);
    let server = Server::new([read, Answer::text("Done.")]);
    let project = Project::with(&server).file("notes.txt", "x\n").policy(&policy("one", ""));
    let mut terminal = project.open(&["read it"]);
    terminal.wait_for("Reading.");
    put(&project, &policy("two", "").replace("[capabilities.\"File.Write\"]\nrequires_approval = true\n", ""));
    terminal.wait_for("policy reloaded: user (bundle two)");
    gate.open();
    terminal.wait_for("Done.");
    let offered = |number: usize| server.request(number).body["tools"].to_string();
    assert!(offered(0).contains("WriteFile") && !offered(1).contains("WriteFile"));
    assert!(offered(1).contains("ReadFile"));
}

#[test]
fn an_expired_policy_pauses_the_session_and_a_renewed_one_continues_it() {
    let server = Server::new([Answer::text("Going on.")]);
    let project = Project::with(&server).policy(&policy("old", "expires_at = 2020-01-01T00:00:00Z"));
    let output = project.aye(&["exec", "--json", "hello"]).exits(1);
    let events = output.events();
    events.in_order(&["session_started", "task_started", "policy_expired", "session_paused"]);
    let message = events.only("policy_expired")["message"].as_str().unwrap_or_default();
    for words in
        ["policy `old` expired on 2020-01-01 00:00 UTC", "nothing runs until you renew it", "aye watches ", "config/policy.toml)"]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(events.only("session_paused")["failure"]["kind"], "policy_expired");
    assert!(server.requests().is_empty(), "nothing was sent");
    project.aye(&["exec", "-c"]).exits(1).says(&["expired"]);
    put(&project, &policy("new", "expires_at = 2999-01-01T00:00:00Z"));
    let output = project.aye(&["exec", "-c"]).exits(0);
    assert!(output.stdout.contains("Going on."), "{}", output.stdout);
}

#[test]
fn a_renewed_policy_lets_the_open_session_continue() {
    let server = Server::new([Answer::text("Going on.")]);
    let project = Project::with(&server).policy(&policy("old", "expires_at = 2020-01-01T00:00:00Z"));
    let mut terminal = project.open(&[]);
    terminal.prompt("hello");
    terminal.wait_for("policy `old` expired");
    put(&project, &policy("for another", "session_id = \"another\""));
    terminal.wait_for(texts::PREVIOUS_POLICY);
    put(&project, &policy("new", ""));
    terminal.wait_for("policy reloaded: user (bundle new)");
    terminal.prompt("/continue");
    terminal.wait_for("Going on.");
    assert!(terminal.quit().success());
}

#[test]
fn a_changed_project_policy_is_reported_and_not_applied() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).file(".aye/policy.toml", &policy("p1", ""));
    let mut terminal = project.open(&["hello"]);
    terminal.wait_for("Hello.");
    fs::write(project.path(".aye/policy.toml"), "not a policy at all").unwrap();
    terminal.wait_for("the project's policy changed; the version you trusted");
    terminal.prompt("/policy");
    let screen = terminal.wait_for(texts::FILES_WATCHED);
    assert!(screen.lines().any(|row| row.contains("project") && row.contains("p1")), "{screen}");
    terminal.send("\x1b");
    terminal.wait_until_gone(texts::FILES_WATCHED);
    assert!(terminal.quit().success());
}

#[test]
fn shift_tab_cycles_through_the_modes_and_laxer_ones_need_confirmation() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&["hello"]);
    terminal.wait_for("Hello.");
    terminal.send("\x1b[Z");
    terminal.wait_for("plan");
    terminal.send("\x1b[Z");
    terminal.review("Change the mode to ask?");
    terminal.decide('y');
    terminal.wait_for("· mode ask");
    terminal.send("\x1b[Z");
    terminal.review("Change the mode to auto-edit?");
    terminal.decide('n');
    terminal.wait_until_gone("Change the mode to auto-edit?");
    terminal.send("\x1b[Z");
    terminal.wait_for("mode plan");
    terminal.prompt("/mode auto");
    let screen = terminal.review("Change the mode to auto?");
    assert!(screen.contains("this mode asks less often"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("mode auto");
    terminal.prompt("/mode ask");
    terminal.wait_for("· mode ask");
    assert!(terminal.quit().success());
}

#[test]
fn servers_are_added_and_removed_as_soon_as_the_policy_lists_or_unlists_them() {
    let gates = [Gate::default(), Gate::default()];
    let read = |id: &str| Answer::text("Reading.").and_call(id, "ReadFile", json!({"path": "describes"}));
    let second = Answer::text("Again.").and_call("call_2", "docs__echo", json!({"text": "hi"})).and_wait(&gates[1]);
    let server = Server::new([read("call_1").and_wait(&gates[0]), second, Answer::text("Done.")]);
    let lists = |version: &str, tools: &str| policy(version, "") + "[capabilities.\"Mcp.Invoke\"]\n" + tools;
    let project = with_server(Project::with(&server), "Says it again.").policy(&lists("one", ""));
    let mut terminal = project.open(&["read it"]);
    terminal.wait_for("Reading.");
    put(&project, &lists("two", "allowed_tools = [\"docs/echo\"]\n"));
    terminal.wait_for("docs: 1 tool (1 more is not listed by the policy)");
    gates[0].open();
    terminal.wait_for("Again.");
    put(&project, &lists("three", ""));
    terminal.wait_for("docs: 0 tools");
    gates[1].open();
    terminal.wait_for("Done.");
    let offers = |number: usize| server.request(number).body["tools"].to_string().contains("docs__echo");
    assert_eq!([offers(0), offers(1), offers(2)], [false, true, false]);
    let told = server.request(2).tool_results();
    assert!(
        told.last().is_some_and(|(_, told)| told.contains("the server is off") && told.contains("aye mcp allow docs")),
        "{told:?}"
    );
    assert!(terminal.quit().success());
}

/// Writes the settings like an editor: as a new file, renamed over the old one.
fn put_config(project: &Project, text: &str) {
    let path = project.directory("config").join("config.toml");
    fs::write(path.with_extension("new"), text).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

#[track_caller]
fn wait_for_file(project: &Project, name: &str) {
    let patience = std::time::Duration::from_secs(30);
    assert!(wait_until(patience, || project.exists(name)), "`{name}` is not there");
}

/// Returns whether this request offers the tool of the server.
fn offers_echo(server: &Server, number: usize) -> bool {
    server.request(number).body["tools"].to_string().contains("docs__echo")
}

#[test]
fn unknown_tool_names_added_to_settings_or_policy_are_reported_immediately() {
    let server = Server::new([Answer::text("First.")]);
    let project = Project::with(&server).policy(&policy("one", "")).config("");
    let mut terminal = project.open(&["one"]);
    terminal.wait_for("First.");
    put_config(&project, "[tools]\nenabled = [\"ReadFile\", \"Greb\"]\n");
    let screen = terminal.wait_for("matches no tool");
    assert!(screen.contains("`Greb` in `tools.enabled`") && !screen.contains("`ReadFile`"), "{screen}");
    put(&project, &policy("two", "[tools]\ndisabled = [\"Grib\"]\n"));
    terminal.wait_for("the policy disables the unknown tool `Grib`");
}

#[test]
fn servers_added_to_the_settings_are_offered_and_removed_ones_shut_down_cleanly() {
    let server = Server::new(["First.", "Second.", "Third."].map(Answer::text));
    let project = with_server(Project::with(&server), "Says it again.").config("");
    let project = project.file("server.sh", &format!("{SERVER}{FAREWELL}"));
    let mut terminal = project.open(&["one"]);
    terminal.wait_for("First.");
    put_config(&project, "[mcp.servers.docs]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n");
    terminal.wait_for("docs (MCP): added to the settings");
    terminal.wait_for("docs: 1 tool");
    terminal.prompt("two");
    terminal.wait_for("Second.");
    assert!(!project.exists("ended"), "it runs");
    put_config(&project, "");
    terminal.wait_for("docs (MCP): removed from the settings");
    wait_for_file(&project, "ended");
    terminal.prompt("three");
    terminal.wait_for("Third.");
    assert_eq!([0, 1, 2].map(|number| offers_echo(&server, number)), [false, true, false]);
    terminal.prompt("/mcp");
    terminal.wait_for("no MCP servers");
    assert!(terminal.quit().success());
    assert_eq!(project.read("ended"), "ended\n", "it ended once");
}

#[test]
fn a_changed_server_of_a_trusted_project_does_not_start_until_trusted_again() {
    let entry = |script: &str| json!({"mcpServers": {"docs": {"command": "sh", "args": [script]}}}).to_string();
    let server = Server::new(["First.", "Second.", "Third."].map(Answer::text));
    let project = with_server(Project::with(&server), "Says it again.").config("").file(".mcp.json", &entry("server.sh"));
    let project = project.file("other.sh", &SERVER.replace("#!/bin/sh\n", "#!/bin/sh\necho started >> started\n"));
    let mut terminal = project.open_sized(&[], 100, 40);
    terminal.review(texts::TRUST_THE_PROJECT);
    terminal.decide('y');
    terminal.wait_for("docs: 1 tool");
    terminal.prompt("one");
    terminal.wait_for("First.");
    fs::write(project.path(".mcp.json"), entry("other.sh")).unwrap();
    terminal.wait_for("its settings changed; the server is off");
    terminal.prompt("/mcp reconnect docs");
    terminal.prompt("two");
    terminal.wait_for("Second.");
    terminal.prompt("/mcp");
    let screen = terminal.wait_for("MCP servers · 1");
    assert!(screen.contains("docs") && screen.contains("off"), "{screen}");
    assert!(screen.contains("`.mcp.json` changed since you trusted it"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_until_gone("MCP servers · 1");
    assert!(!project.exists("started"), "it was started");
    let mut other = project.open_sized(&[], 100, 40);
    other.review(texts::TRUST_THE_PROJECT);
    other.decide('y');
    other.wait_for("docs: 1 tool");
    assert!(other.quit().success());
    // The other session has also started the server.
    fs::remove_file(project.path("started")).unwrap();
    terminal.prompt("/mcp reconnect docs");
    wait_for_file(&project, "started");
    terminal.wait_that("the tools are told again", |screen| screen.matches("docs: 1 tool").count() == 2);
    terminal.prompt("three");
    terminal.wait_for("Third.");
    assert_eq!([0, 1, 2].map(|number| offers_echo(&server, number)), [true, false, true]);
    assert!(terminal.quit().success());
}
