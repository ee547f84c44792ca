//! Budgets, which are checked before each request and counted across runs, and the model of a session.

use crate::support::{Answer, Events, Gate, Project, Server, Terminal, texts};
use serde_json::json;

/// Model that costs two dollars per million input tokens and ten dollars per million output tokens.
const PRICED: &str = "anthropic/claude-sonnet-5";
/// Cost of a response of the scripted server in US dollars: 1,200 input tokens and 20 output tokens.
const ANSWER_USD: f64 = 0.0026;

/// Returns the responses of a task with this number of steps, each of which is different.
fn steps(count: usize) -> Vec<Answer> {
    let step = |number: usize| Answer::call(&format!("call_{number}"), "ReadFile", json!({"path": "a.txt", "offset": number}));
    (1..=count).map(step).collect()
}

#[track_caller]
fn session_cost(events: &Events) -> f64 {
    events.only("session_completed")["costUsd"].as_f64().unwrap()
}

fn is_near(cost: f64, answers: usize) -> bool {
    (cost - answers as f64 * ANSWER_USD).abs() < 1e-9
}

#[test]
fn requests_that_would_exceed_the_policy_budget_are_not_sent() {
    let server = Server::new([Answer::text("never")]);
    let policy = "schema_version = 1\n[llm]\nmax_session_cost_usd = 0.0001\n[capabilities.\"File.Read\"]\n";
    let project = Project::with(&server).policy(policy);
    let events = project.aye(&["exec", "--json", "-m", PRICED, "look"]).exits(4).events();
    let failed = events.only("task_failed");
    assert_eq!(failed["kind"], "budget_exceeded");
    assert!(failed["message"].as_str().unwrap().starts_with("LLM_BUDGET_EXCEEDED"), "{failed}");
    let hint = failed["hint"].as_str().unwrap();
    assert!(hint.contains("max_session_cost_usd") && hint.contains("policy.toml:3"), "{hint}");
    assert_eq!(server.requests().len(), 0);
    // A flag cannot raise the budget of the policy.
    project.aye(&["exec", "-m", PRICED, "--max-budget-usd", "50", "look"]).exits(4);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_budget_stops_a_task_between_steps_and_a_higher_one_continues_it() {
    let server = Server::new(steps(40));
    let project = Project::with(&server).file("a.txt", &"line\n".repeat(60));
    let events = project.aye(&["exec", "--json", "-m", PRICED, "--max-budget-usd", "0.06", "loop"]).exits(4).events();
    let asked = server.requests().len();
    assert!((3..40).contains(&asked), "{asked} requests");
    assert_eq!(events.all("step_completed").len(), asked, "each step is finished");
    assert_eq!(events.all("budget_approaching").len().min(1), usize::from(asked as f64 * ANSWER_USD >= 0.048));
    let cost = session_cost(&events);
    assert!(is_near(cost, asked) && cost <= 0.06, "{cost} for {asked}");
    // A larger budget continues the same task.
    let more = project.aye(&["exec", "--json", "-c", "--max-budget-usd", "0.08"]).exits(4).events();
    assert_eq!(more.only("task_failed")["kind"], "budget_exceeded");
    assert!(server.requests().len() > asked && is_near(session_cost(&more), server.requests().len()), "the sum goes on");
}

#[test]
fn recorded_spending_survives_kill_9() {
    let gate = Gate::default();
    let server = Server::new([
        Answer::text("One."),
        Answer::call("call_1", "ReadFile", json!({"path": "a.txt"})),
        Answer::text("Half").and_wait(&gate),
        Answer::text("All of it."),
    ]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    let first = project.aye(&["exec", "--json", "-m", PRICED, "one"]).exits(0).events();
    assert!(is_near(session_cost(&first), 1));
    assert!(is_near(first.only("task_completed")["costUsd"].as_f64().unwrap(), 1));
    let running = project.start(&["exec", "-c", "two"]);
    server.request(2);
    running.kill();
    gate.open();
    let last = project.aye(&["exec", "--json", "-c"]).exits(0).events();
    assert!(is_near(session_cost(&last), 3), "{}", session_cost(&last));
    // Recorded spending reduces the remaining budget.
    let server_asked = server.requests().len();
    project.aye(&["exec", "-c", "--max-budget-usd", "0.007", "three"]).exits(4);
    assert_eq!(server.requests().len(), server_asked);
}

#[test]
fn a_cost_limit_stops_models_with_unknown_prices() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).config("[budget]\nsession_cost_usd = 5\n");
    let output = project.aye(&["exec", "-m", "anthropic/scripted", "hi"]).exits(4);
    let output = output.says(&["config.toml:2", "the price of `anthropic/scripted` is unknown", "models.toml"]);
    drop(output);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn an_assumed_price_applies_to_the_budget_in_continued_sessions() {
    let server = Server::with_responder(|_| Answer::text("Hello."));
    let project = Project::with(&server).config("[budget]\nsession_cost_usd = 5\n");
    let exec = |more: &[&str]| project.aye(&[&["exec", "--json"], more, &["-m", "anthropic/scripted", "hi"]].concat());
    let failed = exec(&[]).exits(4).events().only("task_failed").clone();
    assert_eq!(failed["remedy"]["action"], "assume_price", "{failed}");
    project.aye(&["exec", "-m", "anthropic/scripted", "hi"]).exits(4).says(&["--assume-price INPUT,OUTPUT"]);
    assert_eq!(server.requests().len(), 0);
    let events = exec(&["--assume-price", "1000,2000"]).exits(0).events();
    let first = session_cost(&events);
    assert!(first > 0.0 && first < 5.0, "{first}");
    assert_eq!(events.only("llm_request_completed")["estimated"], true, "the price is a guess");
    // The session stores the assumed price.
    let events = project.aye(&["exec", "--json", "-c", "again"]).exits(0).events();
    assert!(session_cost(&events) > first);
    // A price that is too high exhausts the budget.
    let asked = server.requests().len();
    project.aye(&["exec", "-c", "--assume-price", "100000,100000", "again"]).exits(4).says(&["budget of $5.00"]);
    assert_eq!(server.requests().len(), asked);
    for price in ["3", "3,x", "-1,2"] {
        project.aye(&["exec", &format!("--assume-price={price}"), "hi"]).exits(2).says(&["such as `3,15`"]);
    }
    project.aye(&["exec", "--set", "budget.assumed_price=3", "hi"]).exits(2).says(&["input and output, such as"]);
}

#[test]
fn the_screen_requests_an_unknown_price_and_the_task_continues() {
    let server = Server::new([Answer::text("At last."), Answer::text("Again.")]);
    let project = Project::with(&server).config("[budget]\nsession_cost_usd = 5\n");
    let mut terminal = project.open(&["-m", "anthropic/scripted"]);
    terminal.prompt("look");
    let screen = terminal.wait_for("input,output:");
    assert!(screen.contains("The price of anthropic/scripted is unknown"), "{screen}");
    assert!(screen.contains("to enforce the budget of $5.00"), "{screen}");
    type_price(&mut terminal, "three");
    terminal.wait_for("`three` is not a price");
    assert!(server.requests().is_empty());
    terminal.send("\x15");
    type_price(&mut terminal, "3,15");
    let screen = terminal.wait_for("At last.");
    assert!(screen.contains("an assumed price") && !screen.contains("input,output:"), "{screen}");
    assert_eq!(server.requests().len(), 1);
    assert!(terminal.quit().success());
    // The session stores the answer.
    project.aye(&["exec", "-c", "again"]).exits(0);
}

#[test]
fn without_an_answer_the_task_stays_paused_and_the_command_continues_it() {
    let server = Server::new([Answer::text("At last.")]);
    let project = Project::with(&server).config("[budget]\nsession_cost_usd = 5\n");
    let mut terminal = project.open(&["-m", "anthropic/scripted"]);
    terminal.prompt("look");
    terminal.wait_for("input,output:");
    Terminal::react();
    terminal.send("\x1b");
    terminal.wait_until_gone("input,output:");
    terminal.wait_for("paused: price unknown");
    terminal.prompt("/budget price 3,15");
    terminal.wait_for("At last.");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_price_of_the_same_model_at_another_provider_is_suggested() {
    let server = Server::new([Answer::text("At last.")]);
    let config = format!(
        "[budget]\nsession_cost_usd = 5\n[providers.mine]\napi = 'anthropic'\nbase_url = '{}'\napi_key_env = 'ANTHROPIC_API_KEY'\n",
        server.url()
    );
    let project = Project::with(&server).config(&config);
    let mut terminal = project.open(&["-m", "mine/claude-sonnet-5"]);
    terminal.prompt("look");
    let screen = terminal.wait_for("2,10 is the price of anthropic/claude-sonnet-5");
    assert!(screen.contains("input,output: 2,10"), "{screen}");
    Terminal::react();
    terminal.send("\r");
    terminal.wait_for("At last.");
    assert_eq!(server.requests().len(), 1);
}

/// Types a price into the dialog and confirms it.
fn type_price(terminal: &mut Terminal, price: &str) {
    Terminal::react();
    terminal.type_text(price, 2);
    terminal.wait_for(&format!("input,output: {price}"));
    terminal.enter();
}

#[test]
fn a_session_uses_the_last_chosen_model() {
    let server = Server::new((0..4).map(|number| Answer::text(&format!("Answer {number}."))));
    let project = Project::with(&server);
    project.aye(&["exec", "-m", "anthropic/first", "one"]).exits(0);
    let events = project.aye(&["exec", "--json", "-c", "-m", "anthropic/second", "two"]).exits(0).events();
    let changed = events.only("model_changed");
    assert!(changed["message"].as_str().unwrap().contains("; was anthropic/first"), "{changed}");
    let events = project.aye(&["exec", "--json", "-c", "three"]).exits(0).events();
    assert_eq!(events.all("model_changed").len(), 0);
    let models: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, [json!("first"), json!("second"), json!("second")]);
}

#[test]
fn invalid_amounts_are_rejected_with_the_expected_format() {
    let project = Project::empty();
    for (flag, words) in [
        (["--max-budget-usd", "lots"], "a number of dollars"),
        (["--max-budget-usd", "-1"], "-1"),
        (["--set", "budget.session_tokens=0"], "an integer from 1"),
        (["--set", "budget.session_cost_usd=x"], "an amount in US dollars"),
        (["--effort", "very"], "low"),
    ] {
        let output = project.aye(&["exec", flag[0], flag[1], "hi"]).exits(2);
        drop(output.says(&[words]));
    }
}

#[test]
fn a_token_limit_below_the_fixed_request_size_is_an_error_before_any_request() {
    let server = Server::new([Answer::text("never")]);
    let project =
        Project::with(&server).policy("schema_version = 1\n[llm]\nmax_input_tokens = 500\n[capabilities.\"File.Read\"]\n");
    let events = project.aye(&["exec", "--json", "hello"]).exits(1).events();
    let failed = events.only("task_failed");
    assert_eq!(failed["kind"], "context_too_long", "{failed}");
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.contains("`max_input_tokens`") && message.contains("500") && message.contains(texts::NOTHING_WAS_SENT),
        "{message}"
    );
    let needed: String = message.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    assert!(needed.parse::<u64>().unwrap() > 500, "{message}");
    let hint = failed["hint"].as_str().unwrap();
    assert!(hint.contains("max_input_tokens") && hint.contains("policy.toml:3") && hint.contains(&needed), "{hint}");
    assert!(server.requests().is_empty());
}
