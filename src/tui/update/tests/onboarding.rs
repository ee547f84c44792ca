use super::*;
use crate::tui::onboarding::{ModelChoice, Onboarding};
use crate::tui::tests::fixtures::setup_found;

fn told(model: &mut UiModel, told: SetupEvent, at: u64) -> Vec<UiEffect> {
    update(model, Msg::Event(Box::new(event(EventKind::LookedUp(HostResponse::Setup(told))))), at)
}

/// Returns a screen with the setup dialog, which was opened by the user and is armed.
fn asked() -> UiModel {
    let mut model = model(100, 30);
    play(&mut model, 1000, "/setup<enter>");
    told(&mut model, SetupEvent::Found(setup_found()), 3000);
    shown(&mut model, 3000);
    model
}

/// Draws a frame and confirms it as the terminal would.
fn shown(model: &mut UiModel, at: u64) {
    draw(model, at);
    model.dialogs.take_fence(at);
    update(model, Msg::Input(UiInput::Fence), at + 10);
}

fn title(model: &UiModel) -> String {
    model.dialogs.open().map(|panel| panel.title.clone()).unwrap_or_default()
}

fn setup_sent(effects: &[UiEffect]) -> Vec<&SetupRequest> {
    let asked = effects.iter().filter_map(|effect| match effect {
        UiEffect::Ask(Query::Setup(asked)) => Some(asked),
        _ => None,
    });
    asked.collect()
}

#[test]
fn only_a_first_start_runs_setup() {
    for is_first in [true, false] {
        let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, ratatui::layout::Size::new(100, 30));
        let start = Start { is_first, ..crate::tui::tests::fixtures::start() };
        let effects = update(&mut model, Msg::Start(Box::new(start)), 0);
        assert_eq!(setup_sent(&effects), if is_first { vec![&SetupRequest::Look] } else { Vec::new() });
    }
}

#[test]
fn text_typed_before_the_setup_dialog_appeared_chooses_nothing_and_goes_to_the_draft() {
    for burst in ["1<enter>", "k", "s<enter>", "<enter>", "<esc>", "123", "explain this project<enter>"] {
        let mut model = model(100, 30);
        play(&mut model, 1000, "/setup<enter>");
        told(&mut model, SetupEvent::Found(setup_found()), 3000);
        assert!(model.dialogs.is_open());
        let mut all = Vec::new();
        for msg in keys(burst) {
            all.extend(update(&mut model, msg, 3001));
        }
        shown(&mut model, 3002);
        assert!(setup_sent(&all).is_empty(), "{burst}");
        let still = model.dialogs.iter().any(|panel| panel.kind.is::<Onboarding>() && panel.title == "Set up aye");
        assert!(still, "{burst}");
        // A key that is not a choice changes nothing.
        let letters = if burst == "k" { "" } else { burst.split('<').next().unwrap_or_default() };
        let prompt = all.iter().any(|effect| matches!(effect, UiEffect::Send(Command::Prompt { .. })));
        assert!(model.composer.text() == letters || prompt, "{burst}: {}", model.composer.text());
    }
}

#[test]
fn a_pasted_api_key_never_reaches_the_draft_and_y_with_enter_saves_the_card() {
    let mut model = asked();
    assert_eq!(title(&model), "Set up aye");
    // An API key that is pasted into the card is used.
    let pasted = Msg::Input(UiInput::Paste("sk-ant-api03-abcdefghijklmnop\n".to_owned()));
    update(&mut model, pasted, 4000);
    assert_eq!((title(&model).as_str(), model.composer.text().as_str()), ("API key", ""));
    shown(&mut model, 4100);
    play(&mut model, 5000, "<enter>");
    assert_eq!(title(&model), "Set up aye");
    shown(&mut model, 5200);
    let screen = draw(&mut model, 5900);
    assert!(screen.contains("anthropic/claude-sonnet-5 · key: 29 characters"), "{screen}");
    // The theme is the last row of the card.
    let before = model.screen.theme.name.clone();
    for (at, code) in [(6000, KeyCode::Up), (6100, KeyCode::Right), (6200, KeyCode::Right)] {
        update(&mut model, press(code, KeyModifiers::NONE), at);
    }
    assert_ne!(model.screen.theme.name, before);
    let mut effects = update(&mut model, press(KeyCode::Enter, KeyModifiers::NONE), 6300);
    assert!(setup_sent(&effects).is_empty(), "enter alone saves nothing");
    effects.extend(update(&mut model, press(KeyCode::Char('y'), KeyModifiers::NONE), 6500));
    effects.extend(update(&mut model, Msg::Time, 6860));
    assert!(setup_sent(&effects).is_empty(), "the letter alone saves nothing");
    effects.extend(update(&mut model, press(KeyCode::Enter, KeyModifiers::NONE), 6900));
    let [SetupRequest::Take { reach }] = setup_sent(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(reach.key.as_ref().map(|key| key.0.as_str()), Some("sk-ant-api03-abcdefghijklmnop"));
    assert!(!format!("{effects:?}").contains("abcdefghijklmnop"), "nothing prints it");
    let taken = SetupEvent::Taken { model: "anthropic/claude-sonnet-5".to_owned(), lines: vec!["wrote it".to_owned()] };
    let effects = told(&mut model, taken, 7000);
    assert!(effects.iter().any(|effect| matches!(effect, UiEffect::Send(Command::SetModel { .. }))));
    let end = SetupRequest::End { approvals: Some("effects".to_owned()), theme: Some("light".to_owned()), looks_daily: false };
    assert_eq!(setup_sent(&effects), [&end]);
    told(&mut model, SetupEvent::Ended { mode: None, lines: Vec::new() }, 9000);
    assert!(model.dialogs.is_empty());
}

#[test]
fn the_card_of_a_first_start_keeps_the_model_of_the_session() {
    let mut model = model(100, 30);
    assert_eq!(model.info.model_access, Some(crate::tui::interface::ModelAccess::Ready));
    model.info.header.model = "openai/named-by-option".to_owned();
    told(&mut model, SetupEvent::Found(setup_found()), 3000);
    let panel = model.dialogs.iter().find(|panel| panel.kind.is::<Onboarding>()).unwrap();
    let setup = panel.kind.find::<Onboarding>().unwrap();
    assert_eq!(setup.model, ModelChoice::Keep);
    assert_eq!(setup.found.model_now.as_deref(), Some("openai/named-by-option"));
}

#[test]
fn the_current_row_of_the_card_is_on_a_small_screen() {
    let mut model = model(40, 12);
    play(&mut model, 1000, "/setup<enter>");
    let list = Some("https://lists.example/models.json".to_owned());
    told(&mut model, SetupEvent::Found(SetupInfo { public_list: list, ..setup_found() }), 3000);
    shown(&mut model, 3000);
    for (nth, row) in ["approvals", "model list", "theme", "model"].into_iter().enumerate() {
        let at = 5000 + 500 * nth as u64;
        update(&mut model, press(KeyCode::Down, KeyModifiers::NONE), at);
        let screen = draw(&mut model, at + 10);
        assert!(screen.contains(&format!("▸ {row}")), "{screen}");
    }
}

#[test]
fn the_approval_level_is_changed_in_its_row_and_applies_to_the_session() {
    let mut model = asked();
    for (at, code) in [(4000, KeyCode::Left), (4100, KeyCode::Down), (4200, KeyCode::Right)] {
        assert!(setup_sent(&update(&mut model, press(code, KeyModifiers::NONE), at)).is_empty());
    }
    let mut effects = update(&mut model, press(KeyCode::Char('y'), KeyModifiers::NONE), 5000);
    effects.extend(update(&mut model, Msg::Time, 5360));
    effects.extend(update(&mut model, press(KeyCode::Enter, KeyModifiers::NONE), 5400));
    let end = SetupRequest::End { approvals: Some("auto".to_owned()), theme: None, looks_daily: false };
    assert_eq!(setup_sent(&effects), [&end]);
    let effects =
        told(&mut model, SetupEvent::Ended { mode: Some(Mode::Auto), lines: vec!["wrote config.toml".to_owned()] }, 6000);
    assert!(effects.iter().any(|effect| matches!(effect, UiEffect::Send(Command::ReloadPolicy))));
    assert!(effects.iter().any(|effect| matches!(effect, UiEffect::Send(Command::SetMode { mode: Mode::Auto }))));
}

#[test]
fn the_model_row_of_the_card_lists_what_else_was_found_and_which_keys_are_missing() {
    let mut model = asked();
    let screen = draw(&mut model, 4000);
    assert!(screen.contains("▸ model      anthropic/claude-sonnet-5 · ANTHROPIC_API_KEY"), "{screen}");
    assert!(screen.contains("Also found: local/qwen3:8b · Ollama at"), "{screen}");
    assert!(screen.contains("No key found for openai. `k` adds one."), "{screen}");
    update(&mut model, press(KeyCode::Right, KeyModifiers::NONE), 5000);
    let screen = draw(&mut model, 5100);
    assert!(screen.contains("Also found: anthropic/claude-sonnet-5") && !screen.contains("Also found: local"), "{screen}");
}

#[test]
fn saving_the_card_reports_neither_an_unchanged_mode_nor_the_reloaded_policy() {
    let mut model = asked();
    let mode = Some(model.info.header.mode);
    let effects = told(&mut model, SetupEvent::Ended { mode, lines: vec!["wrote config.toml".to_owned()] }, 6000);
    assert!(effects.iter().any(|effect| matches!(effect, UiEffect::Send(Command::ReloadPolicy))));
    assert!(!effects.iter().any(|effect| matches!(effect, UiEffect::Send(Command::SetMode { .. }))), "{effects:?}");
    let reloaded = |model: &mut UiModel, at| {
        let message = Some("policy reloaded: built-in".to_owned());
        let (layers, name) = (Vec::new(), "built-in".to_owned());
        tell(model, EventKind::PolicyInForce { layers, name, tools: Vec::new(), message }, at);
        draw(model, at + 10)
    };
    let screen = reloaded(&mut model, 7000);
    assert!(screen.contains("wrote config.toml") && !screen.contains("policy reloaded"), "{screen}");
    assert!(reloaded(&mut model, 8000).contains("policy reloaded"), "later changes are reported");
}

#[test]
fn sentences_typed_as_setup_dialogs_appear_choose_nothing_and_lose_no_text() {
    let words = ["1", "k", "yes", "sure", "the 3 tests", "use it", "2 4", "s", "u", "ok", "left", "effects"];
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..150 {
        let mut model = model(100, 30);
        play(&mut model, 1000, "/setup<enter>");
        let sentence: Vec<&str> = (0..=next(5) + 1).map(|_| words[next(words.len() as u64) as usize]).collect();
        let sentence = sentence.join(" ");
        let comes = next(sentence.len() as u64 + 1) as usize;
        let mut at = 3000;
        let mut all = Vec::new();
        for (nth, msg) in keys(&sentence).into_iter().enumerate() {
            if nth == comes {
                all.extend(told(&mut model, SetupEvent::Found(setup_found()), at));
            }
            at += 30 + next(110);
            all.extend(update(&mut model, msg, at));
            all.extend(update(&mut model, Msg::Time, at + 1));
            shown(&mut model, at + 2);
        }
        assert!(setup_sent(&all).is_empty(), "{round}: {sentence}");
        all.extend(update(&mut model, Msg::Time, at + 400));
        let typing = model.dialogs.open().map(|panel| panel.guard.clone().take_draft_text()).unwrap_or_default();
        assert!(
            model.composer.text() + &typing == sentence || sentence.len() == 1,
            "{round}: {sentence}: {}",
            model.composer.text()
        );
    }
}

#[test]
fn the_result_of_a_test_is_shown_whatever_row_is_current() {
    let mut model = asked();
    let script = [(4000, KeyCode::Down), (4100, KeyCode::Down), (4600, KeyCode::Char('t'))];
    let mut effects = Vec::new();
    for (at, code) in script {
        effects.extend(update(&mut model, press(code, KeyModifiers::NONE), at));
        draw(&mut model, at + 10);
    }
    effects.extend(update(&mut model, Msg::Time, 5000));
    assert!(matches!(setup_sent(&effects)[..], [SetupRequest::Test { .. }]));
    let outcome = TestOutcome::Answered { model: "anthropic/claude-sonnet-5".to_owned(), latency_ms: 4 };
    told(&mut model, SetupEvent::Tested { number: 1, outcome }, 6000);
    let screen = draw(&mut model, 6100);
    assert!(screen.contains("▸ theme") && screen.contains("responded in 4 ms."), "{screen}");
}
