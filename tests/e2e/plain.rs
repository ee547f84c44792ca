//! Line mode: on a dumb terminal, with a pipe, and with `--plain`.

use crate::support::{Answer, Project, Server, Terminal, texts};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const BEFORE: &str = "fn main() {\n    let x = 1;\n}\n";
const AFTER: &str = "fn main() {\n    let total = 2;\n}\n";

fn edit() -> Value {
    json!({"path": "src/main.rs", "edits": [{"oldText": "let x = 1;", "newText": "let total = 2;"}]})
}

fn script() -> Server {
    Server::new([Answer::text("I will change it.").and_call("call_1", "EditFile", edit()), Answer::text("Finished the work.")])
}

/// Creates a project whose terminal can only print text.
fn dumb(server: &Server) -> Project {
    Project::with(server).env("TERM", "dumb").file("src/main.rs", BEFORE)
}

fn types(terminal: &mut Terminal, line: &str) {
    terminal.send(line);
    terminal.send("\n");
}

#[test]
fn in_a_dumb_terminal_an_edit_is_described_and_approved_by_typing_allow() {
    let server = script();
    let project = dumb(&server);
    let mut terminal = project.open_sized(&["--trust"], 100, 60);
    terminal.wait_for("You:");
    types(&mut terminal, "rename it");
    let screen = terminal.wait_for("Answer (allow");
    for words in [
        "aye: I will change it.",
        "Approval 1 of 1: Edit src/main.rs",
        "removed line 2:     let x = 1;",
        "added line 2:     let total = 2;",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    types(&mut terminal, "");
    terminal.wait_for(texts::EMPTY_LINE);
    types(&mut terminal, "perhaps");
    terminal.wait_for("Not a valid answer");
    assert_eq!(project.read("src/main.rs"), BEFORE);
    types(&mut terminal, "allow");
    let screen = terminal.wait_for("aye: Finished the work.");
    assert!(screen.contains("Approved once: Edit src/main.rs"), "{screen}");
    assert_eq!(project.read("src/main.rs"), AFTER);
    assert!(terminal.quit().success());
    terminal.assert_restored();
    let screen = terminal.screen();
    assert!(
        screen.contains("Changed since this session began: 1 file") && screen.contains("To continue: aye --resume"),
        "{screen}"
    );
}

#[test]
fn text_typed_before_an_approval_never_decides_it() {
    let server = script();
    let project = dumb(&server);
    let mut terminal = project.open_sized(&["--trust"], 100, 60);
    terminal.wait_for("You:");
    // When the prompt appears, the second word is still in the line buffer of the terminal, without a newline.
    terminal.send("rename it\nallow");
    terminal.wait_for("saved for your next message: allow");
    terminal.send("\n");
    terminal.wait_for(texts::EMPTY_LINE);
    assert_eq!(project.read("src/main.rs"), BEFORE);
    types(&mut terminal, "deny because it is late");
    terminal.wait_for("aye: Finished the work.");
    assert_eq!(project.read("src/main.rs"), BEFORE);
    let results = server.request(1).tool_results();
    assert!(results[0].1.contains("it is late"), "{results:?}");
}

#[test]
fn plain_output_contains_no_control_characters() {
    let server = Server::new([Answer::text("one\u{1b}[2J\u{1b}]0;title\u{7} two\n\nthree")]);
    let project = dumb(&server);
    let output = project.aye_with_input(&["--plain", "--trust"], "say it\n/status\n").exits(0);
    assert!(output.stdout.contains("aye: one two\n\nthree\n"), "{}", output.stdout);
    assert!(output.stdout.contains("Model: anthropic/") && output.stdout.contains("Mode: ask"), "{}", output.stdout);
    let obeyed = |letter: char| letter.is_control() && letter != '\n';
    assert!(!output.stdout.contains(obeyed), "{:?}", output.stdout);
}

#[test]
fn an_approval_after_the_end_of_input_stays_pending_without_an_error() {
    let server = script();
    let project = dumb(&server);
    let output = project.aye_with_input(&["--plain", "--trust"], "rename it\n").exits(0);
    assert!(output.stdout.contains("Approval 1 of 1: Edit src/main.rs"), "{}", output.stdout);
    assert!(
        output.stdout.contains("To continue: aye --resume") && output.stderr.is_empty(),
        "{}{}",
        output.stdout,
        output.stderr
    );
    assert!(output.stdout.contains("Try: ") && !output.stdout.contains("? keys"), "no key is pressed here\n{}", output.stdout);
    assert_eq!(project.read("src/main.rs"), BEFORE);
}

#[test]
fn ctrl_c_stops_the_task_and_a_second_ctrl_c_quits() {
    let server = script();
    let project = dumb(&server);
    let mut terminal = project.open_sized(&["--trust"], 100, 60);
    terminal.wait_for("You:");
    types(&mut terminal, "rename it");
    terminal.wait_for("Answer (allow");
    terminal.send("\x03");
    terminal.wait_for("Note: interrupted");
    assert_eq!(project.read("src/main.rs"), BEFORE);
    terminal.send("\x03");
    assert!(terminal.finish().success());
}

#[test]
fn approvals_work_if_only_the_input_is_a_terminal() {
    let server = script();
    let project = Project::with(&server).file("src/main.rs", BEFORE);
    let pair = nix::pty::openpty(None, None).unwrap();
    let mut command = project.command(&["--trust"]);
    let mut child = command.stdin(pair.slave).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut person = std::fs::File::from(pair.master);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |words: &str| lines.by_ref().map_while(Result::ok).any(|line| line.contains(words));
    assert!(wait_for("You:"));
    person.write_all(b"rename it\n").unwrap();
    assert!(wait_for("Answer (allow"));
    person.write_all(b"allow\n").unwrap();
    assert!(wait_for("aye: Finished the work."));
    person.write_all(b"\x04").unwrap();
    assert!(wait_for("To continue: aye --resume"));
    assert!(child.wait().unwrap().success());
    assert_eq!(project.read("src/main.rs"), AFTER);
}

#[test]
fn plain_mode_can_be_set_in_the_configuration() {
    let server = Server::new([Answer::text("Hello there.")]);
    let project = Project::with(&server).config("[ui]\nplain = true\n");
    let mut terminal = project.open(&["say hello"]);
    let screen = terminal.wait_for("aye: Hello there.");
    assert!(screen.contains("You: say hello"), "{screen}");
    assert!(terminal.quit().success());
}
