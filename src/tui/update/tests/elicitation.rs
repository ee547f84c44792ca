//! Tests of input requests from MCP servers: nothing is sent by accident, and no text meant for the draft goes to a
//! server.

use super::*;
use crate::tui::tests::fixtures::{form, text_field, visit};

/// Returns a screen with a server's input request, which is armed.
fn asked(elicitation: Elicitation) -> UiModel {
    let mut model = model(100, 36);
    tell(&mut model, EventKind::ElicitationRequested(elicitation), 5000);
    draw(&mut model, 5000);
    draw(&mut model, 5600);
    assert!(model.dialogs.is_open());
    model
}

fn one_field(default: Option<&str>) -> Elicitation {
    let field = FormField { default: default.map(Into::into), ..text_field("name", true) };
    Elicitation { wanted: ElicitationKind::Form { fields: vec![field] }, ..form("e") }
}

/// Returns the answers that were sent to the server.
fn answers(effects: &[UiEffect]) -> Vec<ElicitationAnswer> {
    let answer = |effect: &UiEffect| match effect {
        UiEffect::SendToHost(HostCommand::AnswerElicitation { answer, .. }) => Some(answer.clone()),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn strike(model: &mut UiModel, script: &str, from: u64) -> Vec<UiEffect> {
    let mut effects = Vec::new();
    for (at, msg) in (from..).step_by(200).zip(keys(script)) {
        effects.extend(update(model, msg, at));
        draw(model, at);
    }
    effects
}

fn lone(model: &mut UiModel, letter: char, at: u64) -> Vec<UiEffect> {
    let mut effects = update(model, press(KeyCode::Char(letter), KeyModifiers::NONE), at);
    effects.extend(update(model, Msg::Time, at + 350));
    draw(model, at + 360);
    effects
}

#[test]
fn enter_after_the_last_field_submits_the_form() {
    let mut model = asked(one_field(None));
    assert_eq!(model.dialogs.open().unwrap().title, "tickets (MCP server) asks for input");
    lone(&mut model, 'f', 7000);
    let sent = strike(&mut model, "Ada<enter>", 8000);
    let content = [("name".to_owned(), "Ada".into())].into_iter().collect();
    assert_eq!(answers(&sent), [ElicitationAnswer::Accept { content }]);
    assert!(!model.dialogs.is_open() && model.composer.is_empty());
    // A later report of the session about the request changes nothing.
    let ended = EventKind::ElicitationEnded { elicitation_id: "e".to_owned(), outcome: ElicitationOutcome::Accepted };
    tell(&mut model, ended, 9500);
    assert!(draw(&mut model, 9600).contains("answer sent to tickets (MCP)"));
}

#[test]
fn invalid_fields_show_an_error_and_nothing_is_sent() {
    let mut model = asked(form("e"));
    assert!(answers(&lone(&mut model, 'y', 7000)).is_empty());
    assert!(answers(&strike(&mut model, "<enter>", 7700)).is_empty(), "a choice that is off is none");
    lone(&mut model, 'f', 9000);
    let sent = strike(&mut model, "nobody<enter><enter><enter><enter><enter><enter>", 10_000);
    assert!(answers(&sent).is_empty());
    let screen = draw(&mut model, 12_000);
    assert!(screen.contains("not an email address (example: ada@example.org)"), "{screen}");
    assert!(screen.contains("> mail (required): nobody"), "{screen}");
}

#[test]
fn escape_returns_to_the_choices_with_the_input_and_decline_and_cancel_differ() {
    for (letter, expected) in [('n', ElicitationAnswer::Decline), ('x', ElicitationAnswer::Cancel)] {
        let mut model = asked(one_field(None));
        lone(&mut model, 'f', 7000);
        strike(&mut model, "Ada<esc>", 8000);
        draw(&mut model, 8700);
        draw(&mut model, 9300);
        assert!(draw(&mut model, 9300).contains("name (required): Ada"));
        let sent = lone(&mut model, letter, 11_000);
        assert_eq!(answers(&sent), [expected]);
    }
    let mut model = asked(one_field(None));
    let sent = strike(&mut model, "<esc>", 7000);
    assert!(answers(&sent).is_empty() && !model.dialogs.is_open());
    assert_eq!(model.dialogs.len(), 1, "it waits, undecided");
}

#[test]
fn a_prefilled_form_is_sent_by_two_keys_and_never_by_one() {
    let mut model = asked(one_field(Some("Ada")));
    assert!(answers(&lone(&mut model, 'y', 7000)).is_empty());
    assert_eq!(answers(&strike(&mut model, "<enter>", 7700)).len(), 1);
    let mut model = asked(one_field(Some("Ada")));
    assert!(answers(&strike(&mut model, "<enter><enter>", 7000)).is_empty());
}

#[test]
fn text_typed_before_the_form_was_seen_is_never_an_answer() {
    for sentence in ["fix it<enter>", "yes please<enter>", "f<enter>y<enter>", "n<enter>"] {
        let mut model = model(100, 36);
        tell(&mut model, EventKind::ElicitationRequested(one_field(Some("Ada"))), 5000);
        let mut sent = Vec::new();
        for (at, msg) in (5001..).step_by(40).zip(keys(sentence)) {
            sent.extend(update(&mut model, msg, at));
        }
        assert!(answers(&sent).is_empty(), "{sentence}");
        let prompts = sent.iter().filter(|effect| matches!(effect, UiEffect::Send(Command::Prompt { .. }))).count();
        let is_marked = model.dialogs.open().is_some_and(|panel| panel.guard.is_choice_pending());
        assert!(prompts > 0 || is_marked || !model.composer.is_empty(), "{sentence}: nothing is lost");
    }
}

#[test]
fn a_form_left_open_does_not_receive_text_typed_later() {
    let mut model = asked(one_field(None));
    lone(&mut model, 'f', 7000);
    strike(&mut model, "Ada<ctrl+c>", 8000);
    assert!(!model.dialogs.is_open());
    strike(&mut model, "<tab>", 10_000);
    assert!(model.dialogs.is_open());
    let sent = strike(&mut model, "go on then<enter>", 10_100);
    assert!(answers(&sent).is_empty());
    assert!(sent.iter().any(|effect| matches!(effect, UiEffect::Send(Command::Prompt { text }) if text == "go on then")));
}

#[test]
fn pasting_into_a_field_sends_nothing_and_pasting_at_the_choices_goes_to_the_draft() {
    let mut model = asked(one_field(None));
    lone(&mut model, 'f', 7000);
    let sent = update(&mut model, Msg::Input(UiInput::Paste("Ada\nLovelace\n".to_owned())), 8000);
    assert!(answers(&sent).is_empty());
    assert!(draw(&mut model, 8100).contains("name (required): Ada Lovelace"));
    let mut model = asked(one_field(None));
    update(&mut model, Msg::Input(UiInput::Paste("y\n".to_owned())), 8000);
    assert_eq!(model.composer.text(), "y\n");
}

#[test]
fn a_url_is_copied_without_control_characters_and_never_opened() {
    let mut model = asked(visit("e", "https://mcp.example.org/login?next=/a\n\u{1b}[2J b"));
    let screen = draw(&mut model, 6000);
    assert!(screen.contains("at  mcp.example.org") && !screen.contains('\u{1b}'), "{screen}");
    let sent = lone(&mut model, 'c', 7000);
    let copied: Vec<String> = sent.iter().filter_map(words).collect();
    assert_eq!(copied, ["copy \"https://mcp.example.org/login?next=/a[2Jb\" (the URL)"]);
    assert!(answers(&strike(&mut model, "<enter>", 8000)).is_empty());
    lone(&mut model, 'y', 9000);
    let content = serde_json::Map::new();
    assert_eq!(answers(&strike(&mut model, "<enter>", 9700)), [ElicitationAnswer::Accept { content }]);
}

#[test]
fn misleading_urls_show_a_warning() {
    for (url, said) in [
        ("https://github.com@evil.example/x", "the text before @ is a user name"),
        ("http://example.org/", "not encrypted"),
        ("https://xn--pple-43d.com/", "may imitate another host"),
        ("https://аpple.com/", "may imitate another host"),
        ("javascript:alert(1)", "not a web address"),
        ("file:///etc/passwd", "no host: this opens a program"),
    ] {
        let mut model = asked(visit("e", url));
        let screen = draw(&mut model, 6000);
        assert!(screen.contains(said), "{url}\n{screen}");
    }
    let mut model = asked(visit("e", "http://localhost:3000/x"));
    assert!(!draw(&mut model, 6000).contains("not encrypted"));
}

#[test]
fn an_elicitation_closes_when_its_call_ends() {
    let mut model = asked(one_field(None));
    lone(&mut model, 'f', 7000);
    strike(&mut model, "Ada", 8000);
    let ended = EventKind::ElicitationEnded { elicitation_id: "e".to_owned(), outcome: ElicitationOutcome::Withdrawn };
    tell(&mut model, ended, 9000);
    assert!(model.dialogs.is_empty());
    assert_eq!(model.composer.text(), "", "what was for the server is no draft");
    assert!(draw(&mut model, 9100).contains("tickets (MCP) no longer needs an answer"));
}

#[test]
fn the_current_field_is_visible_on_a_small_screen() {
    let mut model = model(40, 12);
    tell(&mut model, EventKind::ElicitationRequested(form("e")), 5000);
    draw(&mut model, 5000);
    draw(&mut model, 5600);
    lone(&mut model, 'f', 7000);
    for (step, name) in ["count", "urgent", "size", "colours", "apiToken", "Name", "mail"].into_iter().enumerate() {
        strike(&mut model, "<tab>", 8000 + step as u64 * 500);
        let screen = draw(&mut model, 8200 + step as u64 * 500);
        assert!(screen.contains(&format!("> {name}")), "{name}\n{screen}");
    }
}
