use super::*;
use crate::tui::tests::fixtures::answered;

fn budget(limit: f64, used: f64) -> Budget {
    Budget {
        scope: BudgetScope::Session,
        unit: BudgetUnit::CostUsd,
        limit,
        used,
        set_by: "policy.toml:12\u{1b}[31m".to_owned(),
        most: Some(50.0),
    }
}

#[test]
fn costs_are_counted_once_and_follow_the_totals_of_the_session() {
    let mut model = model(120, 24);
    tell(&mut model, started("x"), 0);
    tell(&mut model, answered(12_000, 640, Some(0.03), Some(0.40)), 100);
    tell(&mut model, answered(12_000, 0, Some(0.02), Some(0.42)), 200);
    let end = EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: Some(0.05), step_count: 2 };
    tell(&mut model, end, 300);
    assert!(draw(&mut model, 400).contains("│ $0.42 │"), "{}", draw(&mut model, 400));
    play(&mut model, 1000, "/usage<enter>");
    let screen = draw(&mut model, 1700);
    assert!(screen.contains("❯ session      24k     12k     640  $0.42"), "{screen}");
    assert!(screen.contains("last task    24k     12k     640  $0.05"), "{screen}");
    assert!(screen.contains("24000 tokens sent, 50 % of them from the cache"), "{screen}");
    tell(&mut model, answered(1_000, 0, Some(0.01), Some(0.43)), 1800);
    assert!(draw(&mut model, 1900).contains("  640  $0.43"), "it is live: {}", draw(&mut model, 1900));
    play(&mut model, 2000, "<esc>");
    assert!(!draw(&mut model, 2100).contains("last task"), "nothing stays in the conversation");
    assert!(screen.contains("no budget is set"), "{screen}");
}

#[test]
fn an_unknown_price_is_marked_and_free_models_show_no_cost() {
    let cost = |name: &str, price: Option<Price>| {
        let mut model = model(120, 24);
        let facts = ModelFacts::for_test(name, 200_000, price);
        tell(&mut model, EventKind::ModelChanged { facts, effort: None, message: String::new() }, 0);
        tell(&mut model, answered(10, 10, price.map(|_| 0.0), None), 100);
        draw(&mut model, 200).lines().rev().nth(1).unwrap().to_owned()
    };
    let free = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
    assert!(cost("acme/one", None).contains("$?"));
    assert!(!cost("local/one", None).contains('$'));
    assert!(!cost("acme/one", Some(free)).contains('$'));
    assert!(cost("acme/one", Some(Price { input: 3.0, ..free })).contains("$0.00"));
}

#[test]
fn the_status_overview_shows_a_known_price_before_the_first_request() {
    let shown = |price: Option<Price>| {
        let mut model = model(120, 36);
        let facts = ModelFacts::for_test("acme/one", 200_000, price);
        tell(&mut model, EventKind::ModelChanged { facts, effort: None, message: String::new() }, 0);
        tell(&mut model, EventKind::LookedUp(HostResponse::Places { rows: Vec::new() }), 100);
        draw(&mut model, 200)
    };
    let price = Price { input: 3.0, output: 15.0, cache_read: 0.0, cache_write: 0.0 };
    assert!(shown(Some(price)).contains("0 in, 0 out, $0.00"));
    assert!(shown(None).contains("0 in, 0 out, price unknown"));
}

#[test]
fn a_budget_can_be_set_and_is_shown_with_its_source() {
    check("/budget<enter>", &["showbudget"], "");
    let limit =
        |scope, unit, limit| format!("setbudget {{ limit: budgetlimit {{ scope: {scope}, unit: {unit}, limit: {limit} }} }}");
    check("/budget 10<enter>", &[&limit("session", "costusd", "10.0")], "");
    check("/budget task 1.50<enter>", &[&limit("task", "costusd", "1.5")], "");
    check("/budget 2M tokens<enter>", &[&limit("session", "tokens", "2000000.0")], "");
    check("/budget steps 200<enter>", &[&limit("session", "steps", "200.0")], "");
    check("/budget lots<enter>", &[], "/budget lots");
    let mut model = model(120, 24);
    tell(&mut model, EventKind::BudgetShown { budgets: vec![budget(5.0, 0.42)] }, 100);
    let screen = draw(&mut model, 200);
    assert!(!screen.contains("set by") && screen.contains("$4.58 left") == model.info.tally.cost_usd.is_some(), "{screen}");
    play(&mut model, 1000, "/budget<enter>");
    tell(&mut model, EventKind::BudgetShown { budgets: vec![budget(5.0, 0.42)] }, 2000);
    let screen = draw(&mut model, 2100);
    assert!(screen.contains("session budget") && screen.contains("$0.42 of $5.00"), "{screen}");
    play(&mut model, 3000, "<end>");
    let screen = draw(&mut model, 3100);
    assert!(screen.contains("session: $0.42 of $5.00 used, 8 %, set by"), "{screen}");
    assert!(screen.contains("at most $50.00"), "{screen}");
}

#[test]
fn the_status_row_shows_the_remaining_budget_and_warns_near_the_limit() {
    let mut model = model(120, 24);
    tell(&mut model, EventKind::BudgetShown { budgets: vec![budget(5.0, 0.0)] }, 100);
    tell(&mut model, answered(10, 10, Some(4.1), Some(4.1)), 200);
    assert!(draw(&mut model, 300).contains("$4.10, $0.90 left"));
    tell(&mut model, EventKind::BudgetApproaching { budget: budget(5.0, 4.1) }, 400);
    let screen = draw(&mut model, 500);
    assert!(screen.contains("session: $4.10 of $5.00 used, 82 %") && screen.contains("raise it with /budget"), "{screen}");
    model.screen.size = Size::new(60, 20);
    assert!(draw(&mut model, 600).contains("$0.90 left"), "{}", draw(&mut model, 600));
}

#[test]
fn costs_estimated_without_provider_usage_are_marked_everywhere() {
    let guessed = |kind| match kind {
        EventKind::LlmRequestCompleted { model, usage, latency_ms, stop_reason, cost_usd, session_cost_usd, .. } => {
            let estimated = true;
            EventKind::LlmRequestCompleted { model, usage, latency_ms, stop_reason, cost_usd, session_cost_usd, estimated }
        }
        other => other,
    };
    let mut model = model(120, 24);
    tell(&mut model, started("x"), 0);
    tell(&mut model, guessed(answered(12_000, 640, Some(0.03), Some(0.03))), 100);
    assert!(draw(&mut model, 200).contains("│ ~$0.03 │"), "{}", draw(&mut model, 200));
    let end = EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: Some(0.03), step_count: 1 };
    tell(&mut model, end, 300);
    tell(&mut model, started("y"), 400);
    tell(&mut model, answered(1_000, 10, Some(0.01), Some(0.04)), 500);
    play(&mut model, 1000, "/cost<enter>");
    let screen = draw(&mut model, 1700);
    assert!(screen.contains("~$0.04") && screen.contains(" $0.01"), "{screen}");
    assert!(screen.contains("a provider did not report all") && screen.contains("usage"), "{screen}");
}

#[test]
fn the_default_step_limit_is_not_shown_as_a_budget() {
    let mut model = model(120, 24);
    let steps = Budget { scope: BudgetScope::Task, unit: BudgetUnit::Steps, set_by: "default".to_owned(), ..budget(1000.0, 0.0) };
    tell(&mut model, EventKind::BudgetShown { budgets: vec![steps] }, 100);
    tell(&mut model, answered(10, 10, Some(0.1), Some(0.1)), 200);
    play(&mut model, 1000, "/cost<enter>");
    let screen = draw(&mut model, 1700);
    assert!(screen.contains("no budget is set") && !screen.contains("1000 steps"), "{screen}");
}
