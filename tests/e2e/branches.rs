//! Archived sessions, forks on the command line, and branches of a session.

use crate::support::{Answer, Project, Server, TIMEOUT, texts, wait_until};
use serde_json::Value;

fn listed(project: &Project, flags: &[&str]) -> Vec<Value> {
    let output = project.aye(&[&["sessions", "list", "--json"], flags].concat()).exits(0);
    serde_json::from_str(&output.stdout).unwrap()
}

fn titles(project: &Project, flags: &[&str]) -> Vec<String> {
    listed(project, flags).iter().map(|one| one["title"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_archived_session_is_not_continued_by_default_and_not_lost() {
    let server = Server::new([Answer::text("First."), Answer::text("Second."), Answer::text("More.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    project.aye(&["exec", "the second thing"]).exits(0);
    let id = listed(&project, &[])[0]["sessionId"].as_str().unwrap().to_owned();
    project.aye(&["sessions", "archive", &id]).exits(0);
    assert_eq!(titles(&project, &[]), ["the first thing"]);
    assert_eq!(titles(&project, &["--archived"]), ["the second thing"]);
    project.aye(&["exec", "-c", "go on"]).exits(0);
    assert!(server.request(2).messages().contains("the first thing"));
    assert!(project.aye(&["sessions", "show", &id]).exits(0).stdout.contains("Second."));
    project.aye(&["sessions", "unarchive", &id]).exits(0);
    assert_eq!(titles(&project, &["--archived"]), [""; 0]);
    assert_eq!(titles(&project, &[]).len(), 2);
    project.aye(&["sessions", "archive", "ffffffff"]).exits(2);
}

#[test]
fn continuing_an_archived_session_unarchives_it() {
    let server = Server::new(["First.", "Second.", "Third."].map(Answer::text));
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    let id = listed(&project, &[])[0]["sessionId"].as_str().unwrap().to_owned();
    project.aye(&["sessions", "archive", &id]).exits(0);
    project.aye(&["rewind", &id, "--plan"]).exits(0);
    assert_eq!(titles(&project, &["--archived"]), ["the first thing"], "what only looks leaves it where it is");
    let resumed = project.aye(&["exec", &format!("--resume={id}"), "go on"]).exits(0);
    assert!(resumed.stderr.contains(texts::NOW_UNARCHIVED), "{}", resumed.stderr);
    assert_eq!((titles(&project, &["--archived"]), titles(&project, &[])), (vec![], vec!["the first thing".to_owned()]));
    project.aye(&["sessions", "archive", &id]).exits(0);
    let mut terminal = project.open_sized(&[&format!("--resume={id}")], 120, 30);
    terminal.wait_for(texts::NOW_UNARCHIVED);
    assert!(terminal.quit().success());
    assert_eq!(titles(&project, &[]), ["the first thing"]);
}

#[test]
fn clients_and_editors_that_continue_an_archived_session_unarchive_it() {
    let server = Server::new([Answer::text("Noted.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    let id = listed(&project, &[])[0]["sessionId"].as_str().unwrap().to_owned();
    let archived = || titles(&project, &["--archived"]);
    project.aye(&["sessions", "archive", &id]).exits(0);
    assert_eq!(archived(), ["the first thing"]);
    let mut client = crate::support::Rpc::start(&project, &[]);
    client.call("ResumeSession", serde_json::json!({"sessionId": id}));
    client.call("Shutdown", serde_json::json!({}));
    client.finish();
    assert_eq!(archived(), [""; 0]);
    project.aye(&["sessions", "archive", &id]).exits(0);
    let mut editor = crate::support::Editor::start(&project, &[]);
    let directory = project.path("").canonicalize().unwrap().display().to_string();
    editor.call("session/load", serde_json::json!({"sessionId": id, "cwd": directory, "mcpServers": []})).unwrap();
    assert_eq!(archived(), [""; 0]);
}

#[test]
fn a_session_is_archived_and_unarchived_on_the_screen() {
    let server = Server::new([Answer::text("First."), Answer::text("Second.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    project.aye(&["exec", "the second thing"]).exits(0);
    let mut terminal = project.open_sized(&["--resume"], 120, 30);
    terminal.wait_for("the second thing");
    terminal.wait_for("Second.");
    terminal.send("\x01");
    terminal.wait_for("session archived");
    terminal.wait_until_gone("the second thing");
    terminal.send("\t");
    terminal.wait_for("[all 1]");
    terminal.send("\t");
    terminal.wait_for("[archived 1]");
    terminal.wait_for("the second thing");
    terminal.send("\x01");
    terminal.wait_for("unarchived");
    assert!(wait_until(TIMEOUT, || titles(&project, &[]).len() == 2));
    terminal.send("\x1b");
    terminal.finish();
    terminal.assert_restored();
}

#[test]
fn a_session_is_forked_from_the_command_line() {
    let server = Server::new([Answer::text("First."), Answer::text("Second."), Answer::text("Third."), Answer::text("Fourth.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "the first thing"]).exits(0);
    project.aye(&["exec", "--fork", "another way"]).exits(0);
    assert!(server.request(1).messages().contains("the first thing"));
    assert_eq!(titles(&project, &[]), ["the first thing (fork)", "the first thing"]);
    let first = listed(&project, &[])[1]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(listed(&project, &[])[0]["parent"], *first);
    project.aye(&["exec", "--fork", &first[..8], "a third way"]).exits(0);
    let sent = server.request(2).messages();
    assert!(sent.contains("the first thing") && !sent.contains("another way"), "{sent}");
    let mut terminal = project.open_sized(&[&format!("--fork={first}"), "a fourth way"], 100, 30);
    terminal.wait_for("Fourth.");
    assert_eq!(listed(&project, &[]).len(), 4);
    assert!(terminal.quit().success());
    project.aye(&["--fork", "-c"]).exits(2);
    project.aye(&["exec", "--fork=ffffffff", "x"]).exits(2);
}

#[test]
fn the_branches_of_a_session_form_a_tree_and_any_of_them_can_be_continued() {
    let server = Server::new(["One.", "Two.", "Three.", "Four.", "Five."].map(Answer::text));
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&[], 120, 30);
    terminal.prompt("first request");
    terminal.wait_for("One.");
    terminal.prompt("second request");
    terminal.wait_for("Two.");
    terminal.prompt("/undo");
    terminal.wait_for("Rewind to before prompt 2");
    terminal.decide('1');
    terminal.wait_for("/redo reverts this");
    terminal.wait_for("❯ second request");
    terminal.send("\x15");
    terminal.wait_for(texts::EMPTY_DRAFT);
    terminal.prompt("other request");
    terminal.wait_for("Three.");
    terminal.prompt("/tree");
    let screen = terminal.wait_that("the tree is shown", |screen| screen.contains("Branches") && screen.contains("undone"));
    assert!(screen.contains("after prompt 1") && screen.contains(texts::OPEN_HERE), "{screen}");
    terminal.send("\x1b[B");
    terminal.wait_for("undone in");
    terminal.enter();
    assert!(wait_until(TIMEOUT, || titles(&project, &[]).contains(&"first request (fork)".to_owned())));
    terminal.wait_for("Two.");
    terminal.wait_until_gone("Three.");
    terminal.prompt("on from there");
    terminal.wait_for("Four.");
    let sent = server.request(3).messages();
    assert!(sent.contains("second request") && !sent.contains("other request"), "{sent}");
    terminal.prompt("/tree");
    terminal.wait_that("both are shown", |screen| screen.contains("first request (fork)") && screen.contains("after prompt 2"));
    terminal.send("\x1b");
    terminal.wait_until_gone("Branches");
    assert!(terminal.quit().success());
}

const WRITES: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = false\n";

#[test]
fn changes_since_the_last_run_are_reported_on_resume() {
    let write = |id: &str, path: &str| Answer::call(id, "WriteFile", serde_json::json!({"path": path, "content": "by a tool\n"}));
    let server = Server::new([write("c1", "one.txt"), write("c2", "two.txt"), Answer::text("Both are there.")]);
    let project = Project::with(&server).policy(WRITES);
    project.aye(&["exec", "write both"]).exits(0);
    // A file that is rewritten with the same content counts as unchanged.
    std::fs::write(project.path("one.txt"), "by a tool\n").unwrap();
    std::fs::write(project.path("two.txt"), "by hand\n").unwrap();
    let project = project.policy(&WRITES.replacen("schema_version = 1\n", "schema_version = 1\nbundle_version = \"9\"\n", 1));
    let mut terminal = project.open_sized(&["-c"], 120, 36);
    terminal.wait_for("since you left this session, two.txt changed");
    let screen = terminal.wait_for("the policy was");
    assert!(!screen.contains("one.txt changed") && screen.contains("bundle 9"), "{screen}");
    assert!(terminal.quit().success());
}
