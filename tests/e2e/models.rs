//! List of models: the built-in catalogue, entries of the user, and models that servers report.

use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};

fn of(answer: &Value, name: &str) -> Value {
    let models = answer["models"].as_array().unwrap();
    models.iter().find(|model| model["name"] == name).unwrap_or_else(|| panic!("{name} is not in {answer}")).clone()
}

#[test]
fn the_list_starts_with_usable_models_and_shows_requirements_of_the_others() {
    let project =
        Project::empty().env("DEEPSEEK_API_KEY", "sk-deepseek-scripted").config("[model]\ndefault = 'deepseek/deepseek-chat'\n");
    let answer = project.aye(&["models", "--json"]).exits(0).json();
    assert_eq!(answer["models"][0]["name"], "deepseek/deepseek-chat");
    assert_eq!(answer["models"][0].get("lacks"), None);
    assert_eq!(of(&answer, "anthropic/claude-sonnet-5")["lacks"], "set ANTHROPIC_API_KEY or run `aye auth login anthropic`");
    let table = project.aye(&["models", "SONNET-4-5"]).exits(0).stdout;
    assert!(table.contains("anthropic/claude-sonnet-4-5") && table.contains("200k") && !table.contains("gpt"), "{table}");
}

#[test]
fn servers_are_queried_only_on_request_and_unreachable_ones_are_reported() {
    let told = json!({"data": [
        {"id": "vendor/new", "context_length": 65536, "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
        {"id": "bad\u{1b}[2Jname", "context_length": 1}]});
    let server = Server::new([]).with_model_list(&told);
    let config = "[providers.gone]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:9/v1'\n";
    let project = Project::with_chat(&server).config(config);
    project.aye(&["models", "--json"]).exits(0);
    assert_eq!(server.lists().len(), 0);
    let answer = project.aye(&["models", "--ask", "--json"]).exits(0).json();
    let new = of(&answer, "openai-chat/vendor/new");
    assert_eq!((&new["contextWindow"], &new["price"]["output"]), (&json!(65536), &json!(2.0)));
    assert_eq!(server.lists()[0].header("authorization"), Some("Bearer sk-scripted"));
    assert!(answer["notices"].to_string().contains("gone: "), "{}", answer["notices"]);
    assert!(!answer.to_string().contains("[2J"), "{answer}");
}

#[test]
fn a_user_model_list_is_used_and_mistakes_in_it_are_reported() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let list = project.directory("config").join("models.toml");
    std::fs::write(&list, "[[models]]\nname = 'anthropic/mine'\ncontext_window = 12_000\n").unwrap();
    let answer = project.aye(&["models", "--json"]).exits(0).json();
    assert_eq!(of(&answer, "anthropic/mine")["contextWindow"], 12_000);
    std::fs::write(&list, "[[models]]\nname = 'anthropic/mine'\ncontext_windw = 12_000\n").unwrap();
    for arguments in [["exec", "hello"].as_slice(), &["models"]] {
        project.aye(arguments).exits(2).points_at("models.toml", 3).says(&["did you mean `context_window`?"]);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn an_unknown_model_name_is_reported_with_the_closest_match() {
    let server = Server::new([Answer::error(404, "not_found_error", "model: claude-sonet-5")]);
    let project = Project::with(&server).with_quick_retries();
    project
        .aye(&["exec", "-m", "anthropic/claude-sonet-5", "hello"])
        .exits(1)
        .says(&["did you mean `anthropic/claude-sonnet-5`?"]);
}

#[test]
fn an_unlisted_model_is_looked_up_only_once() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")])
        .with_model_list(&json!({"data": [{"id": "scripted", "max_model_len": 32768}]}));
    let project = Project::with_chat(&server);
    project.aye(&["exec", "-m", "openai-chat/scripted", "hello"]).exits(0);
    project.aye(&["exec", "-m", "openai-chat/gpt-5.5", "hello"]).exits(0);
    assert!(server.lists().len() <= 1, "a listed model is not asked for");
}

#[test]
fn an_unsupported_effort_is_replaced_by_the_nearest_and_reported_once() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = Project::with(&server);
    let output = project.aye(&["exec", "--effort", "max", "-m", "anthropic/claude-opus-5", "hi"]).exits(0);
    assert!(!output.stderr.contains("effort"), "{}", output.stderr);
    assert_eq!(server.request(0).body["output_config"]["effort"], "max");
    let told = "anthropic/claude-opus-4-6 does not support effort xhigh; using high, the nearest level";
    let output = project.aye(&["exec", "--effort", "xhigh", "-m", "anthropic/claude-opus-4-6", "hi"]).exits(0).says(&[told]);
    assert_eq!(output.stderr.matches(told).count(), 1, "{}", output.stderr);
    assert_eq!(server.request(1).body["output_config"]["effort"], "high");
    let output = project.aye(&["exec", "--json", "--effort", "none", "-m", "anthropic/claude-opus-5-5", "hi"]).exits(0);
    assert!(output.events().all("notice").iter().any(|notice| notice["message"].as_str().unwrap().contains("using low")));
    assert_eq!(server.request(2).body["output_config"]["effort"], "low");
    project.aye(&["exec", "--set", "model.effort=none", "-m", "anthropic/claude-sonnet-5-5", "hi"]).exits(0);
    assert_eq!(server.request(3).body["thinking"], json!({"type": "between_tools"}));
    project
        .aye(&["exec", "--effort", "low", "-m", "anthropic/unheard-of", "hi"])
        .exits(0)
        .says(&["effort low; the model is not known to support it"]);
    assert_eq!(server.request(4).body.get("thinking"), None);
    project.aye(&["exec", "--effort", "huge", "hi"]).exits(2).says(&["off, minimal, low, medium, high, xhigh, max"]);
}

#[test]
fn a_rejected_request_field_is_omitted_on_retry_and_the_retry_is_reported() {
    let refusal = Answer::error(400, "invalid_request_error", "Unrecognized request argument supplied: stream_options");
    let server = Server::new([refusal, Answer::text("Hello.")]);
    let project = Project::with_chat(&server).with_quick_retries();
    let events = project.aye(&["exec", "--json", "-m", "openai-chat/scripted", "hello"]).exits(0).events();
    events.in_order(&["llm_retry", "task_completed"]);
    let retry = events.only("llm_retry").to_string();
    assert!(retry.contains("retried without `stream_options`"), "{retry}");
    assert_eq!([0, 1].map(|at| server.request(at).body.get("stream_options").is_some()), [true, false]);
}

fn only(models: &str) -> String {
    format!("schema_version = 1\nbundle_version = \"test\"\n\n[llm]\nallowed_models = {models}\n\n[capabilities.\"File.Read\"]\n")
}

/// Returns the name of the requested model.
fn asked(server: &Server) -> Value {
    server.request(0).body["model"].clone()
}

#[test]
fn without_a_flag_the_first_allowed_model_with_a_key_is_used() {
    for (models, name) in [
        ("[\"openai-chat/first\", \"anthropic/second\"]", "second"),
        ("[\"anthropic/one\", \"anthropic/two\"]", "one"),
        ("[\"anthropic/claude-haiku*\", \"anthropic/*\"]", "claude-haiku-5-5"),
        ("[\"*/claude-sonnet-4-5\"]", "claude-sonnet-4-5"),
        ("[\"*\"]", "claude-sonnet-5"),
    ] {
        let server = Server::new([Answer::text("Hello.")]);
        Project::with(&server).policy(&only(models)).aye(&["exec", "say hello"]).exits(0);
        assert_eq!(asked(&server), name, "{models}");
    }
    let project = Project::empty().env("DEEPSEEK_API_KEY", "sk-deepseek-scripted").policy(&only("[\"anthropic/*\"]"));
    let output = project.aye(&["exec", "say hello"]).exits(5);
    assert!(output.stderr.contains("`anthropic/*`") && output.stderr.contains("ANTHROPIC_API_KEY"), "{}", output.stderr);
    let output = Project::empty().env("ANTHROPIC_API_KEY", "k").policy(&only("[]")).aye(&["exec", "say hello"]).exits(2);
    assert!(output.stderr.contains("allows no model"), "{}", output.stderr);
    let project = Project::empty().env("ANTHROPIC_API_KEY", "k").policy(&only("[\"anthropic/gone-*\"]"));
    let output = project.aye(&["exec", "say hello"]).exits(2);
    assert!(output.stderr.contains("no known model matches"), "{}", output.stderr);
}

#[test]
fn a_forbidden_default_model_is_an_error_in_exec_and_a_notice_on_the_screen() {
    let server = Server::new([Answer::text("Hello.")]);
    let config = "[model]\ndefault = 'anthropic/claude-opus-5'\n";
    let project = Project::with(&server).config(config).policy(&only("[\"anthropic/allowed\"]"));
    let output = project.aye(&["exec", "say hello"]).exits(2);
    for words in ["anthropic/claude-opus-5", "[model] default", "allowed_models"] {
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    assert!(server.requests().is_empty());
    let mut terminal = project.open(&["say hello"]);
    terminal.wait_for("Hello.");
    terminal.wait_for("anthropic/allowed");
    assert_eq!(asked(&server), "allowed");
    assert!(terminal.quit().success());
}

#[test]
fn client_sessions_start_with_an_allowed_model() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).policy(&only("[\"anthropic/allowed\"]"));
    let mut client = crate::support::Rpc::start(&project, &[]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "say hello"}));
    client.event("task_completed");
    assert_eq!(asked(&server), "allowed");
}

const LIST: &str = "date = '2099-01-01'\n[[models]]\nname = 'anthropic/claude-next'\ncontext_window = 300_000\n\
    price = { input = 1, output = 2 }\nsource = 'https://lists.example/docs'\n\
    [[models]]\nname = 'openai/gpt-5'\nprice = { input = 1.25, output = 9 }\n";

/// Returns the list of models with the current UTC date.
fn list_of_today() -> String {
    LIST.replace("2099-01-01", &jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
}

#[test]
fn the_catalogue_update_shows_a_diff_and_needs_confirmation() {
    let project = Project::empty().file("list.toml", &list_of_today());
    let stored = project.directory("data").join("catalogue.toml");
    let diff = ["anthropic/claude-next: new: 300k window, $1 in, $2 out per million tokens", "output price 10 → 9"];
    let output = project.aye(&["models", "update", "list.toml", "--check"]).exits(0);
    assert!(diff.iter().all(|line| output.stdout.contains(line)), "{}", output.stdout);
    let output = project.aye(&["models", "update", "list.toml"]).exits(2);
    drop(output.says(&["nothing was changed: cannot prompt without a terminal", "--yes"]));
    assert!(!stored.exists());
    project.aye(&["models", "update", "list.toml", "--yes"]).exits(0);
    let answer = project.aye(&["models", "--json"]).exits(0).json();
    let next = of(&answer, "anthropic/claude-next");
    assert_eq!((&next["contextWindow"], &next["documentation"]), (&json!(300_000), &json!("https://lists.example/docs")));
    assert!(answer["catalogue"]["origin"].as_str().unwrap().ends_with("list.toml"), "{}", answer["catalogue"]);
    assert_eq!(of(&answer, "openai/gpt-5")["price"]["output"], 9.0);
    assert_eq!(of(&answer, "openai/gpt-6.2-sol")["verified"], "2026-11-29");
    let output = project.aye(&["models", "update", "list.toml", "--yes"]).exits(0);
    assert!(output.stdout.contains("no changes"), "{}", output.stdout);
    // A damaged file is reported and has no other effect.
    std::fs::write(&stored, "date = ").unwrap();
    project.aye(&["models"]).exits(0).says(&["using the built-in catalogue", "catalogue.toml"]);
    project.aye(&["models", "update", "list.toml", "--yes"]).exits(0);
    assert_eq!(of(&project.aye(&["models", "--json"]).exits(0).json(), "anthropic/claude-next")["contextWindow"], 300_000);
}

#[test]
fn unusable_model_lists_are_errors_and_leave_the_catalogue_unchanged() {
    let project = Project::empty()
        .file("future.toml", LIST)
        .file("old.toml", &LIST.replace("2099", "2001"))
        .file("broken.toml", "date = '2026-12-01'\n[[models]]\nname = 'x'\n");
    for (source, why) in [
        ("future.toml", "but today is"),
        ("old.toml", "older than the catalogue in use"),
        ("broken.toml", "line 3: `name`"),
        ("absent.toml", "cannot read"),
        ("http://127.0.0.1:9/list.toml", "cannot download `http://127.0.0.1:9/list.toml`"),
    ] {
        project.aye(&["models", "update", source, "--yes"]).exits(1).says(&[why]);
    }
    project.aye(&["models", "update", "http://lists.example/x.toml"]).exits(2).says(&["is not encrypted"]);
    project.aye(&["models", "update"]).exits(2).says(&["no list of models to update from", "models.catalogue_url"]);
    assert!(!project.directory("data").join("catalogue.toml").exists());
}

#[test]
fn a_list_is_downloaded_from_the_configured_url_and_the_policy_still_decides() {
    let list = json!({"openai": {"models": {"gpt-99": {"tool_call": true, "limit": {"context": 400_000, "output": 1_000},
        "cost": {"input": 1, "output": 2}}}}});
    let server = Server::new([]).with_model_list(&list);
    let url = format!("{}/models", server.url());
    let project = Project::empty()
        .config(&format!("[models]\ncatalogue_url = '{url}'\n"))
        .policy("schema_version = 1\n[llm]\nallowed_models = [\"anthropic/*\"]\n");
    let output = project.aye(&["models", "update", "--yes"]).exits(0);
    let line = "openai/gpt-99: new: 400k window, $1 in, $2 out per million tokens (not allowed by the policy)";
    assert!(output.stdout.contains(line) && output.stdout.contains("1 model is not allowed"), "{}", output.stdout);
    assert_eq!(of(&project.aye(&["models", "--json"]).exits(0).json(), "openai/gpt-99")["tools"], true);
}

/// Returns a server on which only these models respond; all others are overloaded.
fn overloaded_but(names: &'static [&'static str]) -> Server {
    Server::with_responder(move |request| {
        let model = request.body["model"].as_str().unwrap();
        if names.contains(&model) { Answer::text("Done.") } else { Answer::error(529, "overloaded_error", "Overloaded") }
    })
}

fn models_asked(server: &Server) -> Vec<String> {
    let mut names: Vec<String> =
        server.requests().iter().map(|request| request.body["model"].as_str().unwrap().to_owned()).collect();
    names.dedup();
    names
}

const FALLBACKS: &str =
    "[model]\nmain = \"anthropic/first\"\nfallback = [\"openai/unkeyed\", \"anthropic/second\", \"anthropic/third\"]\n";

#[test]
fn an_overloaded_model_is_replaced_by_the_next_usable_fallback_for_the_task() {
    let server = overloaded_but(&["third"]);
    let project = Project::with(&server).config(&format!("{FALLBACKS}[llm]\nmax_retries = 1\nretry_base_ms = 1\n"));
    let output = project.aye(&["exec", "hi"]).exits(0);
    let told = "anthropic/second is not responding";
    let output = output.says(&["cannot fall back to openai/unkeyed", "anthropic/first is not responding", told]);
    assert!(output.stderr.contains("continuing with this model"), "{}", output.stderr);
    assert_eq!(models_asked(&server), ["first", "second", "third"]);
    // The session keeps the user's model and tries it first again.
    let events = project.aye(&["exec", "--json", "-c", "again"]).exits(0).events();
    assert_eq!(events.all("model_changed").len(), 2, "first to second to third");
    assert_eq!(models_asked(&server), ["first", "second", "third", "first", "second", "third"]);
}

#[test]
fn fallbacks_forbidden_by_the_policy_are_not_used() {
    let server = overloaded_but(&["third"]);
    let project = Project::with(&server)
        .config(&format!("{FALLBACKS}[llm]\nmax_retries = 0\n"))
        .policy("schema_version = 1\n[llm]\nallowed_models = [\"anthropic/first\", \"anthropic/second\"]\n");
    project.aye(&["exec", "hi"]).exits(1).says(&["Overloaded"]);
    assert_eq!(models_asked(&server), ["first", "second"]);
}

#[test]
fn invalid_requests_are_not_sent_to_fallback_models() {
    let server = Server::with_responder(|_| Answer::error(400, "invalid_request_error", "no"));
    let project = Project::with(&server).config(FALLBACKS);
    project.aye(&["exec", "hi"]).exits(1);
    assert_eq!(models_asked(&server), ["first"]);
    let both = Project::empty().config("[model]\nmain = \"a/b\"\ndefault = \"a/c\"\n");
    both.aye(&["config", "show"]).exits(2).says(&["`model.main` is the same as `model.default`"]);
}
