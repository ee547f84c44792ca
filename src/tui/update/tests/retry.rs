use super::*;
use crate::protocol::{BudgetScope, BudgetUnit, FailedRequest, Remedy};

fn retry(kind: FailureKind, delay_ms: u64, message: &str) -> EventKind {
    crate::tui::tests::fixtures::retry(kind, delay_ms, message, None, None)
}

fn retrying(kind: EventKind) -> UiModel {
    let mut model = model(120, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, kind, 10_000);
    model
}

#[test]
fn the_retry_countdown_updates_once_a_second_until_the_retry() {
    let mut model = retrying(retry(FailureKind::RateLimited, 17_500, "slow\u{1b}[2J down"));
    let screen = draw(&mut model, 10_000);
    assert!(screen.contains("Rate limited by the provider: continues in 0:18 (requested: 18 s), attempt 1 of 3"), "{screen}");
    assert!(screen.contains("slow down") && screen.contains("r retry"), "{screen}");
    let mut at = 10_000;
    let mut wakes = Vec::new();
    while let Some(next) = model.deadline(at) {
        assert!(next > at && wakes.len() < 100);
        wakes.push(next);
        at = next;
        wait(&mut model, at);
    }
    assert_eq!(wakes.len(), 18, "{wakes:?}");
    assert!(wakes.windows(2).all(|pair| pair[1] - pair[0] == 1000), "{wakes:?}");
    assert!(draw(&mut model, 60_000).contains("retrying, attempt 1 of 3"));
}

#[test]
fn a_long_retry_delay_shows_the_time_of_day_and_the_cost_of_the_attempt() {
    let usage = Some(Usage { input_tokens: 12_100, output_tokens: 640, ..Usage::default() });
    let wasted = crate::tui::tests::fixtures::retry(FailureKind::RateLimited, 120_000, "wait", usage, Some(0.0312));
    let mut model = retrying(wasted);
    let screen = draw(&mut model, 10_000);
    assert!(screen.contains("continues in 2:00, at 00:02 UTC") && screen.contains("cost $0.03 · wait"), "{screen}");
    assert_eq!(model.info.tally.cost_usd, Some(0.0312), "what failed is counted");
    model.screen.size = Size::new(40, 12);
    assert!(draw(&mut model, 10_000).contains("Rate limited: in 2:00, 1 of 3"), "{}", draw(&mut model, 10_000));
    let shown = draw(&mut retrying(retry(FailureKind::CutStream, 4000, "cut")), 10_000);
    assert!(shown.contains("The response was cut off: retry in 4 s, attempt 1 of 3"), "{shown}");
}

#[test]
fn a_single_r_retries_immediately() {
    let mut model = retrying(retry(FailureKind::Overloaded, 30_000, ""));
    draw(&mut model, 10_000);
    assert_eq!(play(&mut model, 12_000, "r"), [""; 0]);
    assert_eq!(model.composer.text(), "r", "nothing that is typed is held back");
    assert_eq!(wait(&mut model, 12_350), ["retrynow"]);
    assert_eq!(model.composer.text(), "");
}

#[test]
fn an_r_that_begins_a_word_or_arrives_as_the_delay_starts_is_text() {
    let mut model = retrying(retry(FailureKind::Overloaded, 30_000, ""));
    assert_eq!(play(&mut model, 12_000, "run"), [""; 0]);
    assert_eq!(wait(&mut model, 12_700), ["draft \"run\""]);
    assert_eq!(model.composer.text(), "run");
    let mut model = retrying(retry(FailureKind::Overloaded, 30_000, ""));
    assert_eq!(play(&mut model, 10_100, "r"), [""; 0]);
    assert_eq!(wait(&mut model, 10_600), ["draft \"r\""], "it was typed as the wait began");
    let mut model = retrying(retry(FailureKind::Overloaded, 30_000, ""));
    play(&mut model, 12_000, "r");
    update(&mut model, Msg::Input(UiInput::Paste("m".to_owned())), 12_100);
    assert_eq!(wait(&mut model, 12_500), ["draft \"rm\""]);
}

#[test]
fn a_paused_task_shows_the_error_and_hints() {
    let budget = "LLM_BUDGET_EXCEEDED: Budget of $5.00 reached";
    for (kind, message, hint, expected) in [
        (FailureKind::BudgetExceeded, budget, "raise it", "error: Budget of $5.00 reached"),
        (
            FailureKind::Authentication,
            "rejected the API key (401)",
            "check `ANTHROPIC_API_KEY`",
            "hint: run `aye auth login` to save another key",
        ),
        (FailureKind::Network, "`acme` cannot be reached", "check the network", "error: `acme` cannot be reached"),
    ] {
        let mut model = model(100, 24);
        tell(&mut model, started("x"), 1000);
        tell(&mut model, EventKind::SessionPaused { failure: Failure::new(kind, message, hint) }, 2000);
        let screen = draw(&mut model, 3000);
        assert!(screen.contains(expected) && screen.contains(&format!("hint: {hint}")), "{screen}");
        assert!(!screen.contains("LLM_BUDGET"), "{screen}");
        assert_eq!(model.deadline(3000), None);
    }
}

#[test]
fn a_paused_task_shows_its_step_and_how_to_continue_at_every_width() {
    for (width, expected) in [(100, "paused at step 7 · /continue when it is back"), (40, "/continue")] {
        let mut model = model(width, 12);
        tell(&mut model, started("x"), 1000);
        tell(&mut model, EventKind::StepStarted { step_count: 7 }, 1100);
        let failure = Failure::new(FailureKind::Network, "`acme` cannot be reached", "/continue when it is back");
        tell(&mut model, EventKind::SessionPaused { failure }, 2000);
        let screen = draw(&mut model, 3000);
        assert!(screen.contains(expected) && screen.contains("paused at step 7"), "{screen}");
    }
    let mut model = model(40, 12);
    tell(&mut model, started("x"), 1000);
    let failure = Failure::new(FailureKind::Billing, "refused", "check it");
    tell(&mut model, EventKind::TaskFailed { failure, step_count: 1 }, 2000);
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("failed; nothing") && screen.contains("/continue"), "{screen}");
}

#[test]
fn a_long_retry_delay_is_not_truncated_at_common_widths() {
    for width in [70, 80, 92, 120] {
        let mut model = model(width, 20);
        tell(&mut model, started("x"), 1000);
        tell(&mut model, retry(FailureKind::RateLimited, 200_000, "slow down"), 10_000);
        let screen = draw(&mut model, 10_000);
        let row = screen.lines().find(|row| row.contains("Rate limited")).unwrap();
        assert!(row.contains(" in 3:20") && row.contains("1 of 3") && row.contains("r retry") && !row.contains('…'), "{row}");
    }
}

#[test]
fn the_error_message_is_not_repeated_in_the_retry_row() {
    let screen = draw(&mut retrying(retry(FailureKind::Overloaded, 4000, "Overloaded")), 10_000);
    assert_eq!(screen.to_lowercase().matches("overloaded").count(), 1, "{screen}");
}

#[test]
fn a_task_failed_by_the_provider_shows_how_to_continue() {
    let failed = |kind| {
        let failure = Failure::new(kind, "`acme` rejected the API key: invalid x-api-key", "check `ACME_KEY`");
        let mut model = retrying(EventKind::TaskFailed { failure, step_count: 1 });
        draw(&mut model, 11_000)
    };
    let screen = failed(FailureKind::Billing);
    assert!(screen.contains("failed; nothing is lost · /continue to resume"), "{screen}");
    let screen = failed(FailureKind::Authentication);
    assert!(screen.contains("the API key was rejected; nothing is lost · enter to replace it · /continue to resume"), "{screen}");
    assert!(!failed(FailureKind::InvalidRequest).contains("/continue"));
    let failure = over_budget(Remedy::RaiseBudget { scope: BudgetScope::Session, unit: BudgetUnit::CostUsd, limit: 10.0 });
    let mut model = retrying(EventKind::SessionPaused { failure });
    let screen = draw(&mut model, 11_000);
    assert!(screen.contains("budget reached, /budget 10 to continue") && !screen.contains("/continue"), "{screen}");
}

#[test]
fn the_request_id_is_shown_by_x_and_with_failures() {
    let with_id = |kind| match retry(kind, 30_000, "Overloaded, come back later") {
        EventKind::LlmRetry(failed) => {
            let request_id = Some("req_011\u{1b}[2J".to_owned());
            EventKind::LlmRetry(FailedRequest { request_id, ..failed })
        }
        other => other,
    };
    let mut model = retrying(with_id(FailureKind::Overloaded));
    let screen = draw(&mut model, 10_000);
    assert!(screen.contains("come back later · x show request ID") && !screen.contains("req_011"), "{screen}");
    assert_eq!(play(&mut model, 12_000, "x"), [""; 0]);
    assert_eq!(wait(&mut model, 12_350), [""; 0], "it asks for nothing");
    let screen = draw(&mut model, 12_400);
    assert!(screen.contains("request req_011 · Overloaded, come back later") && model.composer.is_empty(), "{screen}");
    // Without a request ID, the letter is plain text.
    let mut model = retrying(retry(FailureKind::Overloaded, 30_000, ""));
    play(&mut model, 12_000, "x");
    wait(&mut model, 12_350);
    assert_eq!(model.composer.text(), "x");
    let failure = Failure { request_id: Some("req_012".to_owned()), ..Failure::new(FailureKind::InvalidRequest, "no", "do") };
    tell(&mut model, EventKind::TaskFailed { failure, step_count: 1 }, 20_000);
    assert!(draw(&mut model, 20_100).contains("request req_012"));
}

#[test]
fn the_provider_message_is_shown_in_full_where_space_allows() {
    let sentence = "This request would exceed your organization's rate limit of 40,000 input tokens per minute";
    for (width, height) in [(120, 36), (80, 24), (60, 20)] {
        let mut model = model(width, height);
        tell(&mut model, started("x"), 1000);
        tell(&mut model, retry(FailureKind::RateLimited, 20_000, sentence), 10_000);
        let screen = draw(&mut model, 10_000);
        let said: Vec<&str> = screen.lines().map(|row| row.trim_start_matches('·').trim()).collect();
        assert!(said.join(" ").contains(sentence) && !screen.contains("minu…"), "{screen}");
        assert!(screen.contains("0:20") && screen.contains("1 of 3") && screen.contains("r retry"), "{screen}");
    }
    let mut model = model(40, 12);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, retry(FailureKind::RateLimited, 20_000, sentence), 10_000);
    let screen = draw(&mut model, 10_000);
    assert!(screen.contains("This request would") && screen.contains('…') && screen.contains("r retry"), "{screen}");
}

#[test]
fn the_retry_row_stays_readable_on_narrow_screens() {
    let mut model = retrying(retry(FailureKind::RateLimited, 17_000, "slow"));
    model.screen.size = Size::new(60, 20);
    assert!(draw(&mut model, 10_000).contains("Rate limited: retry in 0:17, attempt 1 of 3"), "{}", draw(&mut model, 10_000));
}

fn refused() -> UiModel {
    let failure = Failure { status: Some(401), ..Failure::new(FailureKind::Authentication, "invalid x-api-key", "check it") };
    let mut model = model(100, 24);
    model.info.header.model = "acme/small".to_owned();
    tell(&mut model, started("x"), 1000);
    tell(&mut model, EventKind::TaskFailed { failure, step_count: 1 }, 2000);
    model
}

#[test]
fn enter_replaces_a_rejected_api_key_and_the_task_resumes_on_continue() {
    let mut model = refused();
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("acme rejected the API key (401): invalid x-api-key"), "{screen}");
    assert_eq!(play(&mut model, 4000, "<enter>"), ["listmodels { ask: false }", "listmodels { ask: true }"]);
    assert!(draw(&mut model, 4100).contains("key of acme:"), "{}", draw(&mut model, 4100));
    assert_eq!(play(&mut model, 5000, "sk-new<enter>"), ["addkey { name: \"acme/small\", key: keytext }"]);
    assert!(draw(&mut model, 5100).contains("/continue to resume"));
    // If the draft is not empty, Enter sends it. Later, the key has no effect.
    let mut model = refused();
    assert!(play(&mut model, 4000, "hello<enter>").iter().any(|sent| sent.starts_with("prompt")));
    tell(&mut model, started("hello"), 5000);
    assert_eq!(play(&mut model, 6000, "<enter>"), [""; 0]);
}

fn over_budget(remedy: Remedy) -> Failure {
    Failure::new(FailureKind::BudgetExceeded, "LLM_BUDGET_EXCEEDED: used up", "").with_remedy(remedy)
}

#[test]
fn raising_the_budget_is_suggested_only_if_the_policy_allows_more() {
    let raise = Remedy::RaiseBudget { scope: BudgetScope::Session, unit: BudgetUnit::CostUsd, limit: 0.02 };
    let steps = Remedy::RaiseBudget { scope: BudgetScope::Task, unit: BudgetUnit::Steps, limit: 40.0 };
    for (remedy, width, expected) in [
        (raise, 100, "budget reached, /budget 0.02 to continue"),
        (raise, 40, "budget reached, /budget 0.02"),
        (steps, 100, "budget reached, /budget task steps 40 to continue"),
        (Remedy::ChangePolicy, 100, "and the policy does not allow more"),
        (Remedy::ChangePolicy, 40, "the policy does not allow more"),
        (Remedy::Continue, 100, "budget reached, /budget to raise it"),
    ] {
        let mut model = model(width, 12);
        tell(&mut model, started("x"), 1000);
        tell(&mut model, EventKind::SessionPaused { failure: over_budget(remedy) }, 2000);
        let screen = draw(&mut model, 3000);
        let row = screen.lines().rev().nth(5).unwrap_or_default();
        assert!(row.contains(expected) && !row.contains('…'), "{screen}");
    }
}

#[test]
fn a_failed_retry_of_saving_is_reported() {
    let mut model = model(100, 24);
    let not_saved =
        || EventKind::SessionPaused { failure: Failure::new(FailureKind::NotSaved, "Cannot save this session (disk full)", "") };
    tell(&mut model, started("x"), 1000);
    tell(&mut model, not_saved(), 2000);
    play(&mut model, 4000, "r");
    assert_eq!(wait(&mut model, 4400), ["continue"]);
    tell(&mut model, not_saved(), 4500);
    assert!(draw(&mut model, 4600).contains("retried: the session still cannot be saved"));
}
