//! Tests of the setup by inputs and resulting actions.

use super::*;
use crate::tui::tests::fixtures::setup_found;

fn questions() -> Onboarding {
    Onboarding::new(setup_found(), ["auto", "dark", "light"].map(str::to_owned).to_vec(), "auto")
}

/// Returns the input for a word of a script: `1` chooses the first model or choice, `"…"` is typed, `paste:…` is
/// pasted, `told:…` is a response.
fn input(word: &str, at_end: bool) -> SetupInput<'_> {
    match word {
        "1" | "2" | "3" | "4" => {
            let at = word.parse::<usize>().unwrap() - 1;
            SetupInput::Pick(if at_end { SetupChoice::Approvals(at) } else { SetupChoice::Model(at) })
        }
        "k" => SetupInput::Pick(SetupChoice::Key),
        "u" => SetupInput::Pick(SetupChoice::Address),
        "t" => SetupInput::Pick(SetupChoice::Test),
        "y" => SetupInput::Pick(SetupChoice::Take),
        "b" => SetupInput::Pick(SetupChoice::Back),
        "s" => SetupInput::Pick(SetupChoice::Skip),
        "d" => SetupInput::Pick(SetupChoice::LookDaily),
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
        SetupAction::End { mode, .. } => if mode.is_some() { "over, approvals" } else { "over" }.to_owned(),
    }
}

fn reached(reach: &ModelAddress) -> String {
    let key = reach.key.as_ref().map_or("-", |key| key.0.as_str());
    format!("{} key {key} at {}", reach.model, reach.address.as_deref().unwrap_or("-"))
}

#[test]
fn setup_inputs_lead_to_the_expected_steps() {
    const KEY: &str = "paste:sk-ant-api03-abcdefgh";
    for (script, last) in [
        // Skip all steps, one by one or together; a previewed theme is reset.
        ("esc", "page"),
        ("s", "page"),
        ("esc enter", "end - -; words"),
        ("esc enter told:ended", "over, approvals"),
        ("esc esc", "end - -; over"),
        ("ctrl+c", "end - -; over"),
        ("esc right right esc", "theme auto; end - -; over"),
        // Choose a model that was found: nothing is saved before the confirmation.
        ("1", "page"),
        ("1 y", "take anthropic/claude-sonnet-5 key - at -; words"),
        ("1 y y", ""),
        ("1 y told:failed y", "take anthropic/claude-sonnet-5 key - at -; words"),
        ("1 y told:taken", "use a/m; page"),
        ("1 b 2 t", "test local/qwen3:8b key - at -; words"),
        ("1 t t", ""),
        ("3", ""),
        // A key is recognized and described, and saved only after confirmation. Without a provider it is not used.
        ("k enter", ""),
        ("paste:hello", "page"),
        ("k paste:sk-ant-api03-abcdefgh enter y", "take anthropic/claude-sonnet-5 key sk-ant-api03-abcdefgh at -; words"),
        ("k paste:abcdefghijklmnopqrstuvw enter", "words"),
        (
            "k paste:abcdefghijklmnopqrstuvw right enter t",
            "test anthropic/claude-sonnet-5 key abcdefghijklmnopqrstuvw at -; words",
        ),
        ("k paste:sk-ant-api03-abcdefgh left enter y", "take openai/gpt-5.5 key sk-ant-api03-abcdefgh at -; words"),
        ("k paste:sk-ant-api03-abcdefgh clear enter", ""),
        ("k paste:sk-ant-api03-abcdefgh esc k enter", ""),
        // The user's own server: its address, its model, and its key if it needs one.
        ("u paste:localhost:8000 enter", "words"),
        ("u paste:http://h:8000/v1 enter enter y", "take  key - at http://h:8000/v1; words"),
        ("u paste:http://h/v1_my/model enter paste:secret enter t", "test my/model key secret at http://h/v1; words"),
        // Approvals: one of three choices, then the theme.
        ("esc 3", "end auto -; words"),
        ("esc right 3", "end auto dark; words"),
        ("esc left enter", "end - light; words"),
        ("esc 1 1", ""),
        ("esc 1 told:failed 2", "end effects -; words"),
        ("esc 1 told:ended", "over, approvals"),
    ] {
        let mut questions = questions();
        let mut outs = Vec::new();
        for word in script.split(' ') {
            // An underscore is a space in typed text.
            let word = word.replace('_', " ");
            let at_end = matches!(questions.page, SetupPage::Approvals);
            outs = questions.step(input(&word, at_end));
        }
        let outs: Vec<String> = outs.iter().map(words).collect();
        assert_eq!(outs.join("; "), last, "{script}");
    }
    let mut questions = questions();
    assert!(questions.accepts_paste(&KEY[6..]) && !questions.accepts_paste("hello") && !questions.types());
    questions.step(SetupInput::Pasted(&KEY[6..]));
    assert!(questions.types() && questions.accepts_paste("hello"));
}

#[test]
fn the_model_list_step_follows_the_approvals_step_and_keeps_its_answer() {
    for (script, last) in [
        ("esc 3", "page"),
        ("esc 3 d", "end auto - daily; words"),
        ("esc 3 s", "end auto -; words"),
        ("esc 3 enter", "end auto -; words"),
        ("esc enter enter", "end - -; words"),
        ("esc right 3 d", "end auto dark daily; words"),
        // Go back to the approvals once more.
        ("esc 3 esc", "page"),
        ("esc 3 esc 1 d", "end command - daily; words"),
        ("esc 3 esc enter d", "end - - daily; words"),
        // Leaving the setup saves the choices made so far, and fetches no list.
        ("esc 3 ctrl+c", "end auto -; words"),
        ("esc 3 d ctrl+c", ""),
        ("esc 3 d told:failed s", "end auto -; words"),
    ] {
        let mut questions = questions();
        questions.found.public_list = Some("https://lists.example/models.json".to_owned());
        let mut outs = Vec::new();
        for word in script.split(' ') {
            let at_approvals = matches!(questions.page, SetupPage::Approvals);
            outs = questions.step(input(word, at_approvals));
        }
        let outs: Vec<String> = outs.iter().map(words).collect();
        assert_eq!(outs.join("; "), last, "{script}");
    }
}

#[test]
fn the_result_of_an_abandoned_test_is_not_shown_for_another_model() {
    let mut questions = questions();
    questions.step(SetupInput::Pick(SetupChoice::Model(0)));
    let [SetupAction::Ask(SetupRequest::Test { number, .. }), _] = questions.step(SetupInput::Pick(SetupChoice::Test))[..] else {
        panic!()
    };
    let told = |number| {
        let outcome = TestOutcome::Answered { model: "a/m".to_owned(), latency_ms: 12 };
        SetupInput::Told(SetupEvent::Tested { number, outcome })
    };
    questions.step(SetupInput::Escape);
    questions.step(SetupInput::Pick(SetupChoice::Model(1)));
    assert!(questions.step(told(number)).is_empty());
    let [SetupAction::Ask(SetupRequest::Test { number, .. }), _] = questions.step(SetupInput::Pick(SetupChoice::Test))[..] else {
        panic!()
    };
    assert_eq!(questions.step(told(number)), [SetupAction::Words]);
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
