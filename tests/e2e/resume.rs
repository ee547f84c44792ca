//! `--resume` after `kill -9` at any moment.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::json;

/// Returns a number of seconds that no other `sleep` command line uses.
fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("6160.{}{:03}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

#[cfg(target_os = "linux")]
fn sleeping(seconds: &str) -> usize {
    crate::support::processes_running(&["sleep", seconds])
}

#[test]
fn a_pending_approval_is_restored_undecided() {
    let write = json!({"path": "new.txt", "content": "written\n"});
    let server = Server::new([
        Answer::text("I will write it.").and_call("call_1", "WriteFile", write),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.review("new.txt");
    terminal.kill();
    let mut terminal = project.open(&["--resume"]);
    let screen = terminal.review("new.txt");
    assert!(screen.contains("written"), "the same proposal\n{screen}");
    assert!(!project.exists("new.txt"));
    assert_eq!(server.requests().len(), 1, "the model is not asked again");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "written\n");
    let request = server.request(1);
    assert!(request.messages().contains("write it") && request.messages().contains("I will write it."));
    assert_eq!(request.tool_results().len(), 1);
}

/// Kills aye while the command of its only call runs, and waits for the end of the command.
#[cfg(target_os = "linux")]
fn killed_while_running(project: &Project, seconds: &str) {
    let mut terminal = project.open(&[]);
    terminal.prompt("run it");
    terminal.review("y  yes");
    terminal.decide('y');
    assert!(wait_until(TIMEOUT, || sleeping(seconds) > 0), "it never ran\n{}", terminal.screen());
    terminal.kill();
    let gone = wait_until(TIMEOUT, || sleeping(seconds) == 0);
    assert!(gone, "the command outlives aye");
}

#[cfg(target_os = "linux")]
fn sleep_script(seconds: &str) -> Server {
    let command = json!({"command": format!("echo once >> ran; sleep {seconds}")});
    Server::new([Answer::call("call_1", "RunCommand", command), Answer::text("Finished the work.")])
}

/// Resumes the session, and checks that the interrupted call is shown and that nothing ran again.
#[cfg(target_os = "linux")]
#[track_caller]
fn resumed(project: &Project, server: &Server) -> Terminal {
    let mut terminal = project.open(&["--resume"]);
    terminal.wait_that("the interrupted call is shown with its three ways on", |screen| {
        screen.contains(texts::OUTCOME_UNKNOWN) && ["r  ", "s  ", "t  "].iter().all(|choice| screen.contains(choice))
    });
    assert_eq!(project.read("ran"), "once\n", "it ran again by itself");
    assert_eq!(server.requests().len(), 1);
    terminal
}

#[cfg(target_os = "linux")]
#[test]
fn a_running_command_is_killed_with_aye_and_its_outcome_is_unknown() {
    let seconds = unique_sleep();
    let server = sleep_script(&seconds);
    let project = Project::with(&server);
    killed_while_running(&project, &seconds);
    let mut terminal = resumed(&project, &server);
    terminal.decide('t');
    terminal.wait_for("Finished the work.");
    assert!(server.request(1).tool_results()[0].1.contains("OUTCOME_UNKNOWN"), "{:?}", server.request(1).tool_results());
    assert_eq!(project.read("ran"), "once\n");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_call_can_be_skipped() {
    let seconds = unique_sleep();
    let server = sleep_script(&seconds);
    let project = Project::with(&server);
    killed_while_running(&project, &seconds);
    let mut terminal = resumed(&project, &server);
    terminal.decide('s');
    terminal.wait_for("Finished the work.");
    assert!(server.request(1).tool_results()[0].1.contains("CANCELLED"), "{:?}", server.request(1).tool_results());
    assert_eq!(project.read("ran"), "once\n");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_call_reruns_only_after_a_new_approval() {
    let seconds = unique_sleep();
    let server = sleep_script(&seconds);
    let project = Project::with(&server);
    killed_while_running(&project, &seconds);
    let mut terminal = resumed(&project, &server);
    terminal.decide('r');
    terminal.review("y  yes");
    assert_eq!(project.read("ran"), "once\n");
    terminal.decide('y');
    assert!(wait_until(TIMEOUT, || project.read("ran") == "once\nonce\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn exec_reports_an_unknown_outcome_and_never_reruns_the_call() {
    let seconds = unique_sleep();
    let server = sleep_script(&seconds);
    let project = Project::with(&server).allowing_everything();
    let running = project.start(&["exec", "--trust", "run it"]);
    assert!(wait_until(TIMEOUT, || sleeping(&seconds) > 0), "it never ran");
    running.kill();
    assert!(wait_until(TIMEOUT, || sleeping(&seconds) == 0), "the command outlives aye");
    project.aye(&["exec", "--trust", "-c"]).exits(0);
    assert!(server.request(1).tool_results()[0].1.contains("OUTCOME_UNKNOWN"), "{:?}", server.request(1).tool_results());
    assert_eq!(project.read("ran"), "once\n");
}

#[test]
fn the_conversation_is_shown_again_after_a_crash() {
    let gate = Gate::default();
    let server = Server::new([
        Answer::text("The answer to the first."),
        Answer::text("Half of the second").and_wait(&gate),
        Answer::text("The whole second answer."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("the first question");
    terminal.wait_for("The answer to the first.");
    terminal.prompt("the second question");
    terminal.wait_for("Half of the second");
    terminal.kill();
    gate.open();
    let mut terminal = project.open(&["--resume"]);
    for said in ["the first question", "The answer to the first.", "the second question"] {
        terminal.wait_for(said);
    }
}

#[test]
fn unsent_drafts_survive_a_crash() {
    const DRAFT: &str = "half a thought about zebras";
    let server = Server::new([Answer::text("The answer to the first.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("the first question");
    terminal.wait_for("The answer to the first.");
    terminal.type_text(DRAFT, 5);
    assert!(wait_until(TIMEOUT, || is_saved(&project, DRAFT)), "it never reaches the disk");
    terminal.kill();
    let mut terminal = project.open(&["--resume"]);
    terminal.wait_for(DRAFT);
    assert_eq!(server.requests().len(), 1);
}

/// Returns whether a file of the data directory contains this text.
fn is_saved(project: &Project, words: &str) -> bool {
    let holds = |path: std::path::PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(words.len()).any(|part| part == words.as_bytes()))
    };
    std::fs::read_dir(project.directory("data")).unwrap().flatten().any(|entry| holds(entry.path()))
}

#[test]
fn a_task_killed_while_streaming_continues_with_exec() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Half of it").and_wait(&gate), Answer::text("All of it.")]);
    let project = Project::with(&server);
    let running = project.start(&["exec", "the question"]);
    server.request(0);
    running.kill();
    gate.open();
    let output = project.aye(&["exec", "-c"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "All of it.");
    assert!(server.request(1).messages().contains("the question"));
    assert!(!server.request(1).messages().contains("Half of it"), "a cut answer is not sent back");
}

#[test]
fn a_session_can_be_selected_by_an_id_prefix() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = Project::with(&server);
    let events = project.aye(&["exec", "--json", "the first question"]).exits(0).events();
    project.aye(&["exec", "the other session"]).exits(0);
    let id = events.0[0]["sessionId"].as_str().unwrap();
    project.aye(&["exec", &format!("--resume={}", &id[..8]), "and more"]).exits(0);
    let messages = server.request(2).messages();
    assert!(messages.contains("the first question") && !messages.contains("the other session"), "{messages}");
}

#[test]
fn an_open_session_cannot_be_opened_twice() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Busy").and_wait(&gate), Answer::text("never asked for")]);
    let project = Project::with(&server);
    let first = project.start(&["exec", "a long task"]);
    server.request(0);
    let second = project.aye(&["exec", "-c", "me too"]);
    assert_ne!(second.code, 0, "{}", second.stdout);
    assert_eq!(server.requests().len(), 1);
    gate.open();
    first.finish().exits(0);
}

#[test]
fn long_sessions_load_their_end_first_and_are_sent_to_the_model_in_full() {
    const STEPS: usize = 130;
    let read = |step: usize| {
        Answer::text(&format!("Looking for the time number {step}.")).and_call(
            &format!("call_{step}"),
            "ReadFile",
            json!({"path": "note.txt", "offset": step + 1, "limit": 1}),
        )
    };
    let server = Server::new((0..STEPS).map(read).chain([Answer::text("All of it was read."), Answer::text("The next answer.")]));
    let project = Project::with(&server).file("note.txt", &"one line\n".repeat(STEPS + 1));
    project.aye(&["exec", "--max-steps", "500", "the very first question"]).exits(0);
    let mut terminal = project.open(&["--resume"]);
    terminal.wait_for("All of it was read.");
    // The session is loaded in the background. Until it is complete, only the loaded part is counted.
    let counted = wait_until(TIMEOUT, || {
        terminal.prompt("/stats");
        terminal.wait_for("Tool use");
        let is_counted =
            terminal.screen().lines().any(|line| line.contains("ReadFile") && line.contains(&format!("  {STEPS}  ")));
        terminal.send("\x1b");
        terminal.wait_until_gone("Tool use");
        is_counted
    });
    assert!(counted, "every call is counted\n{}", terminal.screen());
    let reached = wait_until(TIMEOUT, || {
        terminal.send("\x1b[H");
        terminal.screen().contains("the very first question")
    });
    assert!(reached, "{}", terminal.screen());
    terminal.send("\x1b[F");
    terminal.prompt("and another");
    terminal.wait_for("The next answer.");
    let said = server.request(STEPS + 1).messages();
    assert!(said.contains("the very first question") && said.contains("time number 0."), "all of it was sent");
}

#[test]
fn an_approval_pending_since_a_crash_does_not_block_a_rewind() {
    let write = |content: &str| json!({"path": "new.txt", "content": content});
    let server = Server::new([
        Answer::call("call_1", "WriteFile", write("first\n")),
        Answer::text("The first is done."),
        Answer::text("I will write it.").and_call("call_2", "WriteFile", write("second\n")),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 100, 36);
    terminal.prompt("the first");
    terminal.review("new.txt");
    terminal.decide('y');
    terminal.wait_for("The first is done.");
    terminal.prompt("the second");
    terminal.review("new.txt");
    terminal.kill();
    let mut terminal = project.open_sized(&["--resume"], 100, 36);
    terminal.review("new.txt");
    terminal.send("\x1b");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.prompt("/undo");
    terminal.wait_for("Rewind to before prompt 2: the second");
    terminal.decide('1');
    terminal.wait_for("/redo");
    terminal.wait_that("the question is gone and the prompt is back", |screen| {
        screen.contains("❯ the second") && !screen.contains(texts::TAB_TO_REVIEW)
    });
    assert_eq!(project.read("new.txt"), "first\n");
    assert_eq!(server.requests().len(), 3);
}
