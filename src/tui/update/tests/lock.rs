use super::*;
use crate::tui::interface::{LockAnswer, LockQuestion, Start, StartupQuestion};
use crate::tui::tests::fixtures::{feed, options, start};
use tokio::sync::oneshot;

/// Returns a screen before startup is complete, with the dialog about a locked session.
fn held(problem: Option<&str>, stays: Option<&str>) -> (UiModel, oneshot::Receiver<LockAnswer>) {
    let mut model = UiModel::new(options(), None, Size::new(100, 24));
    let (held, answered) = crate::tui::tests::fixtures::held(problem, stays);
    feed(&mut model, Msg::Ahead(Box::new(StartupQuestion::Held(held))), 1000);
    draw(&mut model, 1001);
    (model, answered)
}

#[test]
fn taking_over_a_session_needs_two_keys() {
    let (mut model, _answered) = held(None, None);
    let screen = draw(&mut model, 1500);
    assert!(screen.contains("Session 7f3a is open in process 4711 (since 14:02)"), "{screen}");
    assert_eq!(play(&mut model, 3000, "t"), [""; 0]);
    assert_eq!(wait(&mut model, 3400), [""; 0]);
    assert_eq!(play(&mut model, 3700, "<enter>"), ["held TakeOver"]);
    assert!(model.dialogs.is_empty());
    assert!(draw(&mut model, 4000).contains("asked process 4711 to save and exit"));
}

#[test]
fn a_failed_takeover_is_shown_when_the_dialog_opens_again() {
    let (mut model, _first) = held(None, None);
    let (again, _second): (LockQuestion, _) =
        crate::tui::tests::fixtures::held(Some("process 4711 did not end within 5 s"), Some("it is not yours"));
    feed(&mut model, Msg::Ahead(Box::new(StartupQuestion::Held(again))), 9000);
    assert_eq!(model.dialogs.len(), 1);
    let screen = draw(&mut model, 9001);
    assert!(screen.contains("did not end within 5 s") && screen.contains("cannot take over: it is not yours"), "{screen}");
    assert_eq!(play(&mut model, 12_000, "t"), [""; 0]);
    assert_eq!(play(&mut model, 12_700, "<enter>"), [""; 0], "what cannot be done is not done");
}

#[test]
fn a_sentence_typed_into_the_lock_dialog_decides_nothing() {
    let (mut model, _answered) = held(None, None);
    assert!(play(&mut model, 3000, "try that").iter().all(|sent| sent.starts_with("draft")));
    assert_eq!(model.composer.text(), "try that");
}

#[test]
fn a_read_only_session_sends_nothing_and_names_the_owner() {
    let (mut model, _answered) = held(None, None);
    assert_eq!(play(&mut model, 3000, "r"), [""; 0]);
    assert_eq!(wait(&mut model, 3400), ["held ReadOnly"]);
    let access = ModelAccess::ReadOnly { holder: "open in process 4711".to_owned() };
    feed(&mut model, Msg::Start(Box::new(Start { model_access: access, history: vec![event(started("x"))], ..start() })), 4000);
    let screen = draw(&mut model, 4001);
    assert!(screen.contains("read-only: open in process 4711"), "{screen}");
    assert!(play(&mut model, 6000, "go on<enter>").iter().all(|sent| !sent.starts_with("prompt")));
    assert_eq!(model.composer.text(), "go on");
}

#[test]
fn choosing_another_session_or_quitting_sends_the_answer_and_exits() {
    for (key, sent) in [("n", ["held Another", "exit Another"]), ("q", ["held Quit", "exit Quit"])] {
        let (mut model, _answered) = held(None, None);
        assert_eq!(play(&mut model, 3000, key), [""; 0]);
        assert_eq!(wait(&mut model, 3400), sent);
    }
}
