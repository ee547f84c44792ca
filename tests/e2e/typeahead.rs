//! Typing while an approval opens: no key decides the approval, and no letter is lost.

use crate::support::{Answer, Gate, Project, Server, Terminal, texts};
use serde_json::json;

const SENTENCE: &str = "a yes please also n 1 2 y";

fn script(gate: &Gate) -> Server {
    let write = json!({"path": "new.txt", "content": "written\n"});
    Server::new([
        Answer::text("Thinking about it").and_wait(gate).and_call("call_1", "WriteFile", write),
        Answer::text("Finished the work."),
    ])
}

/// Starts a session with this configuration, and waits until the approval to write `new.txt` accepts keys.
fn asked(config: &str) -> (Server, Project, Terminal) {
    let gate = Gate::default();
    gate.open();
    let server = script(&gate);
    let project = Project::with(&server).config(config);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.review("new.txt");
    (server, project, terminal)
}

/// Fails if the approval to write `new.txt` was decided.
#[track_caller]
fn assert_undecided(server: &Server, project: &Project) {
    assert!(!project.exists("new.txt"));
    assert_eq!(server.requests().len(), 1, "nothing was decided");
}

#[test]
fn a_sentence_typed_while_an_approval_opens_goes_to_the_draft() {
    let gate = Gate::default();
    let server = script(&gate);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.wait_for("Thinking about it");
    let (before, after) = SENTENCE.split_at(9);
    terminal.type_text(before, 40);
    gate.open();
    terminal.type_text(after, 40);
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.wait_for(SENTENCE);
    assert_undecided(&server, &project);
    terminal.review("new.txt");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "written\n");
    terminal.wait_for(SENTENCE);
}

#[test]
fn a_pause_while_typing_a_sentence_does_not_decide_the_approval() {
    let gate = Gate::default();
    let server = script(&gate);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.wait_for("Thinking about it");
    terminal.type_text("also fix the", 30);
    gate.open();
    terminal.wait_for(texts::TAB_TO_REVIEW);
    // This pause is longer than all delays of the guard.
    std::thread::sleep(std::time::Duration::from_millis(1800));
    terminal.type_text(" y", 30);
    terminal.wait_for("also fix the y");
    assert_undecided(&server, &project);
}

#[test]
fn a_word_typed_into_an_armed_approval_does_not_decide_it() {
    let (server, project, mut terminal) = asked("");
    // The word is sent in one burst. After a pause, the `y` would be an answer.
    terminal.send("yes");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.wait_for("❯ yes");
    assert_undecided(&server, &project);
}

#[test]
fn a_paste_into_an_armed_approval_does_not_decide_it() {
    let (server, project, mut terminal) = asked("");
    terminal.send("\x1b[200~y\x1b[201~");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    assert_undecided(&server, &project);
}

/// The tested keys include those with which other agents approve.
#[test]
fn a_wrong_key_keeps_the_approval_open_and_a_digit_highlights_its_row() {
    let (_server, project, mut terminal) = asked("");
    terminal.send("j");
    terminal.wait_for("`j` is not a choice here: y");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!project.exists("new.txt"));
    terminal.send("1");
    terminal.wait_for(texts::ENTER_CONFIRM);
    assert!(!project.exists("new.txt"));
    terminal.enter();
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "written\n");
}

#[test]
fn a_key_pressed_before_arming_highlights_its_choice_and_confirms_when_repeated() {
    let gate = Gate::default();
    let server = script(&gate);
    // The delay leaves enough time to press a key before it ends, even on a slow machine.
    let project = Project::with(&server).config("[approval]\narming_ms = 2000\n");
    let mut terminal = project.open(&[]);
    terminal.set_reply_delay(None);
    terminal.prompt("write it");
    std::thread::sleep(std::time::Duration::from_millis(1200));
    gate.open();
    terminal.wait_for("◔");
    terminal.send("y");
    terminal.wait_for(texts::ENTER_CONFIRM);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(!project.exists("new.txt"), "a mark alone decides nothing");
    terminal.send("y");
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "written\n");
}

#[test]
fn escape_returns_to_the_approval_after_typing_and_a_single_word_is_not_sent() {
    let (server, _project, mut terminal) = asked("");
    // The word is sent in one burst. After a pause, the `y` would be an answer.
    terminal.send("yes");
    let screen = terminal.wait_for("❯ yes");
    assert!(screen.contains("new.txt") && screen.contains(texts::TAB_TO_REVIEW), "{screen}");
    terminal.send("\x1b");
    terminal.review("new.txt");
    terminal.send("\x1b");
    terminal.wait_for("❯ yes");
    terminal.enter();
    terminal.wait_for(texts::NOT_SENT);
    terminal.review("new.txt");
    assert_eq!(server.requests().len(), 1, "nothing was decided, stopped or sent");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn keys_typed_before_the_first_frame_go_to_the_draft() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.send("typed early");
    terminal.wait_for("typed early");
}

#[test]
fn a_prompt_typed_while_a_task_runs_is_queued_behind_it() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Busy now").and_wait(&gate).and(" and done."), Answer::text("The second answer.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("the first");
    terminal.wait_for("Busy now");
    terminal.prompt("the second");
    assert_eq!(server.requests().len(), 1);
    gate.open();
    terminal.wait_for("The second answer.");
    assert!(server.request(1).messages().contains("the second"));
}

/// Key sequences that other agents misinterpreted, typed with and without a pause in the middle.
#[test]
fn recorded_key_sequences_typed_while_an_approval_opens_go_to_the_draft() {
    for (parts, rest_ms) in [
        (["a yes please", " also 1 2 p"], 0),
        (["also fix the", " bug in case 1 y"], 2200),
        (["and then", " y it again"], 2200),
        (["1 2", " n 3"], 2200),
    ] {
        let gate = Gate::default();
        let server = script(&gate);
        let project = Project::with(&server);
        let mut terminal = project.open(&[]);
        terminal.prompt("write it");
        terminal.wait_for("Thinking about it");
        terminal.type_text(parts[0], 40);
        gate.open();
        std::thread::sleep(std::time::Duration::from_millis(rest_ms));
        terminal.type_text(parts[1], 40);
        terminal.wait_for(texts::TAB_TO_REVIEW);
        terminal.wait_for(&parts.concat());
        std::thread::sleep(std::time::Duration::from_millis(600));
        assert!(!project.exists("new.txt"), "{parts:?}");
        assert_eq!(server.requests().len(), 1, "nothing was decided: {parts:?}");
    }
}

#[test]
fn a_prompt_submitted_over_an_open_approval_is_queued() {
    let (server, project, mut terminal) = asked("");
    terminal.type_text("make it shorter", 40);
    terminal.enter();
    terminal.wait_for("1 queued");
    assert_undecided(&server, &project);
}

#[test]
fn on_a_terminal_without_query_responses_typing_is_guarded_and_approvals_work() {
    for line_ms in [None, Some(700)] {
        let gate = Gate::default();
        gate.open();
        let server = script(&gate);
        let project = Project::with(&server);
        let mut terminal = project.open(&[]);
        terminal.set_reply_delay(line_ms);
        terminal.prompt("write it");
        terminal.wait_for("◔");
        // The prompt is visible, but its choices are not active yet.
        terminal.send("yes 1 n");
        terminal.wait_for("yes 1 n");
        assert_undecided(&server, &project);
        terminal.review("new.txt");
        terminal.decide('y');
        terminal.wait_for("Finished the work.");
        assert_eq!(project.read("new.txt"), "written\n");
    }
}

#[test]
fn a_held_key_approves_nothing() {
    let (server, project, mut terminal) = asked("");
    // The repeats arrive before the first press takes effect, even on a slow machine.
    terminal.send(&"y".repeat(40));
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_undecided(&server, &project);
    // The prompt is unchanged.
    terminal.review("new.txt");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
}

#[test]
fn in_strict_mode_a_choice_needs_enter_to_confirm() {
    let (_server, project, mut terminal) = asked("[approval]\nguard = \"strict\"\n");
    // After this pause, the key no longer counts as part of the preceding text.
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.send("y");
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(!project.exists("new.txt"));
    terminal.send("\r");
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "written\n");
}

#[test]
fn approvals_selected_in_the_list_are_decided_together() {
    let write = |name: &str| json!({"path": name, "content": "written\n"});
    let server = Server::new([
        Answer::text("Three files")
            .and_call("call_1", "WriteFile", write("one.txt"))
            .and_call("call_2", "WriteFile", write("two.txt"))
            .and_call("call_3", "WriteFile", write("three.txt")),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write them");
    terminal.wait_for("3 waiting for you");
    terminal.send("\x11");
    terminal.wait_that("the list takes keys", |screen| screen.contains("approve selected") && !screen.contains('◔'));
    Terminal::react();
    terminal.send(" \x1b[B\x1b[B");
    terminal.wait_for("1 selected");
    terminal.send(" ");
    terminal.wait_for("2 selected");
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.send("y");
    terminal.wait_for(texts::ENTER_CONFIRM);
    terminal.enter();
    terminal.wait_for("1 waiting for you");
    assert!(project.exists("one.txt") && project.exists("three.txt") || server.requests().len() == 1);
    terminal.send("\x1b");
    // The list must release the keyboard first.
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.review("two.txt");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert!(project.exists("one.txt") && project.exists("three.txt") && !project.exists("two.txt"));
}
