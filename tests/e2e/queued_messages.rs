//! Messages typed during a task: they are shown as queued, sent with the next step, and can be retracted.

use crate::support::{Answer, Gate, Project, Server, texts};
use serde_json::json;

/// Key ctrl+l.
const MODELS: &str = "\x0c";

#[test]
fn steering_messages_are_sent_with_the_next_step_and_shown_there() {
    let gate = Gate::default();
    let read = json!({"path": "README.md"});
    let server = Server::new([
        Answer::text("Busy now").and_wait(&gate).and_call("call_1", "ReadFile", read),
        Answer::text("With tabs from now on."),
    ]);
    let project = Project::with(&server).file("README.md", "hello\n");
    let mut terminal = project.open(&[]);
    terminal.prompt("the first");
    terminal.wait_for("Busy now");
    terminal.prompt("/steer use tabs");
    terminal.wait_for("1 for the next step: use tabs");
    gate.open();
    terminal.wait_for("With tabs from now on.");
    assert_eq!(server.requests().len(), 2, "it is no task of its own");
    assert!(server.request(1).messages().contains("use tabs"));
    assert!(terminal.screen().contains("❯ use tabs"), "{}", terminal.screen());
}

#[test]
fn a_queued_message_can_be_moved_back_to_the_draft_and_is_not_sent() {
    let gate = Gate::default();
    let write = json!({"path": "new.txt", "content": "hello\n"});
    let server = Server::new([
        Answer::text("Busy now").and_wait(&gate).and_call("call_1", "WriteFile", write),
        Answer::text("It is done."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("the first");
    terminal.wait_for("Busy now");
    terminal.prompt("the second");
    terminal.wait_for("1 queued: the second");
    terminal.send("\x1b[1;3A");
    terminal.wait_for("❯ the second");
    gate.open();
    terminal.wait_for(texts::TAB_TO_REVIEW);
    terminal.send("\t");
    terminal.review("new.txt");
    // The response was withheld until the message was retracted, so the task cannot have ended earlier.
    terminal.decide('y');
    terminal.wait_for("It is done.");
    terminal.wait_for("❯ the second");
    assert_eq!(server.requests().len(), 2, "the second message is in the draft only");
    assert!(!server.request(1).messages().contains("the second"));
}

#[test]
fn a_delayed_retry_shows_its_countdown_and_r_sends_the_request_immediately() {
    let server = Server::new([
        Answer::error(429, "rate_limit_error", "too many tokens a minute").with_header("retry-after", "50"),
        Answer::text("Here I am."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("hello");
    let screen = terminal.wait_for("Rate limited by the provider: continues in 0:");
    assert!(screen.contains("too many tokens a minute") && screen.contains("attempt 1 of 3"), "{screen}");
    // After a second, the row has been visible long enough for the key to take effect.
    terminal.wait_that("the seconds are counted down", |screen| !screen.contains("0:50") && !screen.contains("0:49"));
    terminal.send("r");
    terminal.wait_for("Here I am.");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn models_can_be_chosen_from_the_list_and_models_without_a_key_prompt_for_it() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("first");
    terminal.wait_for("One.");
    terminal.send(MODELS);
    terminal.wait_for("filter:");
    terminal.wait_for("claude-haiku-4-5");
    terminal.type_text("gemini-2.5-pro", 5);
    terminal.wait_for("filter: gemini-2.5-pro");
    terminal.enter();
    terminal.wait_for("key of gemini:");
    terminal.send("\x1b");
    terminal.wait_for("filter: gemini-2.5-pro");
    terminal.send(&"\x7f".repeat("gemini-2.5-pro".len()));
    terminal.type_text("haiku-4", 5);
    terminal.wait_for("Models · 1 of");
    terminal.wait_for("❯ claude-haiku-4-5");
    terminal.enter();
    terminal.wait_for("model anthropic/claude-haiku-4-5");
    terminal.prompt("second");
    terminal.wait_for("Two.");
    let asked: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(asked[1], json!("claude-haiku-4-5"), "{asked:?}");
    assert_ne!(asked[0], asked[1]);
}

#[test]
fn a_session_pauses_at_its_budget_and_continues_when_the_budget_is_raised() {
    let read = json!({"path": "a.txt"});
    let server = Server::new([Answer::text("Reading.").and_call("call_1", "ReadFile", read), Answer::text("All read.")]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    let mut terminal = project.open(&["-m", "anthropic/claude-sonnet-5", "--max-budget-usd", "0.001"]);
    terminal.prompt("look");
    let screen = terminal.wait_for("budget reached, /budget 0.0");
    assert!(screen.contains("of its budget of $0.0") && !screen.contains("/continue to resume"), "{screen}");
    assert!(server.requests().is_empty(), "nothing is sent that would pass it");
    terminal.prompt("/budget 1");
    terminal.wait_for("All read.");
    terminal.wait_for("of $1.00 used");
}

#[test]
fn a_rejected_environment_key_can_be_replaced_and_the_task_continues() {
    let refused = Answer::error(401, "authentication_error", "invalid x-api-key");
    let server = Server::new([refused, Answer::text("Here I am.")]);
    let project = Project::with(&server).config("[auth]\nkeyring = false\n");
    let mut terminal = project.open(&[]);
    terminal.prompt("hello");
    let screen = terminal.wait_for("enter to replace it");
    assert!(screen.contains("anthropic rejected the API key (401): invalid x-api-key"), "{screen}");
    terminal.enter();
    terminal.wait_for("key of anthropic:");
    terminal.type_text("sk-ant-another", 5);
    terminal.enter();
    terminal.wait_for("model anthropic/");
    terminal.prompt("/continue");
    terminal.wait_for("Here I am.");
    let keys: Vec<_> = server.requests().iter().map(|request| request.header("x-api-key").map(ToOwned::to_owned)).collect();
    assert_eq!(keys, [Some("sk-ant-scripted".to_owned()), Some("sk-ant-another".to_owned())]);
    assert!(!terminal.screen().contains("sk-ant-another"));
}
