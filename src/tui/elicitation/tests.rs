//! Tests of forms from MCP servers: typed values, lines entered in line mode, and the resulting answers.

use super::{ElicitationForm, EnterResult};
use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationKind, FieldKind, FormField};
use crate::tui::tests::fixtures::{field, form, text_field};
use proptest::prelude::*;
use serde_json::{Value, json};

fn asking(fields: Vec<FormField>) -> ElicitationForm {
    let (server, message) = ("docs".to_owned(), "Which?".to_owned());
    ElicitationForm::new(Elicitation {
        elicitation_id: "e".to_owned(),
        server,
        message,
        wanted: ElicitationKind::Form { fields },
    })
}

/// Returns the outcome of typing a value into a field.
fn typed(takes: FieldKind, words: &str) -> Result<Value, String> {
    let mut asking = asking(vec![field("x", true, takes)]);
    asking.fill();
    asking.entry_mut().unwrap().set_text(words);
    asking.entry().unwrap().1.value().map(|value| value.unwrap_or_default())
}

#[test]
fn input_is_validated_against_the_schema_from_the_server() {
    let text =
        |format: Option<&str>| FieldKind::Text { min_length: Some(2), max_length: Some(40), format: format.map(str::to_owned) };
    let number = |whole| FieldKind::Number { whole, minimum: Some(-1.0), maximum: Some(9.5) };
    for (takes, words, expected) in [
        (text(None), "äb", Ok(json!("äb"))),
        (text(None), "a", Err("too short: at least 2 characters")),
        (text(None), "", Err("this field is required")),
        (text(Some("email")), "ada@example.org", Ok(json!("ada@example.org"))),
        (text(Some("email")), "ada@", Err("not an email address (example: ada@example.org)")),
        (text(Some("uri")), "urn:x", Ok(json!("urn:x"))),
        (text(Some("uri")), "no address", Err("not a URL (example: https://example.org)")),
        (text(Some("date")), "2026-02-28", Ok(json!("2026-02-28"))),
        (text(Some("date")), "2026-02-30", Err("not a date (example: 2026-01-31)")),
        (text(Some("date-time")), "2026-02-28T10:00:00Z", Ok(json!("2026-02-28T10:00:00Z"))),
        (text(Some("date-time")), "10:00", Err("not a date and time (example: 2026-01-31T12:00:00Z)")),
        (text(Some("unheard-of")), "anything", Ok(json!("anything"))),
        (number(true), " 3 ", Ok(json!(3))),
        (number(true), "3.5", Err("not a whole number (example: 3)")),
        (number(true), "12", Err("too large: at most 9.5")),
        (number(false), "0.25", Ok(json!(0.25))),
        (number(false), "-2", Err("too small: at least -1")),
        (number(false), "NaN", Err("not a number (example: 3 or 0.5)")),
    ] {
        assert_eq!(typed(takes, words), expected.map_err(str::to_owned), "{words}");
    }
}

#[test]
fn defaults_are_prefilled_unless_invalid_or_hiding_text() {
    let suggested = |takes, default: Value| {
        let asking = asking(vec![FormField { default: Some(default), ..field("x", false, takes) }]);
        asking.entries()[0].value()
    };
    let text = || FieldKind::Text { min_length: None, max_length: None, format: None };
    let choices = || [("a", "One"), ("b", "Two")].map(|(value, name)| (value.to_owned(), name.to_owned())).to_vec();
    let several = || FieldKind::Choices { choices: choices(), min: None, max: Some(1) };
    for (takes, default, expected) in [
        (text(), json!("Ada"), Some(json!("Ada"))),
        (text(), json!("Ada\u{202e}"), None),
        (text(), json!("two\nlines"), None),
        (text(), json!(3), Some(json!("3"))),
        (FieldKind::Number { whole: true, minimum: None, maximum: None }, json!(3), Some(json!(3))),
        (FieldKind::Flag, json!(false), Some(json!(false))),
        (FieldKind::Flag, json!("false"), None),
        (FieldKind::Choice { choices: choices() }, json!("b"), Some(json!("b"))),
        (FieldKind::Choice { choices: choices() }, json!("Two"), None),
        (several(), json!(["b"]), Some(json!(["b"]))),
        (several(), json!([]), None),
    ] {
        assert_eq!(suggested(takes, default.clone()), Ok(expected), "{default}");
    }
    assert_eq!(suggested(several(), json!(["a", "b"])), Err("choose at most 1".to_owned()));
}

#[test]
fn fields_that_ask_for_secrets_are_detected() {
    for (name, looks) in [
        ("password", true),
        ("apiToken", true),
        ("API_KEY", true),
        ("github_tokens", true),
        ("clientSecret", true),
        ("PIN", true),
        ("user-passphrase", true),
        ("pinned", false),
        ("spinner", false),
        ("tokenizer", false),
        ("name", false),
        ("keyboard", false),
    ] {
        let asking = asking(vec![text_field(name, false)]);
        assert_eq!(asking.entries()[0].looks_secret(), looks, "{name}");
    }
    let titled = FormField { description: Some("Your API key, please".to_owned()), ..text_field("x", false) };
    assert!(asking(vec![titled]).entries()[0].looks_secret());
}

#[test]
fn enter_moves_to_the_next_field_and_submits_only_a_complete_form() {
    let mut asking = ElicitationForm::new(form("e"));
    assert!(asking.answer().is_none(), "the mail is missing");
    asking.fill();
    assert_eq!(asking.entry().unwrap().1.name(), "mail", "what is missing comes first");
    asking.entry_mut().unwrap().set_text("not an email");
    for expected in ["count", "urgent", "size", "colours", "apiToken"] {
        assert_eq!(asking.on_enter(), EnterResult::Next);
        assert_eq!(asking.entry().unwrap().1.name(), expected);
    }
    assert_eq!(asking.on_enter(), EnterResult::Next);
    assert_eq!(asking.entry().unwrap().1.name(), "mail", "it is wrong still");
    asking.entry_mut().unwrap().set_text("ada@example.org");
    asking.turn(true);
    asking.entry_mut().unwrap().set_text("3");
    asking.turn(true);
    asking.entry_mut().unwrap().flip();
    asking.turn(true);
    asking.entry_mut().unwrap().step(true);
    asking.turn(true);
    asking.entry_mut().unwrap().step(true);
    asking.entry_mut().unwrap().flip();
    asking.turn(true);
    let content = json!({
        "name": "Ada", "mail": "ada@example.org", "count": 3, "urgent": true, "size": "large", "colours": ["green"],
    });
    let Value::Object(content) = content else { panic!() };
    assert_eq!(asking.on_enter(), EnterResult::Whole(ElicitationAnswer::Accept { content }));
}

#[test]
fn plain_mode_fills_in_the_form_line_by_line() {
    let mut asking = ElicitationForm::new(form("e"));
    asking.fill();
    assert!(asking.take_line("nonsense").is_err());
    assert_eq!(asking.entry().unwrap().1.display_value(), "–", "what is not taken leaves nothing");
    asking.take_line("ada@example.org").unwrap();
    assert_eq!(asking.take_line("many"), Err("not a whole number (example: 3)".to_owned()));
    asking.take_line("").unwrap();
    assert_eq!(asking.take_line("maybe"), Err("enter yes or no".to_owned()));
    asking.take_line("No").unwrap();
    asking.take_line("2").unwrap();
    assert_eq!(asking.take_line("red, blue"), Err("`blue` is not one of the choices".to_owned()));
    asking.take_line("red, 2").unwrap();
    asking.take_line("").unwrap();
    assert!(!asking.is_filling(), "behind the last it is all to be looked at");
    let Some(ElicitationAnswer::Accept { content }) = asking.answer() else { panic!() };
    let expected = json!({
        "name": "Ada", "mail": "ada@example.org", "urgent": false, "size": "large", "colours": ["red", "green"],
    });
    assert_eq!(Value::Object(content), expected);
}

proptest! {
    #[test]
    fn arbitrary_forms_do_not_panic(name in ".{0,20}", title in prop::option::of(".{0,40}"), typed in ".{0,60}", line in ".{0,40}") {
        let takes = FieldKind::Text { min_length: Some(1), max_length: Some(3), format: Some("email".to_owned()) };
        let number = FieldKind::Number { whole: false, minimum: Some(0.5), maximum: None };
        let choices = FieldKind::Choices { choices: vec![(name.clone(), typed.clone())], min: Some(2), max: Some(1) };
        let none = FieldKind::Choice { choices: Vec::new() };
        let fields = [takes, number, choices, none, FieldKind::Flag];
        let fields = fields.map(|takes| FormField { title: title.clone(), ..field(&name, true, takes) }).to_vec();
        let mut asking = asking(fields);
        asking.fill();
        for _ in 0..6 {
            let _ = asking.take_line(&line);
            if let Some(entry) = asking.entry_mut() {
                entry.set_text(&typed);
                entry.step(false);
                entry.flip();
                let _ = (entry.display_value(), entry.options(), entry.value());
            }
            asking.turn(true);
            asking.on_enter();
        }
        let panel = Box::new(asking).panel();
        prop_assert!(!panel.title.chars().any(char::is_control));
    }
}
