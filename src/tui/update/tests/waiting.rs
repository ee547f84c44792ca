use super::*;
use crate::tui::layers::Overview;

fn waiting(messages: &[(u64, &str, bool)]) -> EventKind {
    let one = |(id, text, steer): &(u64, &str, bool)| QueuedMessage { id: *id, text: (*text).to_owned(), steer: *steer };
    EventKind::QueueChanged { waiting: messages.iter().map(one).collect() }
}

/// Returns a screen on which a task is running and the given messages are queued.
fn running(messages: &[(u64, &str, bool)]) -> UiModel {
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, waiting(messages), 1000);
    model
}

#[test]
fn enter_queues_and_ctrl_enter_steers_while_a_task_is_running() {
    let mut model = running(&[]);
    assert_eq!(play(&mut model, 2000, "later<enter>"), ["prompt \"later\""]);
    assert_eq!(play(&mut model, 3000, "now<ctrl+enter>"), ["steer { text: \"now\" }"]);
    let mut idle = crate::tui::tests::fixtures::model(80, 24);
    assert_eq!(play(&mut idle, 2000, "now<ctrl+enter>"), ["prompt \"now\""], "there is nothing to steer");
}

#[test]
fn steer_accepts_paths_and_newlines_and_requires_a_message() {
    let mut model = running(&[]);
    assert_eq!(play(&mut model, 2000, "/steer look at src/main.rs<enter>"), ["steer { text: \"look at src/main.rs\" }"]);
    assert_eq!(play(&mut model, 9000, "/steer a<ctrl+j>b<enter>"), ["steer { text: \"a\\nb\" }"]);
    assert_eq!(play(&mut model, 12_000, "/steer<enter>"), [""; 0]);
    assert_eq!(model.composer.text(), "/steer");
    assert!(draw(&mut model, 12_800).contains("missing message"));
}

#[test]
fn steering_messages_are_shown_separately_from_queued_ones() {
    let mut model = running(&[(1, "the README\u{1b}[31m too", false), (2, "use tabs", true)]);
    let screen = draw(&mut model, 2000);
    assert!(screen.contains("1 for the next step: use tabs"), "{screen}");
    assert!(screen.contains("1 queued: the README") && !screen.contains('\u{1b}'), "{screen}");
    assert!(screen.contains("alt+up edit queued"), "{screen}");
}

#[test]
fn steering_messages_appear_where_the_model_received_them() {
    let mut model = running(&[(1, "use tabs", true)]);
    tell(&mut model, text("I begin.\n"), 1500);
    tell(&mut model, waiting(&[]), 2000);
    tell(&mut model, EventKind::Steered { text: "use tabs".to_owned() }, 2000);
    tell(&mut model, text("With tabs.\n"), 2500);
    let screen = draw(&mut model, 3000);
    let places = ["I begin.", "❯ use tabs", "With tabs."].map(|words| screen.find(words));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{screen}");
    assert!(!screen.contains("for the next step"), "{screen}");
}

#[test]
fn alt_up_saves_the_last_queued_message_as_draft_before_unqueueing() {
    let mut model = running(&[(1, "first", false), (2, "second", false)]);
    let sent = play(&mut model, 2000, "<alt+up>");
    assert_eq!(sent, ["draft \"second\"", "editwaiting { id: 2, text: \"\" }"]);
    tell(&mut model, waiting(&[(1, "first", false)]), 2100);
    assert_eq!(play(&mut model, 2200, "!<enter>"), ["prompt \"second!\""]);
    assert_eq!(play(&mut model, 3000, "a<alt+up>"), ["draft \"first\\n\\na\"", "editwaiting { id: 1, text: \"\" }"]);
    assert_eq!(model.composer.text(), "first\n\na");
    assert_eq!(play(&mut model, 4000, "<alt+up>"), [""; 0]);
}

#[test]
fn an_unqueued_message_keeps_its_kind_when_resent_unless_the_draft_was_cleared() {
    let mut model = running(&[(1, "tabs", true)]);
    play(&mut model, 2000, "<alt+up>");
    tell(&mut model, waiting(&[]), 2100);
    assert_eq!(play(&mut model, 2200, "!<enter>"), ["steer { text: \"tabs!\" }"]);
    tell(&mut model, waiting(&[(2, "no", true)]), 3000);
    play(&mut model, 3000, "<alt+up>");
    assert_eq!(play(&mut model, 3200, "<backspace><backspace>other<enter>"), ["prompt \"other\""]);
}

#[test]
fn a_message_sent_before_being_unqueued_is_removed_from_the_draft() {
    let said = |steer: bool| {
        if steer { EventKind::Steered { text: "tabs".to_owned() } } else { started("tabs") }
    };
    for steer in [true, false] {
        for queue_first in [true, false] {
            let mut model = running(&[(1, "tabs", steer)]);
            play(&mut model, 2000, "<alt+up>");
            let mut events = [waiting(&[]), said(steer)];
            if !queue_first {
                events.reverse();
            }
            for kind in events {
                tell(&mut model, kind, 2100);
            }
            assert_eq!(model.composer.text(), "", "{steer} {queue_first}");
            assert!(draw(&mut model, 2200).contains("the message was already sent to the model"));
        }
    }
}

#[test]
fn messages_sent_together_before_being_unqueued_are_removed_from_the_draft() {
    let mut model = running(&[(1, "tabs", true), (2, "and short names", true)]);
    play(&mut model, 2000, "<alt+up><alt+up>");
    assert_eq!(model.composer.text(), "tabs\n\nand short names");
    tell(&mut model, waiting(&[]), 2300);
    tell(&mut model, EventKind::Steered { text: "tabs\n\nand short names".to_owned() }, 2300);
    assert_eq!(model.composer.text(), "");
}

#[test]
fn sending_another_message_with_the_same_text_keeps_the_draft() {
    let mut model = running(&[(1, "go on", false), (2, "go on", false)]);
    play(&mut model, 2000, "<alt+up>");
    // The first message is sent before the second one is moved back to the draft.
    tell(&mut model, waiting(&[(2, "go on", false)]), 2100);
    tell(&mut model, started("go on"), 2100);
    tell(&mut model, waiting(&[]), 2200);
    assert_eq!(model.composer.text(), "go on");
    let mut model = running(&[(1, "go on", false), (2, "go on", false)]);
    play(&mut model, 2000, "<alt+up>");
    // The second message is moved back to the draft before the first one is sent.
    tell(&mut model, waiting(&[(1, "go on", false)]), 2100);
    tell(&mut model, waiting(&[]), 2200);
    tell(&mut model, started("go on"), 2200);
    assert_eq!(model.composer.text(), "go on");
}

#[test]
fn edits_to_an_already_sent_message_stay_in_the_draft() {
    let mut model = running(&[(1, "tabs", true)]);
    play(&mut model, 2000, "<alt+up> <backspace><backspace>");
    tell(&mut model, waiting(&[]), 2500);
    tell(&mut model, EventKind::Steered { text: "tabs".to_owned() }, 2500);
    assert_eq!(model.composer.text(), "tab");
    assert!(draw(&mut model, 2600).contains("your changes are still in the draft"));
}

#[test]
fn the_queue_is_listed_and_edited_by_number() {
    let mut model = running(&[(3, "tabs", true), (4, "the README", false)]);
    play(&mut model, 2000, "/queue<enter>");
    let screen = draw(&mut model, 2900);
    assert!(screen.contains("3  next step       tabs") && screen.contains("4  after the task  the README"), "{screen}");
    assert_eq!(play(&mut model, 2950, "<esc>"), [""; 0]);
    assert_eq!(play(&mut model, 3000, "/queue drop 4<enter>"), ["editwaiting { id: 4, text: \"\" }"]);
    assert_eq!(play(&mut model, 5000, "/queue edit 9<enter>"), [""; 0]);
    assert!(draw(&mut model, 6700).contains("no queued message 9; queued: 3"));
    play(&mut model, 7000, "<ctrl+c>");
    let sent = play(&mut model, 8000, "/queue edit 3<enter>");
    assert_eq!(sent, ["draft \"tabs\"", "editwaiting { id: 3, text: \"\" }"]);
    assert_eq!(model.composer.text(), "tabs");
}

#[test]
fn queued_messages_are_edited_and_removed_in_the_list() {
    let mut model = running(&[(3, "tabs", true), (4, "the README", false)]);
    play(&mut model, 2000, "/queue<enter>");
    draw(&mut model, 2100);
    assert_eq!(play(&mut model, 2200, "<down><^x>"), ["editwaiting { id: 4, text: \"\" }"]);
    let screen = draw(&mut model, 2900);
    assert!(screen.contains("Queued messages") && !screen.contains("the README"), "{screen}");
    let sent = play(&mut model, 3000, "<enter>");
    assert_eq!(sent, ["draft \"tabs\"", "editwaiting { id: 3, text: \"\" }"]);
    assert!(!model.layers.is_open::<Overview>());
    assert_eq!(model.composer.text(), "tabs");
}

#[test]
fn an_approval_that_times_out_closes_with_a_message() {
    let mut model = model(100, 40);
    tell(&mut model, started("x"), 0);
    tell(&mut model, requested("call-a", "EditFile", "Edit src/main.rs"), 100);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    assert!(model.dialogs.is_open());
    let kind = EventKind::ApprovalTimeout { approval_id: ApprovalId::new("a"), tool_call_id: call("call-a") };
    tell(&mut model, kind, 9000);
    assert!(model.dialogs.is_empty());
    let screen = draw(&mut model, 9100);
    assert!(screen.contains("denied because nobody answered in time: Edit src/main.rs"), "{screen}");
}

/// Returns the times, in milliseconds, at which the screen wakes up without any input.
fn wakes(model: &mut UiModel, from: u64, until: u64) -> Vec<u64> {
    let (mut at, mut woke) = (from, Vec::new());
    while let Some(next) = model.deadline(at).filter(|next| *next <= until) {
        assert!(next > at, "it wakes for nothing at {at}");
        woke.push(next);
        at = next;
        update(model, Msg::Time, at);
        draw(model, at);
    }
    woke
}

#[test]
fn an_approval_countdown_wakes_for_every_displayed_change_and_never_without_a_timeout() {
    let asks = |timeout_ms| {
        let mut model = model(100, 40);
        tell(&mut model, started("x"), 0);
        tell(&mut model, EventKind::ApprovalRequested(Approval { timeout_ms, ..edit_approval("a") }), 5000);
        draw(&mut model, 5000);
        update(&mut model, Msg::Time, 6000);
        draw(&mut model, 6000);
        model
    };
    assert_eq!(wakes(&mut asks(None), 6000, 10_000_000), [0; 0]);
    let mut model = asks(Some(181_000));
    assert!(draw(&mut model, 6000).contains("denied in 3 min"));
    let woke = wakes(&mut model, 6000, 10_000_000);
    assert_eq!((woke[..3].to_vec(), woke.len()), (vec![66_000, 126_000, 127_000], 62));
    assert!(draw(&mut model, 186_000).contains("time is up"));
    // The row of a closed prompt shows its countdown.
    let mut model = asks(Some(90_000));
    play(&mut model, 6000, "<esc>");
    let screen = draw(&mut model, 40_000);
    assert!(screen.contains("waiting for you · denied in 55 s · tab to review"), "{screen}");
}

#[test]
fn a_renewed_approval_can_be_decided_only_after_the_updated_diff_was_shown() {
    for (width, height) in [(120, 36), (60, 20), (40, 12)] {
        let mut model = model(width, height);
        let amendable = Amendable { renewed: true, ..Amendable::default() };
        tell(&mut model, EventKind::ApprovalRequested(Approval { amendable, ..edit_approval("a") }), 5000);
        let screen = draw(&mut model, 5000);
        assert!(screen.contains("⚠ changed on disk") && !screen.contains("always"), "{screen}");
        assert_eq!(play(&mut model, 6000, "y"), [""; 0]);
        assert_eq!(wait(&mut model, 6360), [""; 0], "it only shows");
        let screen = draw(&mut model, 6400);
        assert!(screen.contains("⚠ changed on disk"), "{screen}");
        // The prompt is armed again, so the same key is not an answer yet.
        assert!(!model.dialogs.open().unwrap().guard.is_choice_pending());
        let listed = |model: &UiModel| model.dialogs.open().unwrap().choices.iter().map(|one| one.key.letter).collect::<String>();
        assert!(listed(&model).starts_with("yna"), "{}", listed(&model));
        let mut model = model_with_stale();
        assert_eq!(play(&mut model, 6000, "n"), [""; 0]);
        assert_eq!(wait(&mut model, 6360), ["a Denied { reason: None }"]);
    }
}

fn model_with_stale() -> UiModel {
    let mut model = model(80, 24);
    let amendable = Amendable { renewed: true, ..Amendable::default() };
    tell(&mut model, EventKind::ApprovalRequested(Approval { amendable, ..edit_approval("a") }), 5000);
    draw(&mut model, 5000);
    model
}

#[test]
fn a_pending_approval_is_named_once_later_entries_push_its_card_off_the_screen() {
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, requested("call-a", "EditFile", "Edit src/main.rs"), 1100);
    // The user is typing, so that the approval does not open.
    play(&mut model, 5000, "use tabs");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5100);
    let screen = draw(&mut model, 5200);
    let bar = |screen: &str| screen.lines().find(|row| row.contains("tab to review")).unwrap_or_default().to_owned();
    assert!(screen.contains("Edit src/main.rs") && bar(&screen).contains("waiting for you"), "{screen}");
    assert!(!bar(&screen).contains("Edit src/main.rs"), "the card names the edit: {screen}");
    tell(&mut model, text(&"- a line of the response\n".repeat(60)), 5300);
    let screen = draw(&mut model, 5400);
    assert!(bar(&screen).contains("Edit src/main.rs"), "{screen}");
}
