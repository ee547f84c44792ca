//! Approval by effects: a command runs in a layer first, and only its changes need approval.
#![cfg(target_os = "linux")]

use crate::support::{Answer, Project, Rpc, Server, TIMEOUT, Terminal, processes_running, texts, wait_until};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

const POLICY: &str = r#"
schema_version = 1
[capabilities."File.Read"]
[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = true
[capabilities."File.Delete"]
allowed_paths = ["${workspace}"]
requires_approval = true
[capabilities."Network.Http"]
requires_approval = true
[capabilities."Shell.Exec"]
requires_approval = true
blocked_commands = ["sudo"]
[[capabilities."Shell.Exec".rules]]
command = ["cmp"]
decision = "ask"
"#;

fn script(line: &str) -> Server {
    Server::new([Answer::call("call_1", "RunCommand", json!({"command": line})), Answer::text("Finished the work.")])
}

/// Creates a project with the default approval by effects. Returns `None`, with a message, if this system does not
/// support layers.
fn project(server: &Server) -> Option<Project> {
    let project = Project::with(server).policy(POLICY).approving_effects();
    let tier = project.aye(&["doctor", "--json"]).json()["tier"].clone();
    if tier != "preview" {
        eprintln!("skipped: the sandbox is {tier}");
        return None;
    }
    Some(project)
}

/// Runs the line without an approver and checks the exit code. Returns the project, the completed call, and the result
/// for the model; `None` if this system does not support layers.
fn without_approver(line: &str, code: i32, arrange: impl Fn(Project) -> Project) -> Option<(Project, Value, String)> {
    exec(&["exec", "--trust", "--json", "do it"], line, code, arrange)
}

fn exec(arguments: &[&str], line: &str, code: i32, arrange: impl Fn(Project) -> Project) -> Option<(Project, Value, String)> {
    let server = script(line);
    let project = arrange(project(&server)?);
    let events = project.aye(arguments).exits(code).events();
    let completed = events.only("tool_completed").clone();
    let told = server.request(1).tool_results()[0].1.clone();
    Some((project, completed, told))
}

#[test]
fn without_an_approver_a_run_without_effects_succeeds() {
    let same = |project| project;
    let Some((project, completed, told)) =
        without_approver("wc -c < a.txt; echo said", 0, |project| project.file("a.txt", "12345"))
    else {
        return;
    };
    assert_eq!((&completed["status"], told.contains("said") && told.contains('5')), (&json!("succeeded"), true), "{told}");
    assert!(std::fs::read_dir(project.directory("data").join("previews")).map_or(true, |left| left.count() == 0));
    let Some((project, completed, told)) = without_approver("echo new > made.txt; echo said", 3, same) else { return };
    assert_eq!((&completed["status"], &completed["error"]["code"]), (&json!("denied"), &json!("NO_APPROVER")));
    assert!(told.contains("discarded") && !told.contains("said"), "{told}");
    assert!(!project.exists("made.txt"));
}

/// Calls RunCommand once, outside a session.
fn call_once(project: &Project, line: &str, mode: &str) -> Value {
    let arguments = json!({"command": line}).to_string();
    project.aye(&["--trust", "--mode", mode, "tool", "call", "RunCommand", "--args", &arguments, "--json"]).json()
}

#[test]
fn a_tool_call_outside_a_session_is_approved_by_its_effects() {
    let server = script("true");
    let Some(project) = project(&server) else { return };
    let project = project.file("a.txt", "12345").file(".env", "SECRET=quiet\n").file("x.sh", "cat a.txt\n");
    for mode in ["ask", "auto"] {
        let told = call_once(&project, "grep -r SECRET .; sh x.sh", mode);
        let output = told["outputText"].as_str().unwrap();
        assert_eq!(told["status"], "succeeded", "{mode}: {told}");
        assert!(output.contains("12345") && !output.contains("quiet"), "{mode}: {told}");
    }
    let denied = call_once(&project, "echo new > made.txt; echo said", "ask");
    assert_eq!((&denied["status"], &denied["error"]["code"]), (&json!("denied"), &json!("NO_APPROVER")), "{denied}");
    assert!(denied["error"]["message"].as_str().unwrap().contains("created made.txt"), "{denied}");
    assert!(!denied.to_string().contains("said") && !project.exists("made.txt"), "{denied}");
    let applied = call_once(&project, "grep -r SECRET .; echo new > made.txt", "auto");
    assert_eq!((&applied["status"], project.read("made.txt").as_str()), (&json!("succeeded"), "new\n"), "{applied}");
    assert!(!applied.to_string().contains("quiet"), "the command ran in a layer: {applied}");
    let link = call_once(&project, "ln -s /etc/passwd link", "auto");
    assert_eq!((&link["error"]["code"], project.exists("link")), (&json!("NO_APPROVER"), false), "{link}");
    assert_eq!(layers_left(&project), 0);
}

#[test]
fn an_mcp_client_approves_the_effects_of_a_command() {
    let server = script("true");
    let Some(project) = project(&server) else { return };
    let mut client = Rpc::start_with(&project, &["mcp", "serve", "--trust", "--ask", "client"]);
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    client.call("initialize", hello);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let run = |line: &str| json!({"name": "RunCommand", "arguments": {"command": line}});
    let told = client.call("tools/call", run("sh -c 'echo said'"));
    assert!(told["isError"] != true && told.to_string().contains("said"), "no effects, no approval: {told}");
    for (answer, is_applied) in [("no", false), ("yes", true)] {
        let id = client.ask("tools/call", run("echo new > made.txt"));
        let asked = client.until(|message| message["method"] == "elicitation/create");
        let words = asked["params"]["message"].as_str().unwrap();
        assert!(words.contains("created made.txt") && words.contains("+new"), "{words}");
        assert!(!project.exists("made.txt"), "nothing is applied before the answer");
        let result = json!({"action": "accept", "content": {"allow": answer}});
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
        assert_eq!(client.answer(id)["result"]["isError"] != true, is_applied);
        assert_eq!(project.exists("made.txt"), is_applied);
    }
}

/// Returns the path in the project of the file `caf\xe9.txt`, whose name is not valid UTF-8.
fn odd_path(project: &Project) -> std::path::PathBuf {
    project.path("x").with_file_name(std::ffi::OsStr::from_bytes(b"caf\xe9.txt"))
}

#[test]
fn file_names_that_are_not_valid_utf_8_do_not_stop_a_session() {
    let arrange = |project: Project| project.bytes("make.sh", b"echo x > caf\xe9.txt\n");
    let auto = ["exec", "--trust", "--mode", "auto", "--json", "do it"];
    let Some((project, completed, _)) = exec(&auto, "sh make.sh", 0, arrange) else { return };
    assert_eq!((&completed["status"], odd_path(&project).exists()), (&json!("succeeded"), true), "{completed}");
    let Some((project, completed, _)) = without_approver("sh make.sh", 3, arrange) else { return };
    assert_eq!((&completed["error"]["code"], odd_path(&project).exists()), (&json!("NO_APPROVER"), false), "{completed}");
    let arrange = |project: Project| {
        std::fs::write(odd_path(&project), "x").unwrap();
        project
    };
    let Some((project, completed, _)) = exec(&auto, "rm -f caf*", 0, arrange) else { return };
    assert_eq!((&completed["status"], odd_path(&project).exists()), (&json!("succeeded"), false), "{completed}");
}

#[test]
fn secrets_in_paths_that_are_not_valid_utf_8_are_hidden_and_do_not_prevent_a_layer() {
    let arrange = |project: Project| {
        let directory = odd_path(&project).with_extension("d");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join(".env"), "SECRET=quiet\n").unwrap();
        project.file("x.sh", "echo said\n")
    };
    let Some((_, completed, told)) = without_approver("grep -r SECRET .; sh x.sh", 0, arrange) else { return };
    assert_eq!(completed["status"], "succeeded", "{completed}");
    assert!(told.contains("said") && !told.contains("quiet"), "{told}");
}

#[test]
fn recursive_readers_that_a_rule_allows_see_no_files_with_secrets() {
    let rules = "[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"grep\"]\ndecision = \"allow\"\n\
                 [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"cat\"]\ndecision = \"allow\"\n";
    let arrange = |project: Project| {
        project.policy(&format!("{POLICY}{rules}")).file("server.key", "SECRET=quiet\n").file("plain.txt", "SECRET=loud\n")
    };
    let Some((_, completed, told)) = without_approver("grep -rs SECRET .", 0, arrange) else { return };
    assert_eq!(completed["status"], "succeeded", "{completed}");
    assert!(told.contains("loud") && !told.contains("quiet"), "{told}");
    let Some((_, completed, told)) = without_approver("cat server.key", 3, arrange) else { return };
    assert_eq!(completed["error"]["code"], "NO_APPROVER", "{completed}");
    assert!(told.contains("shows the model `server.key`") && !told.contains("quiet"), "{told}");
}

#[test]
fn a_changed_modification_time_needs_no_approval() {
    let arrange = |project: Project| project.file("a.txt", "12345");
    let Some((project, completed, _)) = without_approver("touch -d '2001-02-03' a.txt", 0, arrange) else { return };
    assert_eq!(completed["status"], "succeeded", "{completed}");
    let modified = std::fs::metadata(project.path("a.txt")).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_secs() / (366 * 24 * 3600), 31, "the time is applied");
}

#[test]
fn commands_that_need_approval_by_a_rule_do_not_run_in_a_layer_first() {
    let Some((_, completed, told)) = without_approver("cmp a b", 3, |project| project.file("a", "1").file("b", "1")) else {
        return;
    };
    assert_eq!(completed["error"]["code"], "NO_APPROVER");
    assert!(!told.contains("in a copy"), "{told}");
    let Some((_, completed, _)) = without_approver("sudo ls", 3, |project| project) else { return };
    assert_eq!(completed["error"]["code"], "POLICY_DENIED");
}

#[test]
fn commands_in_an_untrusted_project_always_need_approval() {
    // First an untrusted project, then a project without files that need trust.
    for instructions in [true, false] {
        let arrange = |project: Project| if instructions { project.file("AGENTS.md", "Be nice.\n") } else { project };
        let Some((_, completed, told)) = exec(&["exec", "--json", "do it"], "make", 3, arrange) else { return };
        assert_eq!(completed["error"]["code"], "NO_APPROVER");
        assert!(told.contains("this project is not trusted"), "{told}");
    }
}

#[test]
fn a_run_that_needs_the_network_is_denied_with_the_blocked_access() {
    let line = "curl -sS -m 5 http://example.com/ > /dev/null && echo said";
    let Some((_, completed, told)) = without_approver(line, 3, |project| project) else { return };
    assert_eq!(completed["error"]["code"], "NO_APPROVER");
    assert!(told.contains("in a copy, without network, the sandbox blocked"), "{told}");
}

/// Returns whether Python is installed. Prints a note if it is not.
fn has_python() -> bool {
    let is_installed = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !is_installed {
        eprintln!("skipped: python3 is not installed");
    }
    is_installed
}

#[test]
fn a_run_that_reaches_for_the_network_without_the_proxy_is_denied_if_it_fails_and_reported_if_it_succeeds() {
    if !has_python() {
        return;
    }
    let line = "python3 -c 'import socket; socket.socket().connect_ex((\"192.0.2.1\", 443))' | cat | tail -n 3";
    let Some((_, completed, told)) = without_approver(&format!("{line}; exit 1"), 3, |project| project) else { return };
    assert_eq!(completed["error"]["code"], "NO_APPROVER", "{completed}");
    assert!(told.contains("in a copy, without network, the sandbox blocked the network"), "{told}");
    let Some((_, completed, told)) = without_approver(&format!("{line}; echo said"), 0, |project| project) else { return };
    assert!(completed["error"].is_null(), "{completed}");
    assert!(told.contains("tried to connect without aye's proxy: 192.0.2.1:443"), "{told}");
    // A server of its own is no reason to ask.
    let line = "python3 -c 'import socket as s; a = s.create_server((\"127.0.0.1\", 0)); s.create_connection(a.getsockname())'";
    let Some((_, completed, told)) = without_approver(line, 0, |project| project) else { return };
    assert!(completed["error"].is_null() && told.contains("Exit code: 0"), "{completed} {told}");
}

#[test]
fn the_screen_asks_about_the_network_after_a_run_that_failed_without_it() {
    if !has_python() {
        return;
    }
    let line = "python3 -c 'import socket; socket.socket().connect_ex((\"192.0.2.1\", 443))'; exit 1";
    let Some((server, _project, mut terminal)) = opened(line) else { return };
    let screen = terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
    assert!(screen.contains("Blocked: the network"), "{screen}");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    let told = &server.request(1).tool_results()[0].1;
    assert!(told.contains("The command was not run again with that access"), "{told}");
    terminal.quit();
}

#[test]
fn secrets_and_the_home_directory_are_hidden_from_unapproved_runs() {
    let line = "find . -type f -exec cat {} +; ls -A \"$HOME\"; env | grep -c TOKEN; true";
    let arrange = |project: Project| {
        let project =
            project.file(".env", "KEY=s3cret-value\n").file("deep/server.key", "s3cret-value\n").file("plain.txt", "shown\n");
        project.env("MY_TOKEN", "s3cret-value")
    };
    let Some((_, _, told)) = without_approver(line, 0, arrange) else { return };
    assert!(told.contains("shown") && !told.contains("s3cret"), "{told}");
}

#[test]
fn programs_receive_the_progress_of_applying_many_files() {
    let line = "mkdir out && for i in $(seq 1200); do echo $i > out/$i.txt; done";
    let arguments = ["exec", "--trust", "--mode", "auto", "--json", "do it"];
    let server = script(line);
    let Some(project) = project(&server) else { return };
    let events = project.aye(&arguments).exits(0).events();
    assert_eq!(project.read("out/1200.txt"), "1200\n");
    let progress = events.all("effects_progress");
    let last = progress.last().unwrap();
    assert_eq!((&last["toolCallId"], &last["stage"]), (&json!("call_1"), &json!("applying")), "{last}");
    assert_eq!((&last["done"], &last["total"]), (&json!(1_200), &json!(1_200)), "{last}");
    // Listing has its own clock.
    let applied = progress.iter().filter(|one| one["stage"] == "preparing" || one["stage"] == "applying").count() as u64;
    let seconds = last["elapsedMs"].as_u64().unwrap() / 1_000 + 1;
    assert!(applied <= 10 * seconds + 2, "at most about ten a second: {progress:?}");
}

fn opened(line: &str) -> Option<(Server, Project, Terminal)> {
    let server = script(line);
    let project = project(&server)?.file("gone.txt", "gone\n");
    let mut terminal = project.open_sized(&["--trust"], 100, 50);
    terminal.prompt("do it");
    Some((server, project, terminal))
}

#[test]
fn on_the_screen_a_run_without_effects_needs_no_approval_and_shows_a_notice() {
    let Some((server, _project, mut terminal)) = opened("cat gone.txt | tr a-z A-Z") else { return };
    let screen = terminal.wait_for("Finished the work.");
    assert!(screen.contains("ran in a copy without network; changed no file"), "{screen}");
    assert!(server.request(1).tool_results()[0].1.contains("GONE"));
}

#[test]
fn an_interrupt_discards_the_effects_of_a_layer_and_sends_the_output_to_the_model() {
    let Some((server, project, mut terminal)) = opened("touch made.txt; printf 's%s\\n' aid; sleep 7643") else { return };
    terminal.wait_for("said");
    terminal.send("\x1b");
    terminal.wait_for("interrupted");
    assert_eq!(processes_running(&["sleep", "7643"]), 0);
    assert!(!project.exists("made.txt"));
    terminal.prompt("and now");
    terminal.wait_for("Finished the work.");
    let (_, told) = server.request(1).tool_results().remove(0);
    assert!(told.contains(texts::INTERRUPTED) && told.contains("said"), "{told}");
}

#[test]
fn on_the_screen_effects_are_kept_if_approved_and_discarded_if_denied() {
    for (answer, made) in [('y', true), ('n', false)] {
        let Some((server, project, mut terminal)) = opened("echo new > made.txt; rm gone.txt; echo printed-it") else { return };
        let screen = terminal.review(texts::COMMAND_WOULD);
        assert!(screen.contains("made.txt") && screen.contains("gone.txt"), "{screen}");
        assert!(!project.exists("made.txt") && project.exists("gone.txt"), "nothing happened yet");
        terminal.decide(answer);
        terminal.wait_for("Finished the work.");
        assert_eq!((project.exists("made.txt"), project.exists("gone.txt")), (made, !made));
        let told = &server.request(1).tool_results()[0].1;
        assert_eq!(told.contains("printed-it"), made, "{told}");
        assert_eq!(told.contains("discarded"), !made, "{told}");
    }
}

fn layers_left(project: &Project) -> usize {
    std::fs::read_dir(project.directory("data").join("previews")).map_or(0, Iterator::count)
}

#[test]
fn a_kill_during_a_layered_command_keeps_no_effects_and_nothing_reruns() {
    let Some((server, project, mut terminal)) = opened("echo new > made.txt; sleep 983017") else { return };
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", "983017"]) == 1));
    terminal.kill();
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", "983017"]) == 0));
    let mut terminal = project.open(&["--trust", "-c"]);
    terminal.wait_for(texts::NOTHING_APPLIED);
    terminal.prompt("/continue");
    terminal.wait_for("Finished the work.");
    assert!(!project.exists("made.txt"));
    assert!(server.request(1).tool_results()[0].1.contains(texts::NOTHING_APPLIED));
    assert_eq!(layers_left(&project), 0);
}

/// Command that appends to a file on each run, so that a second run is detected.
const ONCE: &str = "echo run >> made.txt; rm gone.txt; echo printed-it";

#[test]
fn a_kill_during_an_effects_approval_restores_the_same_prompt() {
    for (answer, made) in [('y', true), ('n', false)] {
        let Some((server, project, mut terminal)) = opened(ONCE) else { return };
        for _ in 0..2 {
            terminal.review(texts::COMMAND_WOULD);
            terminal.kill();
            assert!(!project.exists("made.txt") && project.exists("gone.txt"), "nothing happened yet");
            let listed = project.aye(&["doctor"]).stdout;
            assert!(listed.contains("are waiting for your decision: session "), "{listed}");
            terminal = project.open_sized(&["--trust", "-c"], 100, 50);
        }
        let screen = terminal.review(texts::COMMAND_WOULD);
        assert!(screen.contains("made.txt") && screen.contains("gone.txt") && screen.contains("printed-it"), "{screen}");
        terminal.decide(answer);
        terminal.wait_for("Finished the work.");
        assert_eq!((project.exists("made.txt"), project.exists("gone.txt")), (made, !made));
        if made {
            assert_eq!(project.read("made.txt"), "run\n", "it ran once");
        }
        let told = &server.request(1).tool_results()[0].1;
        assert_eq!(told.contains("printed-it"), made, "{told}");
        terminal.quit();
        project.aye(&["exec", "--trust", "-c", "one more thing"]);
        assert_eq!(layers_left(&project), 0);
    }
}

#[test]
fn undecided_effects_with_conflicts_are_discarded_and_the_model_is_informed() {
    let Some((server, project, mut terminal)) = opened(ONCE) else { return };
    terminal.review(texts::COMMAND_WOULD);
    terminal.kill();
    let project = project.file("gone.txt", "changed by the user\n");
    let mut terminal = project.open(&["--trust", "-c"]);
    terminal.wait_for("have changed since");
    terminal.prompt("/continue");
    terminal.wait_for("Finished the work.");
    assert!(!project.exists("made.txt") && project.exists("gone.txt"));
    let told = &server.request(1).tool_results()[0].1;
    assert!(told.contains("discarded") && told.contains(texts::NOTHING_APPLIED), "{told}");
    assert_eq!(layers_left(&project), 0);
}

#[test]
fn undecided_effects_are_deleted_with_their_session() {
    let Some((_server, project, mut terminal)) = opened(ONCE) else { return };
    terminal.review(texts::COMMAND_WOULD);
    terminal.kill();
    assert_eq!(layers_left(&project), 1);
    let listed = project.aye(&["sessions", "list", "--json"]).json();
    let id = listed.as_array().unwrap()[0]["sessionId"].as_str().unwrap().to_owned();
    project.aye(&["sessions", "delete", &id]).exits(0);
    assert_eq!(layers_left(&project), 0);
}

#[test]
fn the_policy_selects_approval_by_command_or_by_effects() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let when = |project: &Project, line: &str| {
        let arguments = json!({"tool": "RunCommand", "arguments": {"command": line}}).to_string();
        let told: Value =
            serde_json::from_str(&project.aye_with_input(&["policy", "check", "--jsonl"], &arguments).stdout).unwrap();
        (told["verdict"].clone(), told["approve"].clone())
    };
    assert_eq!(when(&project, "make"), (json!("ask"), json!("effects")), "the default");
    let project = project.config("[approval]\napprove = \"command\"\n");
    assert_eq!(when(&project, "make"), (json!("ask"), json!("before")));
    let project = project.config("[approval]\napprove = \"effects\"\n");
    assert_eq!(when(&project, "make"), (json!("ask"), json!("effects")));
    assert_eq!(when(&project, "git push"), (json!("ask"), json!("before")));
    assert_eq!(when(&project, "ls"), (json!("allow"), Value::Null));
    let tested =
        "[[tests]]\ntool = \"RunCommand\"\narguments = { command = \"make\" }\nverdict = \"ask\"\napprove = \"effects\"\n";
    let project = project.policy(&format!("{POLICY}{tested}"));
    project.aye(&["policy", "test"]).exits(0);
    project
        .policy(&format!("{POLICY}{tested}").replace("blocked_commands", "approve = \"command\"\nblocked_commands"))
        .aye(&["policy", "test"])
        .exits(1);
}

/// Creates a project with a model that counts the bytes of a file once per prompt.
fn counting(prompts: usize) -> Option<(Server, Project)> {
    let answers = (1..=prompts).flat_map(|number| {
        let call = Answer::call(&format!("call_{number}"), "RunCommand", json!({"command": "wc -c < a.txt; echo said"}));
        [call, Answer::text(&format!("Finished {number}."))]
    });
    let server = Server::new(answers);
    let project = project(&server)?.file("a.txt", "12345");
    Some((server, project))
}

#[test]
fn a_project_without_settings_is_trusted_once_and_its_commands_run_in_layers() {
    let Some((_server, project)) = counting(2) else { return };
    let mut terminal = project.open_sized(&[], 100, 30);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains("no instructions and no settings") && screen.contains("without asking"), "{screen}");
    terminal.decide('y');
    terminal.prompt("count");
    terminal.wait_for("Finished 1.");
    terminal.quit();
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("count");
    terminal.wait_for("Finished 2.");
    terminal.quit();
}

#[test]
fn an_untrusted_project_needs_command_approvals_and_trust_is_not_requested_again() {
    let Some((_server, project)) = counting(2) else { return };
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.review(texts::TRUST_THE_PROJECT);
    terminal.decide('n');
    for number in 1..=2 {
        terminal.prompt("count");
        terminal.review("wc -c");
        terminal.decide('y');
        terminal.wait_for(&format!("Finished {number}."));
        terminal.quit();
        if number == 1 {
            terminal = project.open_sized(&[], 100, 30);
        }
    }
    // Once there is a file to review, the project needs trust again.
    let project = project.file("AGENTS.md", "Use tabs.\n");
    let mut terminal = project.open_sized(&[], 100, 30);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains("AGENTS.md"), "{screen}");
    terminal.send("q");
    terminal.finish();
}

/// Starts a task in `aye serve` whose command needs approval of its effects. Returns the approval as the last value.
fn served(line: &str) -> Option<(Server, Project, Rpc, Value)> {
    let server = script(line);
    let project = project(&server)?.file("a.txt", "one\n").file("gone.txt", "gone\n");
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "do it"}));
    let approval = client.event("approval_requested");
    Some((server, project, client, approval))
}

const THREE_EFFECTS: &str = "echo two >> a.txt; echo new > b.txt; rm gone.txt; echo said";

#[test]
fn a_client_approves_some_of_the_effects_by_digest() {
    let Some((server, project, mut client, approval)) = served(THREE_EFFECTS) else { return };
    let (id, digest) = (&approval["approvalId"], &approval["effects"]["digest"]);
    let answer =
        |paths: Value, digest: &Value| json!({"approvalId": id, "decision": "approved", "paths": paths, "digest": digest});
    assert!(digest.as_str().is_some_and(|digest| digest.len() == 66 && digest.starts_with("2:")), "{approval}");
    for (paths, digest) in [
        (json!(["b.txt"]), &json!("another")),
        (json!(["b.txt"]), &Value::Null),
        (json!(["b.txt", "c.txt"]), digest),
        (json!([]), digest),
    ] {
        assert_eq!(client.fails("ApproveAction", answer(paths, digest)), -32602);
    }
    assert_eq!(client.fails("ApproveAction", json!({"approvalId": id, "decision": "run_again"})), -32602);
    assert_eq!(client.call("ApproveAction", answer(json!(["b.txt", "gone.txt"]), digest))["status"], "approved");
    client.event("task_completed");
    assert_eq!((project.read("a.txt"), project.read("b.txt")), ("one\n".to_owned(), "new\n".to_owned()));
    assert!(!project.exists("gone.txt"));
    let told = server.request(1).tool_results()[0].1.clone();
    assert!(told.contains("said") && told.contains("discarded, so unchanged: `a.txt`"), "{told}");
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_client_can_rerun_a_command_after_a_conflict() {
    let Some((server, project, mut client, approval)) = served(THREE_EFFECTS) else { return };
    std::fs::write(project.path("a.txt"), "by the user\n").unwrap();
    client.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "approved"}));
    let conflict = client.event("approval_requested");
    let id = &conflict["approvalId"];
    assert!(conflict["effects"]["conflict"].as_str().is_some_and(|why| why.contains("a.txt")), "{conflict}");
    assert!(project.exists("gone.txt") && !project.exists("b.txt"), "nothing is written");
    assert_eq!(client.fails("ApproveAction", json!({"approvalId": id, "decision": "approved"})), -32602);
    let again = client.call("ApproveAction", json!({"approvalId": id, "decision": "run_again"}));
    assert_eq!(again["status"], "run_again");
    let fresh = client.event("approval_requested");
    client.call("ApproveAction", json!({"approvalId": fresh["approvalId"], "decision": "approved"}));
    client.event("task_completed");
    assert_eq!(project.read("a.txt"), "by the user\ntwo\n");
    assert!(!project.exists("gone.txt"));
    assert!(server.request(1).tool_results()[0].1.contains("said"));
    assert_eq!(client.leave(), 0);
}

#[test]
fn on_the_screen_a_conflict_reruns_the_command_and_changes_can_be_left_out() {
    let Some((server, project, mut terminal)) = opened("echo new > made.txt; rm gone.txt; echo printed-it") else { return };
    terminal.review(texts::COMMAND_WOULD);
    std::fs::write(project.path("gone.txt"), "by the user\n").unwrap();
    terminal.decide('y');
    let screen = terminal.wait_for("Run the command again?");
    assert!(screen.contains("gone.txt") && !project.exists("made.txt"), "{screen}");
    terminal.decide('r');
    terminal.review("The command would change 2 files");
    terminal.send(" ");
    terminal.wait_for("apply 1 of 2");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    // Deleted files are listed first.
    assert_eq!((project.exists("made.txt"), project.exists("gone.txt")), (true, true));
    let told = &server.request(1).tool_results()[0].1;
    assert!(told.contains("printed-it") && told.contains("discarded, so unchanged: `gone.txt`"), "{told}");
}

#[test]
fn a_layered_command_that_times_out_returns_its_output_without_an_approval() {
    let line = json!({"command": "echo so-far; touch made.txt; sleep 983018", "timeout": 1});
    let server = Server::new([Answer::call("call_1", "RunCommand", line), Answer::text("Finished the work.")]);
    let Some(project) = project(&server) else { return };
    project.aye(&["exec", "--trust", "do it"]).exits(0);
    let told = &server.request(1).tool_results()[0].1;
    assert!(told.contains("TOOL_EXECUTION_TIMEOUT") && told.contains("so-far") && told.contains("discarded"), "{told}");
    assert!(!project.exists("made.txt"));
}

#[test]
fn a_layered_command_restarts_in_the_background_after_approval() {
    for (answer, runs) in [('y', 1), ('n', 0)] {
        let seconds = format!("98302{runs}");
        let Some((server, project, mut terminal)) = opened(&format!("echo run >> count.txt; sleep {seconds}")) else { return };
        assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 1));
        terminal.send("\x02");
        let screen = terminal.review("Run a command in the background");
        assert!(screen.contains(&format!("sleep {seconds}")) && !screen.contains("edited by you"), "{screen}");
        assert_eq!(processes_running(&["sleep", &seconds]), 0, "the run in the copy has ended");
        assert!(!project.exists("count.txt"), "and its changes are discarded");
        terminal.decide(answer);
        terminal.wait_for("Finished the work.");
        let told = &server.request(1).tool_results()[0].1;
        assert_eq!(told.contains("runs in the background"), runs == 1, "{told}");
        assert_eq!(processes_running(&["sleep", &seconds]), runs);
        let count = if project.exists("count.txt") { project.read("count.txt") } else { String::new() };
        assert_eq!(count, "run\n".repeat(runs));
        terminal.quit();
        assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0), "it ends with aye");
    }
}

#[test]
fn two_sessions_in_one_workspace_do_not_overwrite_each_other() {
    let Some((_first_server, project, mut first, approval)) = served("echo first >> a.txt; echo first > b.txt") else { return };
    // Another session changes one of the files while the first session waits for approval.
    let second_server = script("echo second >> a.txt; echo second > c.txt");
    let other = project.connected_to(&second_server);
    let mut second = Rpc::start(&other, &["--trust"]);
    second.create(&other);
    second.call("StartTask", json!({"prompt": "do it too"}));
    let second_approval = second.event("approval_requested");
    second.call("ApproveAction", json!({"approvalId": second_approval["approvalId"], "decision": "approved"}));
    second.event("task_completed");
    assert_eq!((other.read("a.txt"), other.read("c.txt")), ("one\nsecond\n".to_owned(), "second\n".to_owned()));
    first.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "approved"}));
    let conflict = first.event("approval_requested");
    assert!(conflict["effects"]["conflict"].as_str().is_some_and(|why| why.contains("a.txt")), "{conflict}");
    assert!(!other.exists("b.txt"), "nothing is written");
    first.call("ApproveAction", json!({"approvalId": conflict["approvalId"], "decision": "run_again"}));
    let fresh = first.event("approval_requested");
    first.call("ApproveAction", json!({"approvalId": fresh["approvalId"], "decision": "approved"}));
    first.event("task_completed");
    assert_eq!((other.read("a.txt"), other.read("b.txt")), ("one\nsecond\nfirst\n".to_owned(), "first\n".to_owned()));
    assert_eq!((first.leave(), second.leave()), (0, 0));
}
