//! Compaction: older messages are summarized, the prompt is preserved, and the result survives `kill -9`.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, wait_until};
use serde_json::json;

/// Policy that allows reading and limits a request to 40,000 tokens.
const SMALL_WINDOW: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                            [llm]\nmax_input_tokens = 40000\n";
const SUMMARY: &str = "[Summary of the conversation so far";

/// Returns a response of about 16,000 tokens that ends with a call.
fn long(name: &str) -> Answer {
    let text = format!("{name} ").repeat(64_000 / (name.len() + 1));
    Answer::text(&text).and_call(&format!("call_{name}"), "ReadFile", json!({"path": "note.txt"}))
}

#[test]
fn a_full_context_window_is_compacted_and_the_task_continues() {
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

const SUMMARY_MODEL: &str = "[model]\nmain = 'anthropic/claude-sonnet-5'\nsummary = 'anthropic/claude-haiku-5-5'\n";

/// Returns the model of each request.
fn models_asked(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| request.body["model"].as_str().unwrap().to_owned()).collect()
}

/// Returns a server on which a task fills the context window, and requests to `model` get the response `answer`.
fn with_answer_of(model: &'static str, answer: fn() -> Answer) -> Server {
    let steps = std::sync::atomic::AtomicUsize::new(0);
    Server::with_responder(move |request| {
        if request.body["model"] == model {
            return answer();
        }
        if request.messages().contains("Write that summary now") {
            return Answer::text("The model in use read the note.");
        }
        match steps.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => long("first-words"),
            1 => long("second-words"),
            _ => Answer::text("All done."),
        }
    })
}

#[test]
fn summary_tokens_are_charged_at_the_price_of_the_summary_model() {
    let server = with_answer_of("claude-haiku-5-5", || Answer::text("The note was read."));
    let project = Project::with(&server).config(SUMMARY_MODEL).policy(SMALL_WINDOW).file("note.txt", "remember\n");
    let events = project.aye(&["exec", "--json", "read it twice, please"]).exits(0).events();
    assert_eq!(models_asked(&server), ["claude-sonnet-5", "claude-sonnet-5", "claude-haiku-5-5", "claude-sonnet-5"]);
    let compacted = events.only("context_compacted");
    assert_eq!(
        (&compacted["model"], &compacted["summary"]),
        (&json!("anthropic/claude-haiku-5-5"), &json!("The note was read."))
    );
    assert!(server.request(3).messages().contains("The note was read.") && !server.request(3).messages().contains("first-words"));
    let started: Vec<_> = events.all("llm_request_started").iter().map(|event| event["model"].clone()).collect();
    assert_eq!(started[2], "anthropic/claude-haiku-5-5");
    // The catalogue gives the price: 1,200 input tokens and 20 output tokens.
    let models = project.aye(&["models", "--json", "claude-haiku-5-5"]).exits(0).json();
    let price = &models["models"][0]["price"];
    let cost = (1_200.0 * price["input"].as_f64().unwrap() + 20.0 * price["output"].as_f64().unwrap()) / 1e6;
    let counted = events.all("llm_request_completed")[2]["costUsd"].as_f64().unwrap();
    assert!((counted - cost).abs() < 1e-9, "{counted} {cost}");
    let report = project.aye(&["usage", "--json", "--by", "model"]).exits(0).json();
    let rows = report["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
    assert_eq!(of("anthropic/claude-haiku-5-5")["requests"], 1);
    assert!((of("anthropic/claude-haiku-5-5")["costUsd"].as_f64().unwrap() - cost).abs() < 1e-9, "{report}");
    assert_eq!(of("anthropic/claude-sonnet-5")["requests"], 3);
}

#[test]
fn if_the_summary_model_fails_the_current_model_writes_the_summary() {
    let overloaded = || Answer::error(529, "overloaded_error", "Overloaded");
    let refused = || Answer::error(400, "invalid_request_error", "no");
    for (answer, asked) in [(overloaded as fn() -> Answer, 2), (refused, 1)] {
        let server = with_answer_of("claude-haiku-5-5", answer);
        let config = format!("{SUMMARY_MODEL}[llm]\nmax_retries = 1\nretry_base_ms = 1\n");
        let project = Project::with(&server).config(&config).policy(SMALL_WINDOW).file("note.txt", "remember\n");
        let events = project.aye(&["exec", "--json", "read it twice, please"]).exits(0).events();
        let told = events.all("notice").iter().map(ToString::to_string).collect::<String>();
        let expected = "anthropic/claude-haiku-5-5 cannot write the summary: ";
        assert!(told.contains(expected) && told.contains("anthropic/claude-sonnet-5 writes it"), "{told}");
        assert_eq!(events.only("context_compacted")["summary"], "The model in use read the note.");
        assert_eq!(models_asked(&server).iter().filter(|model| *model == "claude-haiku-5-5").count(), asked);
    }
    // A missing key and an unknown provider are reported at startup.
    for (summary, why) in [("openai/gpt-5.5", "OPENAI_API_KEY"), ("nobody/x", "nobody")] {
        let server = with_answer_of("none", || Answer::text("never"));
        let config = format!("[model]\nmain = 'anthropic/claude-sonnet-5'\nsmall = '{summary}'\n");
        let project = Project::with(&server).config(&config).policy(SMALL_WINDOW).file("note.txt", "remember\n");
        let output = project.aye(&["exec", "read it twice, please"]).exits(0);
        let start = format!("cannot use `{summary}` ([model] small in config.toml)");
        drop(output.says(&[&start, why, "The session's model writes the summaries instead."]));
        assert_eq!(models_asked(&server), vec!["claude-sonnet-5"; 4]);
    }
}

#[test]
fn a_forbidden_summary_model_is_an_error_in_exec_and_a_notice_on_the_screen() {
    let policy = format!("{SMALL_WINDOW}allowed_models = [\"anthropic/claude-sonnet-5\"]\n");
    let server = with_answer_of("claude-haiku-5-5", || Answer::text("never"));
    let project = Project::with(&server).config(SUMMARY_MODEL).policy(&policy).file("note.txt", "remember\n");
    let output = project.aye(&["exec", "read it twice, please"]).exits(2);
    drop(output.says(&["anthropic/claude-haiku-5-5", "[model] summary", "allowed_models"]));
    assert!(server.requests().is_empty());
    let told = project.aye(&["doctor"]).stdout;
    assert!(told.contains("the policy does not allow `anthropic/claude-haiku-5-5`"), "{told}");
    let mut terminal = project.open_sized(&["read it twice, please"], 120, 40);
    terminal.wait_for("The session's model writes the summaries instead.");
    terminal.wait_for("All done.");
    assert_eq!(models_asked(&server), vec!["claude-sonnet-5"; 4]);
    assert!(terminal.quit().success());
}

#[test]
fn the_status_names_the_model_for_summaries_and_its_key_is_checked() {
    let server = Server::new([]);
    let project = Project::with(&server).config(SUMMARY_MODEL);
    let told = project.aye(&["doctor"]).stdout;
    let row = told.lines().find(|line| line.contains("summaries ")).unwrap_or_else(|| panic!("{told}"));
    assert!(row.contains("anthropic/claude-haiku-5-5, API key from ANTHROPIC_API_KEY"), "{row}");
    let shown = project.aye(&["config", "show"]).exits(0).stdout;
    assert!(shown.contains("model.summary = \"anthropic/claude-haiku-5-5\""), "{shown}");
    let mut terminal = project.open(&[]);
    terminal.prompt("/status");
    let screen = terminal.wait_for("summaries");
    assert!(screen.contains("anthropic/claude-haiku-5-5"), "{screen}");
}

#[test]
fn an_overloaded_model_is_replaced_by_its_fallback_for_a_summary() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::with_responder(move |request| {
        let is_summary = request.messages().contains("Write that summary now");
        if request.body["model"] == "second" {
            return Answer::text(if is_summary { "The note was read." } else { "All done." });
        }
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => long("first-words"),
            1 => long("second-words"),
            _ => Answer::error(529, "overloaded_error", "Overloaded"),
        }
    });
    let config = "[model]\nmain = 'anthropic/first'\nfallback = ['anthropic/second']\n[llm]\nmax_retries = 0\n";
    let project = Project::with(&server).config(config).policy(SMALL_WINDOW).file("note.txt", "remember\n");
    let events = project.aye(&["exec", "--json", "read it twice, please"]).exits(0).events();
    events.in_order(&["compaction_started", "model_changed", "context_compacted", "task_completed"]);
    assert_eq!(models_asked(&server), ["first", "first", "first", "second", "second"]);
}

#[test]
fn a_session_killed_after_compaction_continues_with_the_summary() {
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
fn a_conversation_rejected_as_too_long_is_compacted_and_resent_once() {
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
