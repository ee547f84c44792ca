//! Typing while an approval opens decides nothing, and no letter of it is lost.

use crate::support::{Answer, Gate, Project, Server};
use serde_json::json;

const SENTENCE: &str = "a yes please also n 1 2 y";

fn script(gate: &Gate) -> Server {
    let write = json!({"path": "new.txt", "content": "written\n"});
    Server::new([
        Answer::text("Thinking about it").and_wait(gate).and_call("call_1", "WriteFile", write),
        Answer::text("Finished the work."),
    ])
}

#[test]
fn a_sentence_typed_across_an_opening_approval_lands_in_the_draft() {
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
    terminal.wait_for("tab to review");
    terminal.wait_for(SENTENCE);
    assert!(!project.exists("new.txt"));
    assert_eq!(server.requests().len(), 1, "nothing was decided");
    terminal.review("new.txt");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("new.txt"), "written\n");
    terminal.wait_for(SENTENCE);
}

#[test]
fn a_pause_in_the_sentence_changes_nothing() {
    let gate = Gate::default();
    let server = script(&gate);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.wait_for("Thinking about it");
    terminal.type_text("also fix the", 30);
    gate.open();
    terminal.wait_for("tab to review");
    // Longer than every wait of the guard.
    std::thread::sleep(std::time::Duration::from_millis(1800));
    terminal.type_text(" y", 30);
    terminal.wait_for("also fix the y");
    assert!(!project.exists("new.txt"));
    assert_eq!(server.requests().len(), 1, "nothing was decided");
}

#[test]
fn a_word_typed_into_an_armed_approval_is_not_an_answer() {
    let gate = Gate::default();
    gate.open();
    let server = script(&gate);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.review("new.txt");
    terminal.type_text("yes", 60);
    terminal.wait_for("tab to review");
    assert!(terminal.screen().contains("yes"), "{}", terminal.screen());
    assert!(!project.exists("new.txt"));
    assert_eq!(server.requests().len(), 1, "nothing was decided");
}

#[test]
fn a_paste_into_an_armed_approval_is_not_an_answer() {
    let gate = Gate::default();
    gate.open();
    let server = script(&gate);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    terminal.review("new.txt");
    terminal.send("\x1b[200~y\x1b[201~");
    terminal.wait_for("tab to review");
    assert!(!project.exists("new.txt"));
    assert_eq!(server.requests().len(), 1, "nothing was decided");
}

#[test]
fn keys_typed_before_the_first_frame_are_the_draft() {
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
