//! Tests of the first-run setup: inputs and the actions that they result in.

use super::*;
use crate::tui::tests::fixtures::setup_found;

fn questions() -> Onboarding {
    Onboarding::new(setup_found(), ["auto", "dark", "light"].map(str::to_owned).to_vec(), "auto")
}

/// Returns the input that a word of a script stands for: `k` is a choice, `paste:…` is a paste, and `told:…` is a
/// response.
fn input(word: &str) -> SetupInput<'_> {
    match word {
        "y" => SetupInput::Pick(SetupChoice::Save),
        "k" => SetupInput::Pick(SetupChoice::Key),
        "u" => SetupInput::Pick(SetupChoice::Address),
        "t" => SetupInput::Pick(SetupChoice::Test),
        "s" => SetupInput::Pick(SetupChoice::Skip),
        "up" => SetupInput::Move(-1),
        "down" => SetupInput::Move(1),
        "enter" => SetupInput::Enter,
        "esc" => SetupInput::Escape,
        "ctrl+c" => SetupInput::Leave,
        "clear" => SetupInput::Clear,
        "left" => SetupInput::Turn(-1),
        "right" => SetupInput::Turn(1),
        "told:taken" => SetupInput::Told(SetupEvent::Taken { model: "a/m".to_owned(), lines: vec!["wrote it".to_owned()] }),
        "told:ended" => SetupInput::Told(SetupEvent::Ended { mode: Some(Mode::Ask), lines: Vec::new() }),
        "told:failed" => SetupInput::Told(SetupEvent::Failed { problem: "the disk is full".into() }),
        word => SetupInput::Pasted(word.strip_prefix("paste:").expect("a word of the script")),
    }
}

fn words(out: &SetupAction) -> String {
    match out {
        SetupAction::Ask(SetupRequest::Test { reach, .. }) => format!("test {}", reached(reach)),
        SetupAction::Ask(SetupRequest::Take { reach }) => format!("take {}", reached(reach)),
        SetupAction::Ask(SetupRequest::End { approvals, theme, looks_daily }) => {
            let daily = if *looks_daily { " daily" } else { "" };
            format!("end {} {}{daily}", approvals.as_deref().unwrap_or("-"), theme.as_deref().unwrap_or("-"))
        }
        SetupAction::Ask(SetupRequest::Look) => "look".to_owned(),
        SetupAction::Show => "page".to_owned(),
        SetupAction::Words => "words".to_owned(),
        SetupAction::Use { model, .. } => format!("use {model}"),
        SetupAction::Theme(name) => format!("theme {name}"),
        SetupAction::Notice(_) => "notice".to_owned(),
        SetupAction::End { mode, .. } => if mode.is_some() { "over, approvals" } else { "over" }.to_owned(),
    }
}

fn reached(reach: &ModelAddress) -> String {
    let key = reach.key.as_ref().map_or("-", |key| key.0.as_str());
    format!("{} key {key} at {}", reach.model, reach.address.as_deref().unwrap_or("-"))
}

/// Returns the actions that the last input of a script results in.
fn last(questions: &mut Onboarding, script: &str) -> String {
    let mut outs = Vec::new();
    for word in script.split(' ') {
        // An underscore represents a space in typed text.
        let word = word.replace('_', " ");
        outs = questions.step(input(&word));
    }
    outs.iter().map(words).collect::<Vec<_>>().join("; ")
}

#[test]
fn setup_inputs_lead_to_the_expected_steps() {
    const KEY: &str = "paste:sk-ant-api03-abcdefgh";
    for (script, expected) in [
        // Nothing is saved without a choice, and a previewed theme is reset.
        ("esc", "end - -; over"),
        ("s", "end - -; over"),
        ("ctrl+c", "end - -; over"),
        ("up right right esc", "theme auto; end - -; over"),
        ("enter", ""),
        // All suggested values are saved at once: the model first, and then the other settings.
        ("y", "take anthropic/claude-sonnet-5 key - at -; words"),
        ("y y", ""),
        ("y right", ""),
        ("y told:taken", "use a/m; end effects -; words"),
        ("y told:taken told:ended", "over, approvals"),
        ("y told:failed y", "take anthropic/claude-sonnet-5 key - at -; words"),
        ("y told:taken told:failed y", "end effects -; words"),
        // Another model from the list, or no change of the model.
        ("right y", "take local/qwen3:8b key - at -; words"),
        ("right t", "test local/qwen3:8b key - at -; words"),
        ("t t", ""),
        ("left y", "end effects -; words"),
        // A key is recognized and described, and saved only with the card. A key without a provider is not used.
        ("k enter", ""),
        ("paste:hello", "page"),
        ("k paste:sk-ant-api03-abcdefgh enter", "page"),
        ("k paste:sk-ant-api03-abcdefgh enter y", "take anthropic/claude-sonnet-5 key sk-ant-api03-abcdefgh at -; words"),
        ("k paste:abcdefghijklmnopqrstuvw enter", "words"),
        (
            "k paste:abcdefghijklmnopqrstuvw right enter t",
            "test anthropic/claude-sonnet-5 key abcdefghijklmnopqrstuvw at -; words",
        ),
        ("k paste:sk-ant-api03-abcdefgh left enter y", "take openai/gpt-5.5 key sk-ant-api03-abcdefgh at -; words"),
        ("k paste:sk-ant-api03-abcdefgh clear enter", ""),
        ("k paste:sk-ant-api03-abcdefgh esc k enter", ""),
        ("k paste:sk-ant-api03-abcdefgh esc y", "take anthropic/claude-sonnet-5 key - at -; words"),
        // Escape removes a typed key before it closes the card.
        ("k paste:sk-ant-api03-abcdefgh enter esc", "notice; words"),
        ("k paste:sk-ant-api03-abcdefgh enter esc y", "end effects -; words"),
        ("k paste:sk-ant-api03-abcdefgh enter esc esc", "end - -; over"),
        // A key that is pasted while the card is being saved is ignored.
        ("y paste:sk-ant-api03-abcdefgh", ""),
        // A server of the user: its address, its model, and its API key if it needs one.
        ("u paste:localhost:8000 enter", "words"),
        ("u paste:http://h:8000/v1 enter enter y", "take  key - at http://h:8000/v1; words"),
        ("u paste:http://h/v1_my/model enter paste:secret enter t", "test my/model key secret at http://h/v1; words"),
        // Approvals and theme. The rows wrap around.
        ("left down right y", "end auto -; words"),
        ("left down left y", "end command -; words"),
        ("left up right y", "end effects dark; words"),
        ("left down down left y", "end effects light; words"),
    ] {
        assert_eq!(last(&mut questions(), script), expected, "{script}");
    }
    let mut questions = questions();
    assert!(questions.accepts_paste(&KEY[6..]) && !questions.accepts_paste("hello") && !questions.types());
    questions.waits = true;
    assert!(questions.accepts_paste(&KEY[6..]), "a key never goes to the draft");
    questions.waits = false;
    questions.step(SetupInput::Pasted(&KEY[6..]));
    assert!(questions.types() && questions.accepts_paste("hello"));
}

#[test]
fn the_card_asks_about_the_model_list_only_if_none_is_configured() {
    for (script, expected) in [
        ("left down down right y", "end effects - daily; words"),
        ("left down down right right y", "end effects -; words"),
        ("left down down down right y", "end effects dark; words"),
    ] {
        let mut questions = questions();
        questions.found.public_list = Some("https://lists.example/models.json".to_owned());
        assert_eq!(last(&mut questions, script), expected, "{script}");
    }
}

#[test]
fn configured_values_are_kept_unless_they_are_changed() {
    let configured = || {
        let found = SetupInfo {
            model_now: Some("anthropic/claude-opus".to_owned()),
            approvals_now: Some("auto".to_owned()),
            ..setup_found()
        };
        Onboarding::new(found, vec!["auto".to_owned()], "auto")
    };
    assert_eq!(last(&mut configured(), "y"), "end - -; words");
    assert_eq!(last(&mut configured(), "t"), "test anthropic/claude-opus key - at -; words");
    assert_eq!(last(&mut configured(), "down right y"), "end command -; words");
}

#[test]
fn the_approvals_row_offers_each_choice_once() {
    for (now, expected) in [
        (None, ["effects", "auto", "command"]),
        (Some("command"), ["-", "effects", "auto"]),
        (Some("effects"), ["-", "auto", "command"]),
        (Some("auto"), ["-", "command", "effects"]),
    ] {
        let found = SetupInfo { approvals_now: now.map(str::to_owned), models: Vec::new(), ..setup_found() };
        let offered = (0..6).map(|turns| {
            let mut questions = Onboarding::new(found.clone(), vec!["auto".to_owned()], "auto");
            last(&mut questions, &format!("down{} y", " right".repeat(turns)))
        });
        let twice = expected.iter().chain(&expected).map(|name| format!("end {name} -; words"));
        assert_eq!(offered.collect::<Vec<_>>(), twice.collect::<Vec<_>>(), "{now:?}");
    }
}

#[test]
fn the_result_of_an_abandoned_test_is_not_shown_for_another_model() {
    let mut questions = questions();
    let number = |outs: Vec<SetupAction>| match outs[..] {
        [SetupAction::Ask(SetupRequest::Test { number, .. }), _] => number,
        _ => panic!("{outs:?}"),
    };
    let first = number(questions.step(SetupInput::Pick(SetupChoice::Test)));
    let told = |number| {
        let outcome = TestOutcome::Answered { model: "a/m".to_owned(), latency_ms: 12 };
        SetupInput::Told(SetupEvent::Tested { number, outcome })
    };
    questions.step(SetupInput::Turn(1));
    assert!(questions.step(told(first)).is_empty());
    let second = number(questions.step(SetupInput::Pick(SetupChoice::Test)));
    assert!(questions.step(told(first)).is_empty());
    assert_eq!(questions.step(told(second)), [SetupAction::Words]);
}

#[test]
fn api_keys_are_recognized_by_prefix_and_never_printed() {
    for (key, provider) in [
        ("sk-ant-api03-abcdefgh", Some("anthropic")),
        (" sk-proj-abcdefghijk\n", Some("openai")),
        ("sk-abcdefghijklmnop", Some("openai")),
        ("sk-or-v1-abcdefghijk", Some("openrouter")),
        ("AIzaabcdefghijklmnop", Some("gemini")),
        ("xai-abcdefghijklmnop", Some("xai")),
        ("gsk_abcdefghijklmnop", Some("groq")),
        ("sk-ant", None),
        ("abcdefghijklmnopqrstuv", None),
        ("sk-ant-api03 is what keys begin with", None),
    ] {
        assert_eq!(provider_of_key(key), provider, "{key}");
    }
    let mut questions = questions();
    questions.step(SetupInput::Pick(SetupChoice::Key));
    questions.step(SetupInput::Pasted("sk-ant-api03-abcdefgh"));
    assert!(!format!("{questions:?}").contains("abcdefgh"));
    let outs = questions.step(SetupInput::Enter);
    assert!(!format!("{questions:?} {outs:?}").contains("abcdefgh"));
}
