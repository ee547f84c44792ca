//! `aye review`: findings about changes, as text and as data.

use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};

pub(crate) fn git(project: &Project, arguments: &[&str]) {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"];
    let all: Vec<&str> = identity.iter().chain(arguments).copied().collect();
    project.run_program("git", &all).exits(0);
}

/// Creates a repository with one commit and an uncommitted change in line 2 of `a.txt`.
pub(crate) fn repository(server: &Server) -> Project {
    let project = Project::outside_tmp_with(server).file("a.txt", "one\ntwo\nthree\n").file("b.txt", "b\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project.file("a.txt", "one\n2\nthree\n")
}

pub(crate) fn finding(file: &str, line: u64, severity: &str) -> Value {
    json!({"file": file, "line": line, "severity": severity, "confidence": "high", "title": format!("wrong in {file}"), "explanation": "Because."})
}

pub(crate) fn response(findings: &[Value]) -> Answer {
    Answer::text(&json!({"summary": "A change.", "findings": findings}).to_string())
}

#[test]
fn findings_in_the_diff_are_printed_and_a_high_severity_exits_with_1() {
    let server = Server::new([response(&[
        finding("a.txt", 2, "medium"),
        finding("a.txt", 1, "high"),
        finding("a.txt", 900, "critical"),
        finding("b.txt", 1, "critical"),
        finding("new.txt", 1, "low"),
    ])]);
    let project = repository(&server).file("new.txt", "new\n");
    let output = project.aye(&["review"]).exits(1);
    let lines: Vec<&str> = output.stdout.lines().filter(|line| line.contains(": wrong in ")).collect();
    assert_eq!(
        lines,
        [
            "a.txt:1: high: wrong in a.txt (confidence: high)",
            "a.txt:2: medium: wrong in a.txt (confidence: high)",
            "new.txt:1: low: wrong in new.txt (confidence: high)",
        ]
    );
    assert!(output.stdout.contains("dropped: 2 findings"), "{}", output.stdout);
    output.says(&["reviewing uncommitted changes: 2 files (+2 −1)"]);
    let prompt = server.request(0).messages();
    assert!(prompt.contains("+2") && prompt.contains("b/new.txt") && !prompt.contains("b/b.txt"), "{prompt}");
}

#[test]
fn a_review_is_not_the_latest_session_until_the_user_continues_it() {
    let server = Server::new([Answer::text("One."), response(&[]), Answer::text("Two."), Answer::text("Three.")]);
    let project = repository(&server);
    project.aye(&["exec", "the task"]).exits(0);
    project.aye(&["review"]).exits(0);
    let mut terminal = project.open_sized(&[], 140, 30);
    terminal.wait_for("Last session: \"the task\"");
    assert!(terminal.quit().success());
    let plan = project.aye(&["rewind", "--plan"]).exits(0).stdout;
    assert!(plan.contains("the task"), "{plan}");
    project.aye(&["exec", "-c", "and more"]).exits(0);
    assert!(server.request(2).messages().contains("the task"));
    let sessions = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    let review = sessions.as_array().unwrap().iter().find(|session| session["ofCommand"] == true).unwrap();
    let id = review["sessionId"].as_str().unwrap();
    project.aye(&["exec", &format!("--resume={id}"), "explain"]).exits(0);
    assert!(server.request(3).messages().contains("Review these changes"));
    let sessions = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    assert!(sessions.as_array().unwrap().iter().all(|session| session["ofCommand"].is_null()), "{sessions}");
}

#[test]
fn json_findings_have_a_version() {
    let server = Server::new([response(&[finding("a.txt", 2, "low")])]);
    let project = repository(&server);
    let output = project.aye(&["review", "--json", "--ephemeral"]).exits(0).json();
    assert_eq!(
        (&output["version"], &output["reviewed"], &output["files"]),
        (&json!(1), &json!("uncommitted changes"), &json!(1))
    );
    assert_eq!((&output["findings"], &output["dropped"]), (&json!([finding("a.txt", 2, "low")]), &json!(0)));
    assert_eq!(project.aye(&["sessions", "list", "--json"]).exits(0).json(), json!([]));
}

#[test]
fn the_reviewed_changes_can_be_selected() {
    for (arguments, title, has) in [
        (&["review", "--staged"][..], "staged changes", "+staged"),
        (&["review", "--commit", "HEAD"], "commit HEAD", "+b"),
        (&["review", "--base", "main"], "changes since main", "+2"),
    ] {
        let server = Server::new([response(&[])]);
        let project = repository(&server).file("b.txt", "staged\n");
        git(&project, &["add", "b.txt"]);
        project.aye(arguments).exits(0).says(&[title]);
        let prompt = server.request(0).messages();
        assert!(prompt.contains(has), "{arguments:?}: {prompt}");
    }
}

#[test]
fn a_clean_branch_is_compared_with_the_default_branch() {
    let server = Server::new([response(&[])]);
    let project = repository(&server);
    git(&project, &["checkout", "-q", "-b", "topic"]);
    git(&project, &["commit", "-q", "-a", "-m", "second"]);
    project.aye(&["review"]).exits(0).says(&["changes since main: 1 file"]);
    git(&project, &["checkout", "-q", "main"]);
    project.aye(&["review"]).exits(0).says(&["nothing to review"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_review_is_read_only_even_if_the_policy_allows_everything() {
    let write = Answer::call("c1", "WriteFile", json!({"path": "pwned.txt", "content": "x"})).and_call(
        "c2",
        "RunCommand",
        json!({"command": "touch pwned.txt"}),
    );
    let server = Server::new([write, response(&[])]);
    let project = repository(&server).allowing_everything();
    project.aye(&["review", "--mode", "auto"]).exits(0);
    assert!(!project.exists("pwned.txt"));
}

#[test]
fn a_mismatched_response_is_corrected_once() {
    let server = Server::new([Answer::text("Looks good."), response(&[finding("a.txt", 2, "high")])]);
    let project = repository(&server);
    project.aye(&["review"]).exits(1);
    let server = Server::new([Answer::text("Looks good."), Answer::text("Really.")]);
    let project = project.connected_to(&server);
    let output = project.aye(&["review"]).exits(6);
    assert_eq!(output.stdout, "");
}

#[test]
fn review_errors_have_a_hint() {
    let server = Server::new([]);
    let project = Project::outside_tmp_with(&server).file("a.txt", "a\n");
    project.aye(&["review", "--base", "--output=x"]).exits(2);
    project.aye(&["review", "--base", "a..b"]).exits(2).says(&["must be a branch, tag or commit"]);
    let repository = repository(&server);
    repository.aye(&["review", "--base", "missing"]).exits(2).says(&["cannot read the changes", "hint:"]);
}
