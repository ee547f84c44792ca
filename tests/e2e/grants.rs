//! "Always allow": the saved rule, its effect after a restart, its revocation, and the decision log.

use crate::support::{Answer, Project, Server, Terminal, texts};
use serde_json::{Value, json};

fn touch() -> Answer {
    Answer::call("call_1", "RunCommand", json!({"command": "touch made"}))
}

fn server(tasks: usize) -> Server {
    Server::new((0..tasks).flat_map(|_| [touch(), Answer::text("Finished the work.")]))
}

/// Opens the rule selection of an approval. Returns the screen once the selection accepts keys.
fn always(terminal: &mut Terminal, title: &str) -> String {
    terminal.review(title);
    terminal.send("a");
    terminal.wait_for(texts::ALWAYS_ALLOW);
    let screen =
        terminal.wait_that("the choice takes keys", |screen| screen.contains("2  in this project") && !screen.contains('◔'));
    Terminal::react();
    screen
}

/// Shows the files in which the rule can be saved, and then the rule again. Returns the screen with the files.
fn files(terminal: &mut Terminal) -> String {
    terminal.send("d");
    let screen = terminal.wait_that("the files are shown", |screen| screen.contains("policy.toml:") && !screen.contains('◔'));
    Terminal::react();
    terminal.send("d");
    terminal.wait_until_gone("policy.toml:");
    screen
}

/// Returns the saved rules.
fn grants(project: &Project) -> Vec<Value> {
    let listed = project.aye(&["policy", "grants", "list", "--json"]).exits(0);
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_project_rule_is_saved_and_applies_until_it_is_revoked() {
    let server = server(3);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("make it");
    let screen = always(&mut terminal, "y  yes");
    assert!(screen.contains("exactly `touch made`"), "{screen}");
    files(&mut terminal);
    assert!(grants(&project).is_empty(), "nothing is saved before enter");
    terminal.decide('2');
    terminal.wait_for("Finished the work.");
    terminal.wait_for("always allowed in this project: ");
    assert!(project.exists("made"));
    let saved = grants(&project);
    assert_eq!(saved.len(), 1);
    assert_eq!(
        (&saved[0]["rule"], &saved[0]["toml"]),
        (&json!("mine-here:4"), &json!("command = [\"touch\", \"made\"], exact = true"))
    );
    let file = std::fs::read_to_string(saved[0]["file"].as_str().unwrap()).unwrap();
    assert!(
        file.contains("\"Shell.Exec\".rules]]\ncommand = [\"touch\", \"made\"]\nexact = true\ndecision = \"allow\"\n"),
        "{file}"
    );
    assert!(terminal.quit().success());

    std::fs::remove_file(project.path("made")).unwrap();
    let mut terminal = project.open(&[]);
    terminal.prompt("make it again");
    terminal.wait_for("Finished the work.");
    assert!(project.exists("made"), "it ran without a question");
    assert!(terminal.quit().success());

    let told = project.aye(&["policy", "grants", "revoke", "mine-here:4"]).exits(0);
    assert!(told.stdout.contains("removed mine-here:4"), "{}", told.stdout);
    assert!(grants(&project).is_empty());
    let mut terminal = project.open(&[]);
    terminal.prompt("and once more");
    terminal.review("y  yes");
}

#[test]
fn a_rule_for_all_projects_keeps_the_built_in_policy_in_force() {
    let server = Server::new([
        Answer::call("call_1", "WriteFile", json!({"path": "src/a.txt", "content": "one\n"})),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    always(&mut terminal, "Create src/a.txt");
    let screen = files(&mut terminal);
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("creates the file"), "{screen}");
    terminal.decide('3');
    terminal.wait_for("Finished the work.");
    terminal.wait_for("always allowed in all projects: ");
    let policy = std::fs::read_to_string(project.directory("config").join("policy.toml")).unwrap();
    assert!(policy.contains("src/a.txt\"]") && policy.contains("extends = \"built-in\""), "{policy}");
    assert!(
        policy.contains("[capabilities.\"File.Write\"]") && !policy.contains("File.Read"),
        "only what the rule needs: {policy}"
    );
    terminal.prompt("/policy undo");
    terminal.wait_for("rule removed: user:");
    assert!(grants(&project).is_empty());
    let check =
        project.aye_with_input(&["policy", "check", "--jsonl"], "{\"tool\":\"ReadFile\",\"arguments\":{\"path\":\"x\"}}\n");
    assert!(check.exits(0).stdout.contains("\"verdict\":\"allow\""));
}

#[test]
fn session_grants_are_not_saved_and_can_be_revoked() {
    let server = server(3);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("make it");
    always(&mut terminal, "y  yes");
    terminal.decide('1');
    terminal.wait_for("Finished the work.");
    assert!(grants(&project).is_empty());
    terminal.prompt("make it again");
    terminal.wait_that("it ran without a question", |screen| screen.matches("Finished the work.").count() == 2);
    terminal.prompt("/policy undo");
    terminal.wait_for("no longer allowed");
    terminal.prompt("once more");
    terminal.review("y  yes");
}

#[test]
fn an_invalid_grants_file_stops_every_run_with_its_line() {
    let server = server(1);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("make it");
    always(&mut terminal, "y  yes");
    terminal.decide('2');
    terminal.wait_for("always allowed in this project: ");
    assert!(terminal.quit().success());
    let file = grants(&project)[0]["file"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(&file).unwrap();
    for (wrong, said) in [
        (format!("{text}decison = 1\n"), "line 9: unknown key `decison`"),
        (format!("{text}[llm]\nallowed_models = []\n"), "`allowed_models` is not allowed here: this file may contain only rules"),
    ] {
        std::fs::write(&file, wrong).unwrap();
        for words in [&["exec", "hi"][..], &["tool", "list"]] {
            let told = project.aye(words).exits(2);
            assert!(told.stderr.contains(said) && told.stderr.contains("policy.toml"), "{}", told.stderr);
        }
    }
    let own = project.directory("config").join("other.toml");
    std::fs::write(&own, "schema_version = 1\n").unwrap();
    project.aye(&["tool", "list", "--policy", own.to_str().unwrap()]).exits(0);
}

#[test]
fn only_the_user_can_revoke_rules() {
    let project = Project::empty().env("AYE", "1");
    let told = project.aye(&["policy", "grants", "revoke", "--all"]).exits(2);
    assert!(told.stderr.contains("AYE=1"), "{}", told.stderr);
    project.aye(&["policy", "grants", "list"]).exits(0);
    let told = Project::empty().aye(&["policy", "grants", "revoke", "mine-here:3"]).exits(2);
    assert!(told.stderr.contains("no saved rule `mine-here:3`"), "{}", told.stderr);
}

#[test]
fn the_policy_log_records_the_source_of_each_decision() {
    let server = Server::new([
        Answer::call("call_1", "ReadFile", json!({"path": "a.txt"})),
        Answer::call("call_2", "RunCommand", json!({"command": "sudo id"})),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    project.aye(&["exec", "look"]).exits(3);
    project.aye(&["tool", "call", "WriteFile", "--args", "{\"path\":\"b\",\"content\":\"x\"}", "--yes"]).exits(0);
    project.aye(&["tool", "call", "ReadFile", "--args", "{\"path\":\"/etc/shadow\"}"]).exits(1);
    let log = |words: &[&str]| -> Vec<Value> {
        let told = project.aye(&[&["policy", "log", "--json"], words].concat()).exits(0);
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = log(&[]);
    let said: Vec<_> = all.iter().map(|one| (one["verdict"].as_str().unwrap(), one["by"].as_str().unwrap())).collect();
    assert_eq!(said, [("allow", "built-in"), ("deny", texts::NO_ONE_TO_ASK), ("allow", "you"), ("deny", "built-in")], "{all:?}");
    assert_eq!(all[0]["summary"], "Read a.txt");
    assert_eq!(all[0]["mode"], "ask");
    assert!(all[0]["sessionId"].is_string() && all[2].get("sessionId").is_none());
    assert_eq!(log(&["--denied"]).len(), 2);
    assert_eq!(log(&["-n", "1"]).len(), 1);
    assert_eq!(log(&["--session", all[0]["sessionId"].as_str().unwrap()]).len(), 2);
    let text = project.aye(&["policy", "log"]).exits(0).stdout;
    assert!(text.contains("deny   no user can approve this call") && text.contains("tool call"), "{text}");
}

#[test]
fn an_edited_rule_is_saved_only_if_it_is_within_the_offered_rule() {
    let write = json!({"path": "src/a/new.txt", "content": "written\n"});
    let server = Server::new([Answer::call("call_1", "WriteFile", write), Answer::text("Finished the work.")]);
    let project = Project::with(&server).file("src/a/old.txt", "old\n");
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    always(&mut terminal, "new.txt");
    terminal.send("e");
    terminal.wait_for("rule: paths = ");
    terminal.send(&"\x7f".repeat(60));
    terminal.type_text("paths = [\"${workspace}/src\"]", 5);
    terminal.enter();
    terminal.wait_for("not accepted: ");
    terminal.wait_for("is broader than the broadest rule offered");
    assert!(grants(&project).is_empty());
    terminal.send(&"\x7f".repeat(60));
    terminal.type_text("paths = [\"${workspace}/src/a/*.txt\"]", 5);
    terminal.enter();
    terminal.wait_until_gone("rule: ");
    terminal.wait_that("the choice takes keys", |screen| screen.contains("2  in this project") && !screen.contains('◔'));
    assert!(grants(&project).is_empty(), "nothing is saved before enter");
    terminal.decide('2');
    terminal.wait_for("Finished the work.");
    terminal.wait_for("always allowed in this project: ");
    assert_eq!(grants(&project)[0]["toml"], "paths = [\"${workspace}/src/a/*.txt\"]");
}

/// Creates a home directory with a file that the sandbox hides, and a model that reads the file once per task.
#[cfg(target_os = "linux")]
fn hidden(tasks: usize) -> (Server, Project) {
    let server = Server::new((0..tasks).flat_map(|task| {
        let call = Answer::call(&format!("call_{task}"), "RunCommand", json!({"command": "cat ~/notes/plan.txt; false"}));
        [call, Answer::text(&format!("Finished task {task}."))]
    }));
    let project = Project::outside_tmp_with(&server).allowing_everything();
    let notes = project.directory("home").join("notes");
    std::fs::create_dir(&notes).unwrap();
    std::fs::write(notes.join("plan.txt"), "the plan").unwrap();
    (server, project)
}

/// Waits for the prompt that makes the directory readable. Returns `None` if this system cannot hide the directory.
#[cfg(target_os = "linux")]
fn asks_for_directory(terminal: &mut Terminal) -> Option<String> {
    let screen = terminal.wait_that("an answer", |screen| screen.contains("Finished task") || screen.contains("again"));
    if screen.contains("Finished task") {
        eprintln!("skipped: nothing is hidden on this system\n{screen}");
        return None;
    }
    Some(terminal.review(texts::RUN_AGAIN_WITH_ACCESS))
}

#[cfg(target_os = "linux")]
#[test]
fn a_hidden_directory_becomes_readable_in_this_project_once_saved() {
    let (server, project) = hidden(5);
    let notes = project.directory("home").join("notes");
    let mut terminal = project.open(&[]);
    terminal.prompt("read it");
    if asks_for_directory(&mut terminal).is_none() {
        return;
    }
    terminal.send("a");
    terminal.wait_for(texts::ALWAYS_ALLOW);
    let screen =
        terminal.wait_that("the choice takes keys", |screen| screen.contains("2  in this project") && !screen.contains('◔'));
    assert!(screen.contains("every command in this project may read `"), "{screen}");
    for other in ["until you quit", "everywhere", "x  until", "e  edit"] {
        assert!(!screen.contains(other), "{other} is offered\n{screen}");
    }
    assert!(grants(&project).is_empty(), "nothing is saved before enter");
    terminal.decide('2');
    terminal.wait_for("Finished task 0.");
    terminal.wait_for("always allowed in this project: ");
    let read = |request: usize| server.request(request).tool_results().last().unwrap().1.clone();
    assert!(read(1).contains("the plan"), "{}", read(1));
    let saved = grants(&project);
    assert_eq!(saved[0]["toml"], format!("readable_paths = [\"{}\"]", notes.display()));

    // The next command reads the directory without another prompt, also in a new session.
    terminal.prompt(texts::READ_AGAIN);
    terminal.wait_for("Finished task 1.");
    assert!(read(3).contains("the plan") && !read(3).contains("kept from"), "{}", read(3));
    assert!(terminal.quit().success());
    let mut terminal = project.open(&[]);
    terminal.prompt("read it once more");
    terminal.wait_for("Finished task 2.");
    assert!(read(5).contains("the plan"), "{}", read(5));
    assert!(terminal.quit().success());

    project.aye(&["policy", "grants", "revoke", saved[0]["rule"].as_str().unwrap()]).exits(0);
    assert!(grants(&project).is_empty());
    let mut terminal = project.open(&[]);
    terminal.prompt("read it");
    terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
    terminal.send("a");
    terminal.wait_that("the choice takes keys", |screen| screen.contains("2  in this project") && !screen.contains('◔'));
    terminal.decide('2');
    terminal.wait_for("Finished task 3.");
    terminal.prompt("/policy grants");
    terminal.wait_for("readable_paths = [");
    terminal.send("\x1b");
    terminal.wait_until_gone("Saved rules");
    terminal.prompt("/policy undo");
    terminal.wait_for("rule removed: mine-here:");
    assert!(grants(&project).is_empty());
    terminal.prompt("read it");
    terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
    terminal.decide('n');
    terminal.wait_for("Finished task 4.");
    assert!(!read(9).contains("the plan"), "{}", read(9));
}
