use super::*;
use crate::tui::interface::{ModelAccess, Start};
use crate::tui::layers::ModelPicker;
use crate::tui::tests::fixtures::{feed, listed_models as listed, options, start};

fn opened() -> UiModel {
    let mut model = model(100, 24);
    let sent = play(&mut model, 1000, "/model<enter>");
    assert_eq!(sent, ["listmodels { ask: false }", "listmodels { ask: true }"]);
    tell(&mut model, EventKind::ModelsListed { models: listed(), notices: Vec::new() }, 2000);
    draw(&mut model, 2000);
    model
}

/// Returns the name of the highlighted model.
fn highlighted(model: &UiModel) -> String {
    model.layers.find::<ModelPicker>().and_then(ModelPicker::highlighted).unwrap().facts.name.clone()
}

#[test]
fn a_model_is_given_by_name_or_chosen_from_the_list() {
    check("/model acme/one<enter>", &["setmodel { name: \"acme/one\" }"], "");
    let mut model = opened();
    assert_eq!(play(&mut model, 3000, "opus<enter>"), ["setmodel { name: \"anthropic/opus-5\" }"]);
    assert!(!model.layers.is_open::<ModelPicker>());
}

#[test]
fn ctrl_l_opens_the_model_list_and_escape_changes_nothing() {
    let mut model = model(100, 24);
    play(&mut model, 500, "half a draft");
    let sent = play(&mut model, 2000, "<ctrl+l>");
    assert_eq!(sent, ["listmodels { ask: false }", "listmodels { ask: true }"]);
    assert!(draw(&mut model, 2100).contains("loading models"));
    assert_eq!(play(&mut model, 2200, "<enter>"), [""; 0], "nothing is there to choose");
    assert_eq!(play(&mut model, 3000, "x<esc>"), [""; 0]);
    assert!(!model.layers.is_open::<ModelPicker>());
    assert_eq!(model.composer.text(), "half a draft");
    tell(&mut model, EventKind::ModelsListed { models: listed(), notices: Vec::new() }, 4000);
    assert!(!draw(&mut model, 4000).contains("opus"), "it comes too late to be shown");
}

#[test]
fn models_from_providers_are_added_without_moving_the_highlight() {
    let mut model = opened();
    play(&mut model, 3000, "<down>");
    let at = highlighted(&model);
    let mut more = listed();
    more.reverse();
    more.push(ListedModel {
        facts: ModelFacts::for_test("local/evil\u{1b}]0;x\u{7}\nname\u{202e}", 8000, None),
        lacks: None,
        key_of: None,
        source: "asked at http://localhost:11434/v1".to_owned(),
        ..ListedModel::default()
    });
    let notices = vec!["`acme` could not be asked".to_owned()];
    tell(&mut model, EventKind::ModelsListed { models: more, notices }, 4000);
    assert_eq!(highlighted(&model), at);
    let screen = draw(&mut model, 4100);
    assert!(screen.contains("evil") && !screen.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{screen}");
    assert!(screen.contains("`acme` could not be asked") && !screen.contains("loading models"), "{screen}");
}

#[test]
fn a_key_entered_for_a_model_without_an_api_key_is_not_shown() {
    let mut model = opened();
    play(&mut model, 3000, "gpt");
    assert!(draw(&mut model, 3100).contains("enter add its API key"));
    assert_eq!(play(&mut model, 3200, "<enter><enter>"), [""; 0], "an empty key is none");
    assert!(draw(&mut model, 3500).contains("set OPENAI_API_KEY or aye auth login"));
    update(&mut model, Msg::Input(UiInput::Paste(" sk-hush-4711\n".to_owned())), 3600);
    let screen = draw(&mut model, 3700);
    assert!(screen.contains("key of openai: ************") && !screen.contains("hush"), "{screen}");
    assert!(!format!("{:?}", update(&mut model, Msg::Time, 3700)).contains("hush"));
    assert_eq!(play(&mut model, 3800, "<esc>"), [""; 0]);
    assert!(draw(&mut model, 3900).contains("filter: gpt"));
    assert_eq!(play(&mut model, 4000, "<enter>sk-1x<backspace><enter>"), ["addkey { name: \"openai/gpt-6\", key: keytext }"]);
    assert!(!model.layers.is_open::<ModelPicker>() && model.composer.is_empty());
    let mut model = opened();
    draw(&mut model, 3900);
    assert_eq!(play(&mut model, 4000, "<ctrl+u>nothing like it<enter>"), [""; 0]);
    assert!(draw(&mut model, 7000).contains("no matches"));
}

#[test]
fn the_reason_that_models_of_a_provider_share_is_shown_once() {
    let mut model = model(200, 30);
    play(&mut model, 1000, "/model<enter>");
    let mut models = listed();
    let facts = ModelFacts::for_test("openai/gpt-6-mini", 400_000, None);
    models.push(ListedModel { facts, ..models[0].clone() });
    tell(&mut model, EventKind::ModelsListed { models, notices: Vec::new() }, 2000);
    draw(&mut model, 2000);
    play(&mut model, 3000, "gpt");
    let screen = draw(&mut model, 3100);
    assert_eq!(screen.matches("set OPENAI_API_KEY").count(), 1, "{screen}");
    assert_eq!(screen.matches("no key").count(), 2, "{screen}");
}

#[test]
fn a_wide_screen_previews_the_highlighted_model() {
    let mut model = model(160, 30);
    play(&mut model, 1000, "/model<enter>");
    let mut models = listed();
    (models[2].facts.images, models[2].facts.tools) = (true, Some(true));
    tell(&mut model, EventKind::ModelsListed { models, notices: Vec::new() }, 2000);
    draw(&mut model, 2000);
    play(&mut model, 3000, "opus");
    let screen = draw(&mut model, 3100);
    for expected in [
        "context window 200k tokens, at most 64k of output",
        "$15.00 in, $75.00 out per million tokens",
        "effort ",
        "calls tools",
        "accepts images",
    ] {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
}

#[test]
fn an_api_key_pasted_into_the_model_list_is_recognized_and_never_shown() {
    let paste = |model: &mut UiModel, words: &str, now| update(model, Msg::Input(UiInput::Paste(words.to_owned())), now);
    let mut model = opened();
    paste(&mut model, "sk-proj-hush-4711-hush\n", 3000);
    let screen = draw(&mut model, 3100);
    assert!(screen.contains("key of openai: **********************") && !screen.contains("hush"), "{screen}");
    assert_eq!(play(&mut model, 4000, "<enter>"), ["addkey { name: \"openai/gpt-6\", key: keytext }"]);
    let mut model = opened();
    paste(&mut model, "gsk_hush4711hush4711", 3000);
    let screen = draw(&mut model, 3100);
    assert!(screen.contains("this looks like an API key") && !screen.contains("hush"), "{screen}");
    let mut model = opened();
    paste(&mut model, "opus", 3000);
    assert!(draw(&mut model, 3100).contains("filter: opus"));
}

#[test]
fn the_current_model_is_listed_even_if_missing_from_all_lists() {
    let mut model = model(100, 24);
    model.info.header.model = "acme/own-7b".to_owned();
    model.info.facts = Some(ModelFacts::for_test("acme/own-7b", 32_000, None));
    play(&mut model, 1000, "/model<enter>");
    tell(&mut model, EventKind::ModelsListed { models: listed(), notices: Vec::new() }, 2000);
    assert_eq!(highlighted(&model), "acme/own-7b");
    let told = ListedModel { source: "asked at http://127.0.0.1:9/v1".to_owned(), ..listed().remove(0) };
    let told = ListedModel { facts: ModelFacts::for_test("acme/own-7b", 64_000, None), ..told };
    tell(&mut model, EventKind::ModelsListed { models: vec![told], notices: Vec::new() }, 3000);
    let screen = draw(&mut model, 3100);
    assert_eq!(screen.matches("own-7b ").count(), 2, "once in the list, once in the status row: {screen}");
    assert!(screen.contains("64k"), "{screen}");
    let mut model = self::model(100, 24);
    model.info.header.model.clear();
    model.info.facts = Some(ModelFacts::for_test("", 32_000, None));
    play(&mut model, 1000, "<ctrl+l>");
    tell(&mut model, EventKind::ModelsListed { models: listed(), notices: Vec::new() }, 2000);
    assert!(!draw(&mut model, 2100).contains("in use"), "there is none");
}

#[test]
fn left_and_right_change_the_effort_of_models_that_support_effort() {
    let mut model = opened();
    let sent = play(&mut model, 3000, "opus<right><right><enter>");
    assert_eq!(sent, ["setmodel { name: \"anthropic/opus-5\" }", "seteffort { effort: some(low) }"]);
    let mut model = opened();
    assert_eq!(play(&mut model, 3000, "plain<right><enter>"), ["setmodel { name: \"acme/plain\" }"]);
}

#[test]
fn an_approval_does_not_take_focus_from_the_model_list() {
    let mut model = opened();
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 10_000);
    assert!(!model.dialogs.is_open());
    play(&mut model, 20_000, "y");
    assert!(model.dialogs.approvals() == 1 && model.composer.is_empty());
    play(&mut model, 21_000, "<tab>");
    assert!(model.dialogs.is_open());
}

#[test]
fn the_effort_command_takes_effort_names() {
    check("/effort high<enter>", &["seteffort { effort: some(high) }"], "");
    check("/effort auto<enter>", &["seteffort { effort: none }"], "");
    check("/effort huge<enter>", &[], "/effort huge");
}

#[test]
fn a_model_change_is_reported_and_updates_the_context_window_in_the_status_row() {
    let mut model = model(120, 24);
    model.info.tally.context_tokens = 76_000;
    assert!(draw(&mut model, 100).contains("38% 76k/200k"));
    let facts = ModelFacts { reasoning: true, ..ModelFacts::for_test("acme/small\u{1b}[31m", 100_000, None) };
    let effort = Some(Effort::High);
    tell(&mut model, EventKind::ModelChanged { facts, effort, message: "acme/small answers from now on".to_owned() }, 1000);
    let screen = draw(&mut model, 1100);
    assert!(screen.contains("acme/small answers from now on"), "{screen}");
    assert!(screen.contains("acme/small high │") && screen.contains("76% 76k/100k"), "{screen}");
    let start = EventKind::SessionStarted {
        model: "acme/other".to_owned(),
        mode: Mode::Ask,
        workspace: "/w".to_owned(),
        resumed: true,
        facts: Some(ModelFacts::for_test("acme/other", 50_000, None)),
    };
    tell(&mut model, start, 2000);
    assert!(draw(&mut model, 2100).contains("76k/50k /compact"), "{}", draw(&mut model, 2100));
}

#[test]
fn without_an_api_key_a_second_enter_lists_models_and_choosing_one_makes_the_session_ready() {
    let mut model = model(100, 24);
    model.info.model_access = Some(ModelAccess::NoKey { message: "no key was found: set one".to_owned(), model: None });
    assert_eq!(play(&mut model, 1000, "hello<enter>"), [""; 0]);
    assert!(draw(&mut model, 1100).contains("not sent: no key was found · enter add a key · ctrl+l change model"));
    assert_eq!(play(&mut model, 2000, "<enter>"), ["listmodels { ask: false }", "listmodels { ask: true }"]);
    tell(&mut model, EventKind::ModelsListed { models: listed(), notices: Vec::new() }, 2100);
    draw(&mut model, 2100);
    assert_eq!(play(&mut model, 2200, "opus<enter>"), ["setmodel { name: \"anthropic/opus-5\" }"]);
    assert!(matches!(model.info.model_access, Some(ModelAccess::NoKey { .. })), "nobody has said that it is there");
    let facts = ModelFacts::for_test("anthropic/opus-5", 200_000, None);
    tell(&mut model, EventKind::ModelChanged { facts, effort: None, message: String::new() }, 2300);
    assert_eq!(model.composer.text(), "hello");
    assert!(play(&mut model, 3000, "<enter>").iter().any(|sent| sent.starts_with("prompt")));
}

#[test]
fn with_a_configured_model_its_missing_api_key_is_requested_first() {
    let mut model = model(100, 24);
    let wanted = Some("anthropic/opus-5".to_owned());
    model.info.model_access = Some(ModelAccess::NoKey { message: "no key for `anthropic`: set one".to_owned(), model: wanted });
    play(&mut model, 1000, "hello<enter>");
    for (width, expected) in [(40, "not sent · enter add a key"), (60, "not sent: no key for `anthropic` · enter add a key")] {
        model.screen.size = ratatui::layout::Size::new(width, 20);
        play(&mut model, 1100, "<enter>");
        model.layers.close::<ModelPicker>();
        play(&mut model, 8000, "<enter>");
        let screen = draw(&mut model, 8100);
        assert!(screen.contains(expected) && !screen.contains('…'), "{screen}");
        model.keys.no_key_shown = None;
        play(&mut model, 8200, "<enter>");
    }
    play(&mut model, 8300, "<enter>");
    assert!(draw(&mut model, 8400).contains("key of anthropic:"), "{}", draw(&mut model, 8400));
    assert_eq!(play(&mut model, 9000, "sk-1<enter>"), ["addkey { name: \"anthropic/opus-5\", key: keytext }"]);
    assert_eq!(model.composer.text(), "hello");
}

#[test]
fn the_model_list_requested_during_startup_opens_afterwards() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, ratatui::layout::Size::new(100, 24));
    assert_eq!(play(&mut model, 100, "<ctrl+l>"), [""; 0]);
    assert!(draw(&mut model, 200).contains("the list of models opens as soon as"));
    update(&mut model, Msg::Start(Box::new(crate::tui::tests::fixtures::start())), 300);
    assert!(model.layers.is_open::<ModelPicker>());
}

#[test]
fn the_missing_key_note_disappears_once_a_model_is_ready() {
    let mut model = UiModel::new(options(), None, Size::new(100, 30));
    let model_access =
        ModelAccess::NoKey { message: "No API key for Anthropic".to_owned(), model: Some("anthropic/one".to_owned()) };
    feed(&mut model, Msg::Start(Box::new(Start { model_access, ..start() })), 1000);
    assert!(draw(&mut model, 1100).contains("Press ctrl+l to choose a model and enter its API key."));
    let facts = ModelFacts::for_test("anthropic/one", 200_000, None);
    tell(&mut model, EventKind::ModelChanged { facts, effort: None, message: String::new() }, 2000);
    assert!(
        !draw(&mut model, 2100).contains("Press ctrl+l to choose a model and enter its API key."),
        "{}",
        draw(&mut model, 2100)
    );
}
