use super::*;
use crate::tui::tests::fixtures::not_saved;

fn stopped() -> UiModel {
    let mut model = model(120, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, not_saved(), 2000);
    draw(&mut model, 2001);
    model
}

#[test]
fn a_session_that_cannot_be_saved_shows_the_reason_and_how_to_continue() {
    let mut model = stopped();
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("Cannot save this session (disk full"), "{screen}");
    assert!(screen.contains("Not saved, paused: r retry · c continue unsaved (lost in a crash)"), "{screen}");
    assert!(screen.contains("│ unsaved │"), "{screen}");
    model.screen.size = Size::new(150, 24);
    assert!(draw(&mut model, 3100).contains("before the next step. r retry · c continue unsaved"));
    model.screen.size = Size::new(120, 24);
    tell(&mut model, not_saved(), 3500);
    assert_eq!(draw(&mut model, 3600).matches("Cannot save this session").count(), 1, "said once");
}

#[test]
fn r_and_c_work_only_alone_in_an_empty_draft_while_saving_fails() {
    for (key, command) in [("r", "continue"), ("c", "goonunsaved")] {
        let mut model = stopped();
        assert_eq!(play(&mut model, 4000, key), [""; 0]);
        assert_eq!(wait(&mut model, 4350), [command]);
        assert_eq!(model.composer.text(), "");
    }
    let mut model = stopped();
    let sent = play(&mut model, 4000, "can it");
    assert!(sent.iter().all(|sent| sent.starts_with("draft")) && model.composer.text() == "can it", "{sent:?}");
    let mut model = stopped();
    play(&mut model, 2100, "c");
    assert!(wait(&mut model, 2450).iter().all(|sent| sent.starts_with("draft")), "typed before it was read");
    let mut model = stopped();
    tell(&mut model, EventKind::SavingChanged { saved: true, message: "saved again".to_owned() }, 3000);
    play(&mut model, 4000, "c");
    assert!(wait(&mut model, 4350).iter().all(|sent| sent.starts_with("draft")));
}

#[test]
fn the_status_row_shows_unsaved_until_everything_is_saved() {
    let mut model = stopped();
    let message = "going on unsaved: a crash loses all from here on".to_owned();
    tell(&mut model, EventKind::SavingChanged { saved: false, message }, 4000);
    let screen = draw(&mut model, 4100);
    assert!(screen.contains("│ unsaved │") && !screen.contains("r retry"), "{screen}");
    tell(&mut model, EventKind::SavingChanged { saved: true, message: "saved again".to_owned() }, 5000);
    let screen = draw(&mut model, 5100);
    assert!(!screen.contains("│ unsaved │") && screen.contains("saved again"), "{screen}");
}
