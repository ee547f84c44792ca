//! Approvals in the terminal: a response streams, an edit and a command wait for approval, and each answer takes
//! effect.

use crate::support::{Answer, Gate, Project, Server, Terminal, texts};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

fn edit() -> Value {
    json!({"path": "src/main.rs", "edits": [{"oldText": "let x = 1;", "newText": "let total = 2;"}]})
}

const BEFORE: &str = "fn main() {\n    let x = 1;\n}\n";
const AFTER: &str = "fn main() {\n    let total = 2;\n}\n";

fn edit_script() -> Server {
    Server::new([Answer::text("I will change it.").and_call("call_1", "EditFile", edit()), Answer::text("Finished the work.")])
}

fn edit_project(server: &Server) -> Project {
    Project::with(server).file("src/main.rs", BEFORE)
}

#[test]
fn responses_stream_onto_the_screen() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Hello there, ").and_wait(&gate).and("and **good** morning.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("say hello");
    terminal.wait_for("Hello there,");
    gate.open();
    terminal.wait_for("and good morning.");
    assert!(terminal.quit().success());
    terminal.assert_restored();
    let screen = terminal.screen();
    assert!(screen.contains("--resume"), "the way back is printed\n{screen}");
}

#[test]
fn a_prompt_on_the_command_line_starts_the_task() {
    let server = Server::new([Answer::text("Hello there.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&["say hello"]);
    terminal.wait_for("Hello there.");
}

#[test]
fn an_edit_is_shown_as_a_diff_and_applied_after_approval() {
    let server = edit_script();
    let project = edit_project(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("rename it");
    let screen = terminal.review("Edit src/main.rs");
    assert!(screen.contains("let x = 1;") && screen.contains("let total = 2;"), "{screen}");
    assert_eq!(project.read("src/main.rs"), BEFORE, "nothing is written before the yes");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), AFTER);
    let results = server.request(1).tool_results();
    assert_eq!(results[0].0, "call_1");
    assert!(!results[0].1.contains("DENIED"), "{results:?}");
}

#[test]
fn enter_alone_decides_nothing() {
    let server = edit_script();
    let project = edit_project(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("rename it");
    terminal.review("Edit src/main.rs");
    terminal.send("\r");
    terminal.send(" ");
    // The draft has the keyboard again, so the previous keys have been processed.
    terminal.send("\x1b");
    terminal.wait_for(texts::TAB_TO_REVIEW);
    assert_eq!(project.read("src/main.rs"), BEFORE);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn denying_leaves_the_file_unchanged_and_informs_the_model() {
    let server = edit_script();
    let project = edit_project(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("rename it");
    terminal.review("Edit src/main.rs");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE);
    assert!(server.request(1).tool_results()[0].1.contains("USER_DENIED"), "{:?}", server.request(1).tool_results());
}

#[test]
fn denying_with_a_reason_sends_the_reason_to_the_model() {
    let server = edit_script();
    let project = edit_project(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("rename it");
    terminal.review("Edit src/main.rs");
    terminal.send("N");
    terminal.wait_for("deny because:");
    terminal.type_text("use the name sum", 5);
    terminal.wait_for("use the name sum");
    terminal.enter();
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE);
    let (_, told) = &server.request(1).tool_results()[0];
    assert!(told.contains("USER_DENIED") && told.contains("use the name sum"), "{told}");
}

#[test]
fn a_command_runs_after_approval_and_its_output_is_sent_to_the_model() {
    let command = json!({"command": "echo from-the-command && touch ran"});
    let server = Server::new([Answer::call("call_1", "RunCommand", command), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("run it");
    let screen = terminal.review("y  yes");
    assert!(screen.contains("echo from-the-command"), "{screen}");
    assert!(!project.exists("ran"));
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert!(project.exists("ran"));
    assert!(server.request(1).tool_results()[0].1.contains("from-the-command"));
}

#[test]
fn a_grant_until_quitting_needs_only_one_approval() {
    let command = || json!({"command": "touch again"});
    let server = Server::new([
        Answer::call("call_1", "RunCommand", command()),
        Answer::call("call_2", "RunCommand", command()),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("run it twice");
    terminal.review("y  yes");
    terminal.send("a");
    terminal.wait_for(texts::ALWAYS_ALLOW);
    terminal.decide('1');
    terminal.wait_for("Finished the work.");
    assert_eq!(server.request(2).tool_results().len(), 2);
}

#[test]
fn a_file_changed_during_an_approval_is_not_overwritten() {
    let server = edit_script();
    let project = edit_project(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("rename it");
    terminal.review("Edit src/main.rs");
    let by_hand = "fn main() {\n    let x = 1; // mine\n}\n";
    std::fs::write(project.path("src/main.rs"), by_hand).unwrap();
    // The message appears immediately, without a key press and before any decision.
    let screen = terminal.wait_for(texts::CHANGED_ON_DISK);
    assert!(!screen.contains("always allow"), "{screen}");
    terminal.review("Edit src/main.rs");
    assert_eq!(project.read("src/main.rs"), by_hand);
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), by_hand);
    assert!(server.request(1).tool_results()[0].1.contains("USER_DENIED"), "{:?}", server.request(1).tool_results());
}

#[test]
fn an_approval_survives_terminal_resizes() {
    let server = edit_script();
    let project = edit_project(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("rename it");
    terminal.review("Edit src/main.rs");
    for (columns, rows) in [(60, 20), (30, 8), (160, 50), (80, 24)] {
        terminal.resize(columns, rows);
        if columns >= 40 {
            terminal.wait_that("it fits the new size", |screen| screen.contains("Edit src/main.rs") && Terminal::asks(screen));
        } else {
            terminal.wait_for("40x12");
        }
    }
    terminal.review("Edit src/main.rs");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert_eq!(project.read("src/main.rs"), AFTER);
}

#[test]
fn escape_stops_the_task_and_the_next_prompt_works() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("I talk and").and_wait(&gate).and(" talk."), Answer::text("The second answer.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("talk");
    terminal.wait_for("I talk and");
    terminal.send("\x1b");
    terminal.wait_until_gone("esc stop");
    gate.open();
    terminal.prompt("something else");
    terminal.wait_for("The second answer.");
}

#[test]
fn the_terminal_is_restored_after_fatal_signals() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let fatal = [Signal::SIGABRT, Signal::SIGQUIT, Signal::SIGSEGV];
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT].into_iter().chain(fatal) {
        let mut terminal = project.open(&[]);
        terminal.wait_that("the composer is there", |screen| screen.contains('❯'));
        terminal.signal(signal);
        terminal.finish();
        terminal.assert_restored();
    }
}

#[test]
fn a_multi_line_prompt_is_sent_as_one_message() {
    let server = Server::new([Answer::text("Read both.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_that("the composer is there", |screen| screen.contains('❯'));
    terminal.type_text("first line", 2);
    terminal.send("\n");
    terminal.type_text("second line", 2);
    terminal.wait_for("second line");
    terminal.enter();
    terminal.wait_for("Read both.");
    assert!(server.request(0).messages().contains("first line\\nsecond line"));
}

#[test]
fn after_the_first_of_two_approvals_the_screen_shows_the_pending_one() {
    let write = |path: &str| json!({"path": path, "content": "written\n"});
    let server = Server::new([
        Answer::text("Two files.").and_call("call_1", "WriteFile", write("one.txt")).and_call(
            "call_2",
            "WriteFile",
            write("two.txt"),
        ),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("write them");
    terminal.review("one.txt");
    terminal.send("y");
    terminal.wait_for("✓ Create one.txt");
    terminal.wait_that("what waits, and only that", |screen| screen.contains("two.txt") && !screen.contains("Create one.txt ·"));
    assert!(project.exists("one.txt") && !project.exists("two.txt"));
    terminal.review("two.txt");
    terminal.decide('y');
    terminal.wait_for("Finished the work.");
    assert!(project.exists("two.txt"));
}
