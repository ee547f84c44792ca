//! Approval of effects on the screen: changes in a layer, blocked access that the user can allow, and background
//! commands.
#![cfg(target_os = "linux")]

use crate::support::{Answer, Project, Server, TIMEOUT, Terminal, processes_running, texts, wait_until};
use serde_json::json;
use std::process::Command;

/// Returns a model that runs this line and then ends the task.
fn script(line: &str) -> Server {
    Server::new([Answer::call("call_1", "RunCommand", json!({"command": line})), Answer::text("Finished the work.")])
}

/// Requests a preview. Returns the terminal with the prompt for the effects, or `None` if this system does not support
/// previews.
fn previewed(project: &Project) -> Option<Terminal> {
    let mut terminal = project.open_sized(&["--trust"], 100, 50);
    terminal.prompt("do it");
    let screen = terminal.review("y  yes");
    if !screen.contains("p  preview") {
        eprintln!("skipped: no preview on this system\n{screen}");
        return None;
    }
    terminal.decide('p');
    terminal.review(texts::COMMAND_WOULD);
    Some(terminal)
}

const LINE: &str = "echo new > made.txt; rm gone.txt; echo printed-it; exit 3";

#[test]
fn approving_keeps_exactly_the_shown_effects() {
    let server = script(LINE);
    let project = Project::with(&server).file("gone.txt", "gone\n");
    let Some(mut terminal) = previewed(&project) else { return };
    let screen = terminal.screen();
    for words in ["2 files, 1 of them deleted", "exit 3", "made.txt", "gone.txt", "printed-it"] {
        assert!(screen.contains(words), "{words} is missing\n{screen}");
    }
    assert!(!project.exists("made.txt") && project.exists("gone.txt"), "nothing happened before the yes");
    terminal.decide('y');
    let screen = terminal.wait_for("Finished the work.");
    assert!(screen.contains("exit 3"), "the card says how it ended\n{screen}");
    assert_eq!(project.read("made.txt"), "new\n");
    assert!(!project.exists("gone.txt"));
    let results = server.request(1).tool_results();
    assert!(results[0].1.contains("printed-it"), "{results:?}");
}

#[test]
fn denying_the_effects_changes_nothing() {
    let server = script(LINE);
    let project = Project::with(&server).file("gone.txt", "gone\n");
    let Some(mut terminal) = previewed(&project) else { return };
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert!(!project.exists("made.txt") && project.exists("gone.txt"));
    let results = server.request(1).tool_results();
    assert!(!results[0].1.contains("printed-it"), "the model sees nothing of it: {results:?}");
}

#[test]
fn text_typed_during_a_preview_neither_applies_nor_discards_its_effects() {
    let server = script("sleep 1; echo new > made.txt");
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("do it");
    if !terminal.review("y  yes").contains("p  preview") {
        return eprintln!("skipped: no preview on this system");
    }
    terminal.decide('p');
    terminal.wait_for("Previewing");
    terminal.type_text("yes y of course y", 60);
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.wait_for("yes y of course y");
    terminal.send("\t");
    terminal.review(texts::COMMAND_WOULD);
    assert!(!project.exists("made.txt"));
    assert_eq!(server.requests().len(), 1, "nothing was decided");
}

#[test]
fn after_a_kill_the_call_needs_approval_again_and_its_preview_is_deleted() {
    let server = script(LINE);
    let project = Project::with(&server).file("gone.txt", "gone\n");
    let Some(mut terminal) = previewed(&project) else { return };
    terminal.kill();
    let mut terminal = project.open(&["-c"]);
    terminal.review("y  yes");
    assert!(!project.exists("made.txt") && project.exists("gone.txt"));
    let previews = project.directory("data").join("previews");
    assert!(std::fs::read_dir(previews).map_or(true, |left| left.count() == 0), "nothing of the preview is left");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
}

#[test]
fn approval_allows_access_blocked_by_the_sandbox_for_one_run() {
    let outside = tempfile::Builder::new().prefix("aye-opened-").tempdir_in("/var/lib");
    let Ok(outside) = outside else { return eprintln!("skipped: nothing outside of the sandbox may be written here") };
    let place = outside.path().join("made");
    for (answer, made) in [('n', false), ('y', true)] {
        let server = script(&format!("echo new > {}", place.display()));
        let project = Project::with(&server);
        let mut terminal = project.open(&[]);
        terminal.prompt("do it");
        let screen = terminal.review("y  yes");
        if screen.contains("NONE") {
            return eprintln!("skipped: no sandbox on this system");
        }
        terminal.decide('y');
        let screen = terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
        assert!(screen.contains("Blocked: writing") && !place.exists(), "{screen}");
        terminal.decide(answer);
        terminal.wait_for("Finished the work.");
        assert_eq!(place.exists(), made);
    }
}

#[test]
fn a_command_can_be_moved_to_the_background_listed_and_stopped() {
    let server = script("echo serving; sleep 987011");
    let project = Project::with(&server).allowing_everything();
    let mut terminal = project.open(&[]);
    terminal.prompt("serve");
    terminal.wait_for("serving");
    terminal.wait_for("ctrl+b background");
    terminal.send("\x02");
    terminal.wait_for("Finished the work.");
    terminal.wait_for("1 in the background: s1 echo serving; sleep 987011");
    terminal.prompt("/ps");
    terminal.wait_for("s1  running  echo serving");
    terminal.send("\x18");
    terminal.wait_until_gone("1 in the background: s1");
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", "987011"]) == 0));
}

#[test]
fn the_first_screen_shows_the_state_of_the_sandbox() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_that("what holds a command", |screen| screen.contains(texts::SANDBOX_ON) || screen.contains(texts::NO_SANDBOX));
    let off = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\n";
    let project = Project::with(&server).policy(off);
    let mut terminal = project.open(&[]);
    terminal.wait_for("sandbox off: commands run with all your permissions");
}

#[test]
fn the_sandbox_follows_the_mode() {
    let server = script("echo new > made.txt");
    let project = Project::with(&server);
    let mut terminal = project.open(&["--mode", "plan"]);
    let screen = terminal
        .wait_that("what holds a command", |screen| screen.contains(texts::SANDBOX_ON) || screen.contains(texts::NO_SANDBOX));
    if !screen.contains(texts::SANDBOX_ON) {
        return eprintln!("skipped: no sandbox on this system");
    }
    assert!(screen.contains("sandbox on: read-only"), "{screen}");
    terminal.prompt("/mode ask");
    terminal.review("Change the mode to ask?");
    terminal.decide('y');
    let status = |screen: &str| screen.lines().rev().nth(1).unwrap_or_default().to_owned();
    terminal.wait_that("commands may write", |screen| !status(screen).contains("read-only"));
    terminal.prompt("do it");
    terminal.review("y  yes");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("made.txt"), "new\n");
    terminal.prompt("/mode plan");
    terminal.wait_that("commands only read", |screen| status(screen).contains("sandbox on: read-only"));
}

/// Emulates a kernel without namespaces: inside the namespace of the test, no other namespace can be created.
#[test]
fn without_a_sandbox_a_notice_appears_once_and_allowed_commands_need_approval() {
    let bare = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let possible = Command::new("unshare").args(["-Ur", "bash", "-c", bare, "bash", "true"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no namespaces here in which none can be made");
    }
    let server = script("echo hi");
    let allowed = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nallowed_commands = [\"echo *\"]\n\
        requires_approval = false\n";
    let project = Project::with(&server).policy(allowed);
    let aye = env!("CARGO_BIN_EXE_aye");
    let mut terminal = project.open_program("unshare", &["-Ur", "bash", "-c", bare, "bash", aye, "--trust"]);
    let screen = terminal.wait_for("asks before every command");
    assert!(screen.contains(texts::NO_SANDBOX) && screen.contains("aye doctor"), "{screen}");
    terminal.prompt("do it");
    let screen = terminal.review("y  yes");
    assert!(screen.contains("sandbox NONE"), "{screen}");
    assert!(!screen.contains("p  preview") && !screen.contains("low risk"), "{screen}");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
}
