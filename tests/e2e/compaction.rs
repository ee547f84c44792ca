//! Compaction: older messages are summarized, the request stays, and all of it survives `kill -9`.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, wait_until};
use serde_json::json;

/// A policy that allows reading, with this limit on the tokens of a request.
const SMALL_WINDOW: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                            [llm]\nmax_input_tokens = 40000\n";
const SUMMARY: &str = "[Summary of the conversation so far";

/// A response of about 16,000 tokens with a call.
fn long(name: &str) -> Answer {
    let text = format!("{name} ").repeat(64_000 / (name.len() + 1));
    Answer::text(&text).and_call(&format!("call_{name}"), "ReadFile", json!({"path": "note.txt"}))
}

#[test]
fn a_full_window_is_summed_up_and_the_task_goes_on() {
    let server =
        Server::new([long("first-words"), long("second-words"), Answer::text("The note was read."), Answer::text("All done.")]);
    let project = Project::with(&server).policy(SMALL_WINDOW).file("note.txt", "remember\n");
    let events = project.aye(&["exec", "--json", "read it twice, please"]).exits(0).events();
    events.in_order(&["compaction_started", "context_compacted", "task_completed"]);
    let compacted = events.only("context_compacted");
    assert_eq!((&compacted["trigger"], &compacted["summary"]), (&json!("threshold"), &json!("The note was read.")));
    assert!(compacted["tokensAfter"].as_u64() < compacted["tokensBefore"].as_u64(), "{compacted}");
    let asked = server.request(2);
    assert!(asked.messages().contains("Write that summary now") && !asked.messages().contains("second-words"));
    assert_eq!(asked.body["tools"], server.request(1).body["tools"], "what is cached is sent again as it was");
    let next = server.request(3);
    assert!(next.messages().contains(SUMMARY) && next.messages().contains("The note was read."));
    assert!(next.messages().contains("read it twice, please") && next.messages().contains("note.txt"));
    assert!(!next.messages().contains("first-words") && next.messages().contains("second-words"));
    assert_eq!(next.tool_results().len(), 1);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_session_killed_right_after_a_compaction_goes_on_with_the_summary() {
    let gate = Gate::default();
    let server = Server::new([
        long("first-words"),
        long("second-words"),
        Answer::text("The note was read."),
        Answer::empty().and_wait(&gate),
        Answer::text("All done."),
    ]);
    let project = Project::with(&server).policy(SMALL_WINDOW).file("note.txt", "remember\n");
    let running = project.start(&["exec", "--json", "read it twice, please"]);
    assert!(wait_until(TIMEOUT, || server.requests().len() == 4), "it was not compacted");
    running.kill();
    gate.open();
    let events = project.aye(&["exec", "--json", "-c"]).exits(0).events();
    assert!(events.all("compaction_started").is_empty());
    let next = server.request(4);
    assert!(next.messages().contains(SUMMARY) && !next.messages().contains("first-words"));
    assert_eq!(next.body["messages"], server.request(3).body["messages"], "it is the same thread");
}

#[test]
fn a_conversation_that_the_provider_finds_too_long_is_summed_up_and_sent_once_more() {
    let too_long = || Answer::error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    let server =
        Server::new([long("first-words"), long("second-words"), too_long(), Answer::text("The note was read."), too_long()]);
    let project = Project::with(&server).file("note.txt", "remember\n");
    let events = project.aye(&["exec", "--json", "read it twice, please"]).events();
    assert_eq!(events.only("compaction_started")["trigger"], json!("too_long"));
    let failed = events.only("task_failed");
    assert_eq!(failed["kind"], json!("context_too_long"));
    assert!(failed["hint"].as_str().unwrap().contains("larger context window"), "{failed}");
    assert_eq!(server.requests().len(), 5);
}
