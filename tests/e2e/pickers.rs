//! Pickers on the screen: sessions, custom commands, files after an `@`.

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::Value;

fn sessions(project: &Project) -> Vec<Value> {
    let output = project.aye(&["sessions", "list", "--json"]).exits(0);
    serde_json::from_str(&output.stdout).unwrap()
}

fn titles(project: &Project) -> Vec<String> {
    sessions(project).iter().map(|one| one["title"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns a project with two completed sessions.
fn with_two(server: &Server) -> Project {
    let project = Project::with(server);
    project.aye(&["exec", "the first thing"]).exits(0);
    project.aye(&["exec", "the second thing"]).exits(0);
    project
}

#[test]
fn a_session_can_be_picked_on_the_screen_and_continued() {
    let server = Server::new([Answer::text("First."), Answer::text("Second."), Answer::text("Third.")]);
    let project = with_two(&server);
    let mut terminal = project.open_sized(&["--resume"], 120, 30);
    terminal.wait_that("both are listed", |screen| screen.contains("the first thing") && screen.contains("the second thing"));
    // The preview next to the list shows the latest session.
    terminal.wait_for("Second.");
    terminal.type_text("first", 2);
    terminal.wait_until_gone("the second thing");
    terminal.wait_for("First.");
    terminal.enter();
    terminal.prompt("and on with it");
    terminal.wait_for("Third.");
    let sent = server.request(2).messages();
    assert!(sent.contains("the first thing") && !sent.contains("the second thing"), "{sent}");
    assert!(terminal.quit().success());
    terminal.assert_restored();
    assert_eq!(sessions(&project).len(), 2);
}

#[test]
fn a_session_search_covers_message_content() {
    let server = Server::new([Answer::text("The needle is here."), Answer::text("Nothing.")]);
    let project = with_two(&server);
    let mut terminal = project.open_sized(&["--resume"], 120, 30);
    terminal.wait_for("the second thing");
    terminal.type_text("/NEEDLE.is/", 2);
    terminal
        .wait_that("one is left", |screen| screen.contains("\"The needle is here.\"") && !screen.contains("the second thing"));
    terminal.send("\x1b");
    terminal.finish();
    terminal.assert_restored();
}

#[test]
fn the_transcript_of_a_session_can_be_read_before_resuming() {
    let server = Server::new([Answer::text("The beginning of it."), Answer::text("Second.")]);
    let project = with_two(&server);
    let mut terminal = project.open_sized(&["--resume"], 120, 30);
    terminal.wait_for("Second.");
    terminal.send("\x1b[B");
    terminal.wait_for("The beginning of it.");
    terminal.send("\x14");
    let screen = terminal.wait_that("its transcript is read", |screen| screen.contains("## You") && !screen.contains("filter:"));
    assert!(screen.contains("The beginning of it.") && !screen.contains("the second thing"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_for("the second thing");
    terminal.send("\x1b");
    terminal.finish();
    terminal.assert_restored();
}

#[test]
fn the_old_session_can_be_resumed_after_starting_a_new_one() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("the first thing");
    terminal.wait_for("One.");
    terminal.type_text("/clear", 2);
    terminal.wait_for("/clear");
    terminal.enter();
    terminal.wait_until_gone("One.");
    terminal.prompt("the second thing");
    terminal.wait_for("Two.");
    assert!(!server.request(1).messages().contains("the first thing"));
    assert_eq!(titles(&project), ["the second thing", "the first thing"]);
    // The same process returns to the other session.
    terminal.type_text("/resume", 2);
    terminal.wait_for("/resume");
    terminal.enter();
    terminal.wait_for("the first thing");
    terminal.wait_for(texts::OPEN_HERE);
    terminal.send("\x1b[B");
    terminal.enter();
    terminal.wait_for("One.");
    terminal.prompt("more of the first");
    terminal.wait_for("Three.");
    let sent = server.request(2).messages();
    assert!(sent.contains("the first thing") && !sent.contains("the second thing"), "{sent}");
    assert!(terminal.quit().success());
    terminal.assert_restored();
}

#[test]
fn the_current_session_is_not_listed_while_it_has_only_a_draft() {
    let server = Server::new([Answer::text("First.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    let mut terminal = project.open_sized(&[], 120, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("/resume", 2);
    assert!(wait_until(TIMEOUT, || sessions(&project).len() == 2), "the draft is saved");
    terminal.enter();
    let screen = terminal.wait_for("the first thing");
    assert!(!screen.contains("(no prompt)"), "{screen}");
}

#[test]
fn a_fork_has_the_whole_conversation_and_continues_separately() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("the first thing");
    terminal.wait_for("One.");
    terminal.type_text("/fork", 2);
    terminal.wait_for("/fork");
    terminal.enter();
    assert!(wait_until(TIMEOUT, || titles(&project).contains(&"the first thing (fork)".to_owned())), "{:?}", titles(&project));
    terminal.wait_until_gone("forking");
    terminal.prompt("go on here");
    terminal.wait_for("Two.");
    assert!(server.request(1).messages().contains("the first thing"));
    terminal.type_text("/rename Another way", 2);
    terminal.wait_for("/rename Another way");
    terminal.enter();
    terminal.wait_for("session renamed to");
    assert_eq!(titles(&project), ["Another way", "the first thing"]);
    assert!(terminal.quit().success());
    let first = sessions(&project).pop().unwrap();
    let id = first["sessionId"].as_str().unwrap();
    let shown = project.aye(&["sessions", "show", id]).exits(0).stdout;
    assert!(shown.contains("One.") && !shown.contains("Two."), "{shown}");
    project.aye(&["sessions", "rename", id, "The very first"]).exits(0);
    let forked = project.aye(&["sessions", "fork", id]).exits(0).stdout;
    assert!(forked.contains("forked session"), "{forked}");
    assert!(titles(&project).contains(&"The very first (fork)".to_owned()));
}

#[test]
fn a_session_is_deleted_after_confirmation() {
    let server = Server::new([Answer::text("First."), Answer::text("Second.")]);
    let project = with_two(&server);
    let mut terminal = project.open_sized(&["--resume"], 120, 30);
    terminal.wait_for("the second thing");
    terminal.send("\x18");
    terminal.wait_for("Delete the session");
    terminal.decide('y');
    terminal.wait_until_gone("the second thing");
    assert_eq!(titles(&project), ["the first thing"]);
    terminal.send("\x1b");
    terminal.finish();
}

#[test]
fn no_other_session_can_be_opened_while_a_task_runs() {
    let gate = crate::support::Gate::default();
    let server = Server::new([Answer::text("Half").and_wait(&gate)]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("take long");
    terminal.wait_for("Half");
    terminal.type_text("/new", 2);
    terminal.wait_for("/new");
    terminal.enter();
    terminal.wait_for("a task is running");
    gate.open();
}

#[test]
fn custom_commands_are_sent_to_the_model_as_their_text() {
    let server = Server::new([Answer::text("Fixed."), Answer::text("Linted.")]);
    let project = Project::with(&server)
        .file(".aye/commands/team/lint.md", "Lint $1 with !`date` and @notes.md")
        .file("notes.md", "be brief");
    std::fs::create_dir_all(project.directory("config").join("commands")).unwrap();
    let own = project.directory("config").join("commands/fix.md");
    std::fs::write(own, "---\ndescription: Fix an issue\n---\nFix issue $1, and tell why: $ARGUMENTS\n").unwrap();
    let mut terminal = project.open_sized(&["--trust"], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("/fi", 2);
    terminal.wait_for("Fix an issue");
    terminal.type_text("x 12 now", 2);
    terminal.wait_for("/fix 12 now");
    terminal.enter();
    terminal.wait_for("Fixed.");
    assert!(server.request(0).messages().contains("Fix issue 12, and tell why: 12 now"));
    terminal.type_text("/team:lint src", 2);
    terminal.wait_for("/team:lint src");
    terminal.enter();
    terminal.wait_for("Linted.");
    let sent = server.request(1).messages();
    assert!(sent.contains("Lint src with !`date`") && sent.contains("be brief"), "{sent}");
}

#[test]
fn commands_of_an_untrusted_project_are_unknown() {
    let server = Server::new([Answer::text("Never.")]);
    let project = Project::with(&server).file(".aye/commands/lint.md", "Lint it");
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::TRUST_THE_PROJECT);
    terminal.decide('n');
    terminal.type_text("/lint", 2);
    terminal.wait_for("/lint");
    terminal.enter();
    terminal.wait_for("unknown command `/lint`");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_command_received_in_one_burst_runs_and_an_incomplete_one_does_not() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.send("/qui\r");
    terminal.wait_for("unknown command `/qui`");
    terminal.send("\x15");
    terminal.wait_until_gone("unknown command");
    terminal.send("/model\r");
    terminal.wait_for("Models");
    terminal.send("\x1b");
    terminal.wait_until_gone("Models");
}

#[test]
fn a_file_with_a_non_ascii_name_can_be_selected_and_is_attached() {
    let server = Server::new([Answer::text("Seen.")]);
    let project = Project::with(&server)
        .file("docs/größe 日本.md", "as big as a house")
        .file("src/main.rs", "fn main() {}")
        .file(".gitignore", "target\n")
        .file("target/größe.md", "built");
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("what is in @gröbe", 2);
    terminal.send("\x7f\x7f");
    terminal.type_text("ße", 2);
    // The list for the first letters may appear before the last letters are typed.
    let screen =
        terminal.wait_that("it is found by all letters", |screen| screen.contains("in @größe") && screen.contains("~5 tokens"));
    assert!(screen.contains("docs/größe 日本.md") && !screen.contains("target"), "{screen}");
    terminal.send("\t");
    terminal.wait_for("@\"docs/größe 日本.md\"");
    terminal.enter();
    terminal.wait_for("Seen.");
    let sent = server.request(0).messages();
    assert!(sent.contains("as big as a house"), "{sent}");
}

#[test]
fn the_draft_can_be_edited_in_the_external_editor() {
    let server = Server::new([Answer::text("Seen.")]);
    let project = Project::with(&server).env("EDITOR", "sh -c 'printf \" and more\" >> \"$1\"' editor");
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("a draft", 2);
    terminal.wait_for("a draft");
    terminal.send("\x07");
    terminal.wait_for("a draft and more");
    terminal.enter();
    terminal.wait_for("Seen.");
    assert!(server.request(0).messages().contains("a draft and more"));
    assert!(terminal.quit().success());
    terminal.assert_restored();
}

#[test]
fn the_status_shows_session_model_policy_and_sandbox() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal: Terminal = project.open_sized(&[], 110, 36);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.type_text("/status", 2);
    terminal.wait_for("/status");
    terminal.enter();
    let screen = terminal.wait_for("settings");
    for words in ["session", "model", "mode", "policy", "sandbox", "context"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.type_text("settings", 2);
    terminal.wait_for("config.toml (missing)");
}

#[test]
fn the_status_opens_the_policy_and_adds_no_entry_to_the_conversation() {
    let server = Server::new([]);
    let project = Project::with(&server);
    for (columns, rows) in [(110, 36), (40, 12)] {
        let mut terminal: Terminal = project.open_sized(&[], columns, rows);
        terminal.wait_for("sandbox");
        terminal.prompt("/status");
        terminal.wait_for("Status ·");
        terminal.type_text("policy", 2);
        terminal.wait_that("the row is marked", |screen| screen.lines().any(|row| row.contains("❯ policy")));
        terminal.enter();
        terminal.wait_for("Policy ·");
        terminal.send("\x1b");
        terminal.wait_until_gone("Policy ·");
        assert!(!terminal.screen().contains("Status ·"), "{}", terminal.screen());
        assert!(terminal.quit().success());
    }
}

#[test]
fn a_theme_is_saved_only_on_enter() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal: Terminal = project.open_sized(&[], 80, 24);
    terminal.wait_for(texts::COMMANDS_HINT);
    terminal.prompt("/theme");
    terminal.wait_for("Themes ·");
    terminal.type_text("high-contrast-light", 2);
    terminal.wait_that("the row is marked", |screen| screen.lines().any(|row| row.contains("❯ high-contrast-light")));
    terminal.send("\x1b");
    terminal.wait_until_gone("Themes ·");
    let settings = project.directory("config").join("config.toml");
    let saved = || std::fs::read_to_string(&settings).unwrap_or_default();
    assert!(!saved().contains("high-contrast"), "{}", saved());
    terminal.prompt("/theme");
    terminal.wait_for("Themes ·");
    terminal.type_text("high-contrast-light", 2);
    terminal.wait_that("the row is marked", |screen| screen.lines().any(|row| row.contains("❯ high-contrast-light")));
    terminal.enter();
    terminal.wait_for("saved in");
    assert!(saved().contains("theme = \"high-contrast-light\""), "{}", saved());
    assert!(terminal.quit().success());
}
