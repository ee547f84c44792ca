//! Tests of command parts, and of the rules that decided them.

use super::*;
use crate::tui::tests::fixtures::command_approval;

fn asked(width: u16, height: u16) -> UiModel {
    let mut model = model(width, height);
    let origin = RuleOrigin {
        rule: "user:31".to_owned(),
        place: "/home/me/.config/aye/policy.toml:31".to_owned(),
        first: 31,
        source: vec!["[[rules]]".to_owned(), "ask = [\"curl *\"]".to_owned()],
    };
    let approval = Approval { origins: vec![origin], ..command_approval("a") };
    tell(&mut model, EventKind::ApprovalRequested(approval), 1000);
    draw(&mut model, 1000);
    model
}

#[test]
fn enter_on_a_part_opens_its_rule_and_decides_nothing() {
    for (width, height) in [(120, 36), (60, 20), (40, 12)] {
        let mut model = asked(width, height);
        assert_eq!(play(&mut model, 2000, "]"), [""; 0]);
        // The riskiest part comes first: the one that runs the downloaded code.
        assert_eq!(model.dialogs.open().unwrap().body.marked_part(), Some(4));
        assert!(draw(&mut model, 2100).contains("▸ part 5 of 5"), "{width}");
        while model.dialogs.open().unwrap().body.marked_part() != Some(3) {
            play(&mut model, 2200, "]");
        }
        assert!(draw(&mut model, 2500).contains("▸ part 4 of 5"), "it is brought into view");
        assert_eq!(play(&mut model, 2600, "<enter>"), [""; 0]);
        let screen = draw(&mut model, 2700);
        assert!(screen.contains("Rule for part 4"), "{screen}");
        let read: String = screen.split_whitespace().collect();
        assert!(
            height < 20 || read.contains("/home/me/.config/aye/policy.toml:31") && screen.contains("ask = [\"curl *\"]"),
            "{screen}"
        );
        assert_eq!(play(&mut model, 4000, "e"), [""; 0]);
        assert_eq!(wait(&mut model, 4360), ["show File(\"/home/me/.config/aye/policy.toml\")"]);
        play(&mut model, 6000, "<esc>");
        assert!(model.dialogs.open().unwrap().is_card());
        assert_eq!(model.composer.text(), "");
    }
}

#[test]
fn a_rule_without_a_file_names_its_origin() {
    let mut model = asked(120, 36);
    play(&mut model, 2000, "]");
    play(&mut model, 2300, "<enter>");
    let screen = draw(&mut model, 2400);
    assert!(screen.contains("decided by the built-in policy") && !screen.contains("your editor"), "{screen}");
}

#[test]
fn brackets_in_a_sentence_are_text() {
    let mut model = asked(120, 36);
    assert_eq!(play(&mut model, 2000, "[see below]"), [""; 0]);
    assert_eq!((model.composer.text().as_str(), model.dialogs.is_open()), ("[see below]", false));
    // Enter confirms the pressed choice instead of opening the rule of the part.
    let mut model = asked(120, 36);
    play(&mut model, 2000, "]");
    play(&mut model, 3000, "n<enter>");
    assert!(model.dialogs.is_empty());
}
