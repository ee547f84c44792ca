//! `--ephemeral`: runs that are not saved.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, texts, wait_until};
use serde_json::json;
use std::path::{Path, PathBuf};

const WORD: &str = "quiet-heron";

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the files of the data directory that contain the marker word of the session.
fn with_word(project: &Project) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(WORD.len()).any(|window| window == WORD.as_bytes())
    };
    files(&project.directory("data")).into_iter().filter(has).collect()
}

/// Returns the number of directories of unfinished or killed runs.
fn runs(project: &Project) -> usize {
    let entries = std::fs::read_dir(project.directory("data").join("ephemeral")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).count()
}

#[test]
fn an_ephemeral_session_is_removed_and_its_file_changes_remain() {
    let long = format!("{WORD}\n").repeat(20_000);
    let calls = Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": WORD}))
        .and_call("c2", "EditFile", json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "omega"}]}))
        .and_call("c3", "ReadFile", json!({"path": "long.txt"}));
    let server = Server::new([calls, Answer::text(&format!("The word is {WORD}."))]);
    let project = Project::with(&server).allowing_everything().file("a.txt", "alpha\n").file("long.txt", &long);
    let output = project.aye_with_input(&["-v", "exec", "--ephemeral", &format!("remember {WORD}")], &long).exits(0);
    assert!(output.stdout.contains(WORD));
    assert_eq!((project.read("new.txt").as_str(), project.read("a.txt").as_str()), (WORD, "omega\n"));
    assert_eq!(with_word(&project), [] as [PathBuf; 0]);
    assert_eq!((runs(&project), project.aye(&["sessions", "list", "--json"]).exits(0).json()), (0, json!([])));
    project.aye(&["exec", "-c", "what was the word?"]).exits(2);
    project.aye(&["rewind", "--plan"]).exits(2);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_ephemeral_run_does_not_change_saved_sessions() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "first"]).exits(0);
    project.aye(&["exec", "--ephemeral", "second"]).exits(0);
    project.aye(&["exec", "-c", "third"]).exits(0);
    let messages = server.request(2).messages();
    assert!(messages.contains("first") && !messages.contains("second"), "{messages}");
}

#[test]
fn data_of_a_killed_run_is_removed_at_the_next_start_and_running_ones_are_kept() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("I begin").and_wait(&gate), Answer::text("Again.").and_wait(&gate)]);
    let project = Project::with(&server);
    let running = project.start(&["exec", "--ephemeral", "--json", WORD]);
    server.request(0);
    assert!(wait_until(TIMEOUT, || !with_word(&project).is_empty()), "the journal works during the run");
    project.aye(&["sessions", "list"]).exits(0);
    assert_eq!(runs(&project), 1);
    running.kill();
    assert_eq!(runs(&project), 1);
    let other = project.start(&["exec", "--ephemeral", "--json", "another"]);
    server.request(1);
    assert_eq!((runs(&project), with_word(&project)), (1, Vec::new()), "only the directory of the run that lives");
    gate.open();
    other.finish().exits(0);
    assert_eq!(runs(&project), 0);
}

#[test]
fn failures_of_an_ephemeral_run_do_not_suggest_continuing() {
    for (option, suggests) in [(None, true), (Some("--ephemeral"), false)] {
        let server = Server::new([]);
        let limited = ["exec", "--set", "budget.session_tokens=100"];
        let arguments: Vec<&str> = limited.into_iter().chain(option).chain(["hi"]).collect();
        let output = Project::with(&server).aye(&arguments).exits(4);
        assert_eq!(output.stderr.contains("aye exec -c"), suggests, "{option:?}: {}", output.stderr);
    }
}

#[test]
fn saved_sessions_stay_protected_in_an_ephemeral_run() {
    let server = Server::new([Answer::text("One.")]);
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", WORD]).exits(0);
    let store = project.directory("data").join("aye.db").display().to_string();
    server.push(Answer::call("c1", "ReadFile", json!({"path": store})).and_call(
        "c2",
        "RunCommand",
        json!({"command": format!("cat {store}")}),
    ));
    server.push(Answer::text("Done."));
    project.aye(&["exec", "--ephemeral", "--trust", "--mode", "auto", "read it"]).exits(3);
    for (_, text) in server.request(2).tool_results() {
        assert!(!text.contains(WORD) && text.contains("DENIED") || text.contains(texts::NO_ONE_TO_ASK), "{text}");
    }
}

#[test]
fn continued_sessions_cannot_be_ephemeral() {
    let project = Project::empty();
    for option in ["-c", "--resume", "--fork"] {
        project.aye(&["exec", "--ephemeral", option, "hi"]).exits(2).says(&["`--ephemeral` cannot be combined with"]);
    }
    project.aye(&["--ephemeral", "hi"]).exits(2).says(&["`--ephemeral` needs `-p` or `aye exec`"]);
}
