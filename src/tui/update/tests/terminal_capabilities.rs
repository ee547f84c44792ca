use super::*;

#[test]
fn parallel_calls_are_counted() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    for id in ["1", "2"] {
        tell(&mut model, requested(id, "RunCommand", "$ make"), 1000);
        tell(
            &mut model,
            EventKind::ToolStarted { tool_call_id: call(id), rule: String::new(), summary: None, effects: None, note: None },
            1000,
        );
    }
    assert!(draw(&mut model, 2000).contains("Running make · 1 more · 1 s"));
    for id in ["2", "1"] {
        tell(&mut model, crate::tui::tests::fixtures::completed(id, ToolStatus::Succeeded, "", None), 3000);
    }
    assert!(draw(&mut model, 3000).contains("Waiting for the model · 0 s"));
}

#[test]
fn messages_disappear_with_the_next_key_or_task() {
    let said = |script: &str, words: &str| {
        let mut model = model(80, 24);
        play(&mut model, 1000, script);
        assert!(draw(&mut model, 3000).contains(words), "{script}");
        model
    };
    let cases = [
        ("x<ctrl+c>", "draft cleared"),
        ("/foo<enter>", "unknown command `/foo`"),
        ("/share<enter>", "/export writes a file"),
        ("<ctrl+c>", "ctrl+c again to quit"),
    ];
    for (script, words) in cases {
        for next in ["b", "<up>", "<pgup>"] {
            let mut model = said(script, words);
            play(&mut model, 3100, next);
            assert!(!draw(&mut model, 3200).contains(words), "{script} {next}");
        }
        let mut model = said(script, words);
        tell(&mut model, started("x"), 3100);
        assert!(!draw(&mut model, 3200).contains(words), "{script}");
        let mut model = said(script, words);
        update(&mut model, Msg::Input(UiInput::Paste("z".to_owned())), 3100);
        assert!(!draw(&mut model, 3200).contains(words), "{script}");
    }
}

#[test]
fn a_cancelled_call_is_shown_as_stopped_and_not_as_failed() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, requested("1", "RunCommand", "$ make"), 1000);
    let error = ToolError::new(ErrorCode::Cancelled, "the task was stopped before this call ran");
    tell(&mut model, crate::tui::tests::fixtures::completed("1", ToolStatus::Failed, "", Some(error)), 2000);
    let screen = draw(&mut model, 2000);
    assert!(screen.contains("⊘ $ make  stopped") && !screen.contains("failed"), "{screen}");
}

#[test]
fn the_continue_hint_is_shown_once_and_never_next_to_a_dialog() {
    let resumed = || {
        let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
        let history = vec![event(started("fix it")), event(requested("9", "RunCommand", "$ x"))];
        update(&mut model, Msg::Start(Box::new(Start { history, ..crate::tui::tests::fixtures::start() })), 0);
        model
    };
    let said = |screen: &str| screen.matches("/continue").count();
    let mut model = resumed();
    assert_eq!(said(&draw(&mut model, 100)), 1);
    let failure = Failure::new(FailureKind::Internal, "aye exited during this task", "continue it, or send another prompt");
    tell(&mut model, EventKind::SessionPaused { failure }, 200);
    assert_eq!(said(&draw(&mut model, 300)), 1);
    let mut model = resumed();
    let kind = EventKind::ToolInterrupted {
        tool_call_id: call("9"),
        tool_name: "RunCommand".to_owned(),
        summary: "$ x".to_owned(),
        known: "it ran".to_owned(),
        last_output: None,
        ran_ms: None,
    };
    tell(&mut model, kind, 5000);
    assert_eq!(said(&draw(&mut model, 5000)), 0);
    tell(&mut model, EventKind::StepStarted { step_count: 2 }, 6000);
    update(&mut model, Msg::Resize(Size::new(80, 24)), 6000);
    assert_eq!(said(&draw(&mut model, 7000)), 0);
}
