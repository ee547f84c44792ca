use super::*;

#[test]
fn a_prompt_entered_during_startup_is_sent_afterwards() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
    assert_eq!(play(&mut model, 10, "early<enter>"), Vec::<String>::new());
    let sent: Vec<_> =
        update(&mut model, Msg::Start(Box::new(crate::tui::tests::fixtures::start())), 900).iter().filter_map(words).collect();
    assert_eq!(sent, ["showbudget", "prompt \"early\""]);
}

#[test]
fn a_prompt_sent_during_a_startup_dialog_is_shown_until_its_task_starts() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
    let (trust, _answered) = crate::tui::tests::fixtures::trust(&["AGENTS.md (instructions for the model, 8 bytes)"]);
    let trust = Some(trust);
    update(&mut model, Msg::Start(Box::new(Start { trust, ..crate::tui::tests::fixtures::start() })), 0);
    draw(&mut model, 0);
    assert_eq!(play(&mut model, 2000, "explain it<enter>"), ["prompt \"explain it\""]);
    let screen = draw(&mut model, 5000);
    assert!(screen.contains("will be sent after you answer: explain it"), "{screen}");
    tell(&mut model, started("explain it"), 6000);
    assert!(!draw(&mut model, 6000).contains("sent after"));
}

#[test]
fn queued_prompts_are_shown_and_return_to_the_draft_on_cancel() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, queued(&["second thing", "third thing"]), 1000);
    assert!(draw(&mut model, 1100).contains("2 queued: second thing │ third thing"));
    play(&mut model, 2000, "typed");
    wait(&mut model, 3000);
    tell(&mut model, EventKind::DraftRestored { text: "second thing\n\nthird thing".to_owned() }, 4000);
    tell(&mut model, EventKind::TaskCancelled { step_count: 1 }, 4000);
    assert_eq!(model.composer.text(), "typed\n\nsecond thing\n\nthird thing");
    assert!(!draw(&mut model, 4000).contains("queued:"));
    assert_eq!(wait(&mut model, 5000), ["draft \"typed\\n\\nsecond thing\\n\\nthird thing\""]);
}

#[test]
fn a_queue_left_after_a_failure_shows_the_command_that_sends_its_prompts() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, queued(&["second thing", "third thing"]), 1000);
    let failure = Failure::new(FailureKind::Network, "offline", "try later");
    tell(&mut model, EventKind::TaskFailed { failure, step_count: 1 }, 2000);
    assert!(draw(&mut model, 2000).contains("2 queued · /continue sends them: second thing"));
}
