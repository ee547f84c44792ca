//! `/review`: a review alongside the session, a list of its findings, and tasks that fix them.

use crate::review::{finding, git, repository, response};
use crate::support::{Answer, Editor, Gate, Project, Server, TIMEOUT, Terminal, wait_until};
use serde_json::json;

/// Returns the number of messages in a request.
fn messages(server: &Server, request: usize) -> usize {
    server.request(request).body["messages"].as_array().map_or(0, Vec::len)
}

/// Opens a session in which the model has responded once.
fn open(project: &Project, server: &Server) -> Terminal {
    server.push(Answer::text("Hello to you."));
    let mut terminal = project.open(&[]);
    terminal.prompt("hello");
    terminal.wait_for("Hello to you.");
    terminal
}

/// Types a line. The line end is sent separately, because text and line end together would be treated as a paste.
fn types(terminal: &mut Terminal, line: &str) {
    terminal.send(line);
    terminal.send("\n");
}

#[test]
fn findings_are_listed_opened_at_their_line_and_sent_as_a_task() {
    let server = Server::new([]);
    let project = repository(&server);
    let mut terminal = open(&project, &server);
    server.push(response(&[finding("a.txt", 2, "low"), finding("a.txt", 1, "high"), finding("b.txt", 1, "critical")]));
    terminal.prompt("/review");
    let screen = terminal.wait_for("Findings · 2");
    let place = |words: &str| screen.find(words).unwrap_or_else(|| panic!("{words}\n{screen}"));
    assert!(place("a.txt:1") < place("a.txt:2"), "the strongest first\n{screen}");
    assert!(screen.contains("dropped: 1 finding") && screen.contains("enter open · ctrl+f draft fix"), "{screen}");
    terminal.send("\x1b[B");
    terminal.wait_for("❯ low");
    terminal.enter();
    let screen = terminal.wait_for("finding 2 of 2");
    assert!(screen.contains("wrong in a.txt") && screen.contains("Because."), "{screen}");
    assert!(screen.lines().any(|row| row.starts_with('❯') && row.contains("+2")), "the line is marked\n{screen}");
    terminal.send("f");
    terminal.wait_for("Fix this low finding of a review in a.txt:2: wrong in a.txt");
    server.push(Answer::text("It is fixed."));
    terminal.enter();
    terminal.wait_for("It is fixed.");
    let last = server.request(2).messages();
    assert!(last.contains("Fix this low finding") && last.contains("Because."), "{last}");
}

#[test]
fn a_review_is_not_part_of_the_conversation_even_after_a_resume() {
    let server = Server::new([]);
    let project = repository(&server);
    let mut terminal = open(&project, &server);
    server.push(Answer::call("c1", "WriteFile", json!({"path": "pwned.txt", "content": "x"})));
    server.push(response(&[finding("a.txt", 2, "high")]));
    terminal.prompt("/review");
    terminal.wait_for("Findings · 1");
    let review = server.request(1).messages();
    assert!(!review.contains("hello") && review.contains("+2"), "a clean context: {review}");
    assert!(!project.exists("pwned.txt"), "read-only");
    terminal.send("\x1b");
    terminal.wait_until_gone("Findings · 1");
    server.push(Answer::text("Again."));
    terminal.prompt("and now?");
    terminal.wait_for("Again.");
    assert_eq!(messages(&server, 3), messages(&server, 0) + 2, "one response and one prompt more");
    assert!(!server.request(3).messages().contains("wrong in a.txt"));
    assert!(terminal.quit().success());
    let sessions = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "the session of the review is not saved: {sessions}");
    let mut terminal = project.open(&["-c"]);
    let screen = terminal.wait_for("Again.");
    assert!(screen.contains("Hello to you.") && !screen.contains("wrong in a.txt"), "{screen}");
    terminal.prompt("/findings");
    terminal.wait_for("no review yet; /review starts one");
    server.push(Answer::text("Once more."));
    terminal.prompt("still here?");
    terminal.wait_for("Once more.");
    assert_eq!(messages(&server, 4), messages(&server, 3) + 2);
}

#[test]
fn review_usage_counts_towards_session_totals_and_budget() {
    let server = Server::new([]);
    let project = repository(&server);
    let mut terminal = open(&project, &server);
    server.push(response(&[]));
    terminal.prompt("/review");
    terminal.wait_for("review of uncommitted changes: no findings");
    assert!(terminal.quit().success());
    let usage = project.aye(&["usage", "--json"]).exits(0).json();
    assert_eq!(usage["total"]["inputTokens"], 2 * 1200, "{usage}");
    // A session without a prompt, which is not the latest session to continue.
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    server.push(response(&[]));
    terminal.prompt("/review");
    terminal.wait_for("review of uncommitted changes: no findings");
    assert!(terminal.quit().success());
    let usage = project.aye(&["usage", "--json"]).exits(0).json();
    assert_eq!((&usage["total"]["inputTokens"], &usage["total"]["tasks"]), (&json!(3 * 1200), &json!(1)), "{usage}");
    server.push(Answer::text("Again."));
    project.aye(&["exec", "-c", "and now"]).exits(0);
    assert!(server.request(3).messages().contains("Hello to you."), "the session with a prompt continues");
    let server = Server::new([]);
    let project = repository(&server);
    let mut terminal = project.open(&["-m", "anthropic/claude-sonnet-5", "--max-budget-usd", "0.0001"]);
    terminal.wait_for("Try:");
    terminal.prompt("/review");
    let screen = terminal.wait_for("the review failed");
    assert!(screen.contains("budget"), "{screen}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_review_uses_the_price_that_the_session_assumes() {
    let server = Server::new([]);
    let project = repository(&server).config("[budget]\nsession_cost_usd = 5\n");
    let mut terminal = project.open(&["-m", "anthropic/scripted"]);
    terminal.wait_for("Try:");
    terminal.prompt("/review");
    let screen = terminal.wait_for("the review failed");
    assert!(screen.contains("/budget price"), "{screen}");
    assert!(server.requests().is_empty());
    terminal.prompt("/budget price 3,15");
    terminal.wait_for("an assumed price");
    server.push(response(&[]));
    terminal.prompt("/review");
    let screen = terminal.wait_for("review of uncommitted changes: no findings");
    let result = screen.lines().find(|row| row.contains("no findings")).unwrap();
    assert!(result.contains("~$"), "the cost is an estimate\n{screen}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_review_scope_uses_the_command_line_syntax() {
    let server = Server::new([response(&[]), response(&[])]);
    let project = repository(&server).file("b.txt", "staged\n");
    git(&project, &["add", "b.txt"]);
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("/review --staged");
    terminal.wait_for("review of staged changes: no findings");
    assert!(server.request(0).messages().contains("+staged"));
    terminal.prompt("/review --commit HEAD");
    terminal.wait_for("review of commit HEAD: no findings");
    terminal.prompt("/review --base a..b");
    terminal.wait_for("must be a branch, tag or commit");
    terminal.send("\x03");
    terminal.prompt("/review --base missing");
    terminal.wait_for("cannot read the changes");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_failed_review_is_reported_with_reason_and_hint() {
    let server = Server::new([]);
    // This project is outside the repository of aye, which contains the other test projects.
    let project = Project::with(&server).file("a.txt", "a\n");
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("/review");
    let screen = terminal.wait_for("not a git repository");
    assert!(screen.contains("hint: run `git init`") && !screen.contains("usage:"), "{screen}");
    assert!(terminal.quit().success());
    let server = Server::new([Answer::error(401, "authentication_error", "invalid x-api-key")]);
    let project = repository(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("/review");
    let screen = terminal.wait_for("the review failed");
    assert!(screen.contains("invalid x-api-key") && screen.contains("hint:"), "{screen}");
    for text in ["Looks good.", "Really."] {
        server.push(Answer::text(text));
    }
    terminal.prompt("/review");
    let screen = terminal.wait_for("does not match the format for findings");
    assert!(screen.contains("hint: run /review again"), "{screen}");
    assert_eq!(server.requests().len(), 3, "one correction");
    server.push(response(&[finding("a.txt", 2, "low")]));
    terminal.prompt("/review");
    terminal.wait_for("Findings · 1");
}

#[test]
fn a_review_is_stopped_with_escape_and_only_one_runs() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Looking").and_wait(&gate)]);
    let project = repository(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("/review");
    terminal.wait_for("Reviewing uncommitted changes: 1 file (+1 −1)");
    assert!(wait_until(TIMEOUT, || server.requests().len() == 1));
    terminal.prompt("/review --staged");
    terminal.wait_for("a review is running");
    terminal.send("\x03");
    terminal.wait_for("Try:");
    terminal.send("\x1b");
    terminal.wait_for("review stopped");
    terminal.wait_until_gone("the review");
    gate.open();
    assert_eq!(server.requests().len(), 1);
    server.push(Answer::text("Hello to you."));
    terminal.prompt("hello");
    terminal.wait_for("Hello to you.");
    assert!(terminal.quit().success());
    let left = project.directory("data").join("ephemeral").read_dir().into_iter().flatten().flatten();
    assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0, "the data of the review is removed");
}

#[test]
fn a_task_and_a_review_run_in_parallel() {
    let gate = Gate::default();
    let server = Server::with_responder({
        let gate = gate.clone();
        move |request| {
            if request.messages().contains("<diff>") {
                return Answer::text("")
                    .and_wait(&gate)
                    .and(&json!({"summary": "", "findings": [finding("a.txt", 2, "low")]}).to_string());
            }
            Answer::text("Hello to you.")
        }
    });
    let project = repository(&server);
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("/review");
    terminal.wait_for("Reviewing uncommitted changes");
    terminal.prompt("hello");
    terminal.wait_for("Hello to you.");
    gate.open();
    terminal.wait_for("Findings · 1");
}

#[test]
fn in_plain_mode_findings_are_printed_and_drafted_by_number() {
    let server = Server::new([response(&[finding("a.txt", 2, "high")])]);
    let project = repository(&server);
    let output = project.aye_with_input(&["--plain"], "/review\n").exits(0);
    for words in ["reviewing uncommitted changes: 1 file", "1. a.txt:2: high, confidence high: wrong in a.txt", "    Because."] {
        assert!(output.stdout.contains(words), "{words}\n{}", output.stdout);
    }
    let project = project.env("TERM", "dumb");
    let mut terminal = project.open_sized(&[], 100, 60);
    server.push(response(&[finding("a.txt", 2, "high")]));
    server.push(Answer::text("It is fixed."));
    terminal.wait_for("You:");
    types(&mut terminal, "/review");
    terminal.wait_for("1. a.txt:2: high");
    types(&mut terminal, "/findings 1");
    terminal.wait_for("+2");
    types(&mut terminal, "/findings fix 1");
    terminal.wait_for("the task is in the draft");
    types(&mut terminal, "/send");
    terminal.wait_for("aye: It is fixed.");
    assert!(server.request(2).messages().contains("Fix this high finding of a review in a.txt:2"));
}

#[test]
fn an_editor_gets_the_findings_as_the_response_to_the_command() {
    let server = Server::new([response(&[finding("a.txt", 2, "high")])]);
    let project = repository(&server);
    let mut editor = Editor::start(&project, &[]);
    let session = editor.new_session(&project.path(""));
    assert_eq!(editor.prompt(&session, "/review --staged"), "end_turn");
    assert!(editor.text(None).contains("nothing to review: there are no staged changes"), "{}", editor.text(None));
    assert_eq!(editor.prompt(&session, "/review"), "end_turn");
    let text = editor.text(None);
    assert!(text.contains("Review of uncommitted changes: 1 finding (1 high)") && text.contains("`a.txt:2`"), "{text}");
    assert_eq!(editor.prompt(&session, "/review now"), "end_turn");
    assert!(editor.text(None).contains("unexpected argument 'now' found"), "{}", editor.text(None));
}

#[test]
fn without_a_screen_the_review_command_is_suggested() {
    let server = Server::new([]);
    let project = repository(&server);
    project.aye(&["exec", "/review"]).exits(2).says(&["run `aye review` to review changes"]);
    assert!(server.requests().is_empty());
}
