//! Tests of the dialog that asks for a model's price.

use super::*;

const NAME: &str = "mine/large";

fn paused() -> EventKind {
    let failure = Failure::new(FailureKind::BudgetExceeded, "LLM_BUDGET_EXCEEDED: the price is unknown", "assume a price");
    EventKind::SessionPaused { failure: failure.with_remedy(Remedy::AssumePrice) }
}

fn facts(elsewhere: Option<Price>) -> ModelFacts {
    let price_elsewhere = elsewhere.map(|price| PriceElsewhere { model: "maker/large\u{1b}[31m".to_owned(), price });
    ModelFacts { price_elsewhere, ..ModelFacts::for_test(NAME, 100_000, None) }
}

/// Returns a screen on which a task is waiting for a price.
fn asked(elsewhere: Option<Price>) -> UiModel {
    let mut model = model(100, 30);
    tell(&mut model, EventKind::ModelChanged { facts: facts(elsewhere), effort: None, message: String::new() }, 1000);
    let budget = Budget {
        scope: BudgetScope::Session,
        unit: BudgetUnit::CostUsd,
        limit: 5.0,
        used: 0.0,
        set_by: "you".to_owned(),
        most: None,
    };
    tell(&mut model, EventKind::BudgetShown { budgets: vec![budget] }, 1100);
    tell(&mut model, started("x"), 2000);
    tell(&mut model, paused(), 5000);
    draw(&mut model, 5000);
    draw(&mut model, 5600);
    assert!(model.dialogs.is_open());
    model
}

#[test]
fn enter_sends_the_requested_price() {
    let mut model = asked(None);
    let screen = draw(&mut model, 5700);
    for words in
        ["The price of mine/large is unknown", "to enforce the budget of $5.00", "input,output:", "enter use it", "stay paused"]
    {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert_eq!(play(&mut model, 7000, "<enter>"), [""; 0]);
    assert!(draw(&mut model, 7200).contains("Enter two amounts"));
    assert_eq!(play(&mut model, 8000, "3<enter>"), [""; 0], "one amount is no price");
    let screen = draw(&mut model, 8400);
    assert!(screen.contains("`3` is not a price") && model.dialogs.is_open(), "{screen}");
    assert_eq!(play(&mut model, 9000, ",15<enter>"), ["assumeprice { price: assumedprice { input: 3.0, output: 15.0 } }"]);
    assert!(!model.dialogs.is_open() && model.composer.is_empty());
}

#[test]
fn the_price_of_the_same_model_at_another_provider_is_suggested_with_its_name() {
    let price = Price { input: 1.5, output: 6.0, cache_read: 0.0, cache_write: 0.0 };
    let mut model = asked(Some(price));
    let screen = draw(&mut model, 5700);
    assert!(screen.contains("1.5,6 is the price of maker/large") && screen.contains("input,output: 1.5,6"), "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
    assert_eq!(play(&mut model, 7000, "<enter>"), ["assumeprice { price: assumedprice { input: 1.5, output: 6.0 } }"]);
}

#[test]
fn escape_keeps_the_task_paused_and_moves_typed_text_to_the_draft() {
    for (typed, draft) in [("", ""), ("3,1", ""), ("explain it", "explain it")] {
        let mut model = asked(None);
        assert_eq!(play(&mut model, 7000, &format!("{typed}<esc>")), [""; 0]);
        assert!(model.dialogs.is_empty() && model.task.paused.is_some(), "{typed}");
        assert_eq!(model.composer.text(), draft);
        // If the task pauses again for the same reason, the dialog opens again.
        model.composer.set("");
        tell(&mut model, paused(), 20_000);
        draw(&mut model, 20_000);
        assert!(model.dialogs.is_open());
    }
}

#[test]
fn the_price_dialog_closes_with_its_pause() {
    let known = ModelFacts { name: "other/model".to_owned(), ..facts(None) };
    for kind in [
        EventKind::ModelChanged { facts: known, effort: None, message: String::new() },
        EventKind::LlmRequestStarted { model: NAME.to_owned(), estimated_input_tokens: 1 },
        EventKind::TaskCancelled { step_count: 0 },
        started("another"),
    ] {
        let mut model = asked(None);
        tell(&mut model, kind.clone(), 6000);
        assert!(model.dialogs.is_empty(), "{kind:?}");
    }
    let mut model = asked(None);
    tell(&mut model, EventKind::notice("a server ended"), 6000);
    tell(&mut model, paused(), 6100);
    assert_eq!(model.dialogs.len(), 1, "it is asked once");
}
