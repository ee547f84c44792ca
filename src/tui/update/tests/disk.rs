//! Tests of files that change while their approval prompt is open.

use super::*;
use crate::tui::tests::fixtures::{completed, hunks_approval};

const MARK: &str = "⚠ changed on disk";

fn outdated(model: &mut UiModel, id: &str, outdated: bool, at: u64) {
    let kind =
        EventKind::ApprovalOutdated { approval_id: ApprovalId::new(id), tool_call_id: call(&format!("call-{id}")), outdated };
    tell(model, kind, at);
}

fn letters(model: &UiModel) -> String {
    model.dialogs.open().unwrap().choices.iter().map(|choice| choice.key.letter).collect()
}

fn asked_at(width: u16, height: u16, approval: Approval) -> UiModel {
    let mut model = model(width, height);
    tell(&mut model, EventKind::ApprovalRequested(approval), 1000);
    draw(&mut model, 1000);
    model
}

#[test]
fn the_approval_header_shows_and_clears_the_mark_of_a_changed_file() {
    for (width, height) in [(120, 36), (80, 24), (60, 20), (40, 12)] {
        let mut model = asked_at(width, height, hunks_approval("a"));
        let before = draw(&mut model, 5000);
        let choices = letters(&model);
        outdated(&mut model, "a", true, 5001);
        let screen = draw(&mut model, 5001);
        let head = screen.lines().position(|row| row.contains(MARK)).unwrap_or_else(|| panic!("{screen}"));
        assert!(screen.lines().take(head + 1).any(|row| row.contains("▲ Edit s")), "it stands in the head\n{screen}");
        assert!(
            screen.contains("updated diff")
                && (screen.contains("n  no") || screen.contains("n no"))
                && !screen.contains("always"),
            "{screen}"
        );
        let is_armed = |model: &UiModel, at| model.dialogs.open().unwrap().guard.is_armed(at);
        assert!(!is_armed(&model, 5001) && is_armed(&model, 5002), "it arms anew");
        let first = |screen: &str| screen.lines().find(|row| row.contains("8  }")).unwrap().to_owned();
        assert_eq!(first(&screen), first(&before), "what is read stays");
        outdated(&mut model, "a", false, 7000);
        draw(&mut model, 7000);
        assert!(!is_armed(&model, 7000) && is_armed(&model, 7001), "and anew again");
        let screen = draw(&mut model, 9000);
        assert_eq!(letters(&model), choices);
        // Fewer choices leave more space, so more of the diff was shown.
        assert!(if height > 12 { screen == before } else { !screen.contains(MARK) }, "{screen}");
    }
}

#[test]
fn the_changed_on_disk_mark_leaves_space_for_the_risk_on_the_smallest_screen() {
    let mut model = asked_at(40, 12, Approval { risk_level: Risk::Medium, ..hunks_approval("a") });
    outdated(&mut model, "a", true, 5000);
    let screen = draw(&mut model, 5000);
    assert!(screen.contains("⚠ changed on disk") && screen.contains("medium"), "{screen}");
}

#[test]
fn a_change_on_disk_cancels_an_approval_being_confirmed() {
    let mut model = asked_at(100, 40, edit_approval("a"));
    play(&mut model, 5000, "y");
    outdated(&mut model, "a", true, 5200);
    draw(&mut model, 5200);
    for at in [5350, 5700, 6000, 9000] {
        assert_eq!(wait(&mut model, at), [""; 0]);
    }
    // If the user continues typing, all of the typed letters are text.
    let mut model = asked_at(100, 40, edit_approval("a"));
    play(&mut model, 5000, "y");
    outdated(&mut model, "a", true, 5050);
    draw(&mut model, 5050);
    assert_eq!(play(&mut model, 5100, "es"), [""; 0]);
    assert_eq!(model.composer.text(), "yes");
}

#[test]
fn the_updated_proposal_takes_the_same_position_and_needs_approval_again() {
    let mut model = asked_at(100, 40, edit_approval("a"));
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("b")), 1001);
    outdated(&mut model, "a", true, 5000);
    draw(&mut model, 5000);
    assert_eq!(play(&mut model, 6000, "y"), [""; 0]);
    assert_eq!(wait(&mut model, 6350), ["a Renewed"]);
    assert!(draw(&mut model, 6351).contains("preparing…"));
    // Nothing can be decided while the prompt waits for the update.
    assert_eq!(play(&mut model, 7000, "n"), [""; 0]);
    let (approval_id, tool_call_id) = (ApprovalId::new("a"), call("call-a"));
    model.composer.set("");
    model.dialogs.open_current(None);
    tell(&mut model, EventKind::ApprovalResolved { approval_id, tool_call_id, decision: Decision::Renewed, latency_ms: 1 }, 9000);
    let amendable = Amendable { renewed: true, ..Amendable::default() };
    let anew = Approval { approval_id: ApprovalId::new("c"), amendable, ..edit_approval("a") };
    tell(&mut model, EventKind::ApprovalRequested(anew), 9001);
    let screen = draw(&mut model, 9001);
    assert!(screen.contains("1 of 2") && screen.contains("fn greet") && screen.contains("a  always"), "{screen}");
    assert!(!model.dialogs.open().unwrap().guard.is_armed(9001));
    play(&mut model, 10_000, "y");
    assert_eq!(wait(&mut model, 10_350), ["c Approved"]);
    assert_eq!(model.dialogs.len(), 1);
}

#[test]
fn an_approval_closes_if_the_updated_proposal_cannot_be_created() {
    let mut model = asked_at(100, 40, edit_approval("a"));
    outdated(&mut model, "a", true, 5000);
    draw(&mut model, 5000);
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 6350), ["a Renewed"]);
    let error = ToolError::new(ErrorCode::FileNotFound, "there is no such text");
    tell(&mut model, completed("call-a", ToolStatus::Failed, "", Some(error)), 6400);
    assert!(model.dialogs.is_empty());
}

#[test]
fn text_being_typed_in_an_approval_survives_a_change_on_disk() {
    // A denial reason is preserved.
    let mut model = asked_at(100, 40, edit_approval("a"));
    play(&mut model, 5000, "N");
    wait(&mut model, 5350);
    play(&mut model, 5400, "not like");
    outdated(&mut model, "a", true, 6300);
    assert!(draw(&mut model, 6300).contains(MARK));
    assert_eq!(play(&mut model, 6400, " this<enter>"), ["a Denied { reason: Some(\"not like this\") }"]);
    // The lines of a hunk return when the file changes back.
    let mut model = asked_at(120, 40, hunks_approval("a"));
    play(&mut model, 5000, "e");
    wait(&mut model, 5350);
    play(&mut model, 5400, "// mine");
    outdated(&mut model, "a", true, 6200);
    assert!(draw(&mut model, 6200).contains("// mine"));
    play(&mut model, 6300, "<ctrl+s>");
    assert!(letters(&model).starts_with("yn"), "{}", letters(&model));
    outdated(&mut model, "a", false, 7000);
    assert!(letters(&model).starts_with("yna"), "{}", letters(&model));
    assert!(draw(&mut model, 7000).contains("// mine"));
}

#[test]
fn no_rule_can_be_saved_for_an_outdated_proposal() {
    let mut model = asked_at(100, 40, edit_approval("a"));
    play(&mut model, 5000, "a");
    wait(&mut model, 5350);
    assert!(draw(&mut model, 5351).contains("Always allow this"));
    outdated(&mut model, "a", true, 6000);
    let screen = draw(&mut model, 6000);
    assert!(!screen.contains("Always allow this") && screen.contains(MARK), "{screen}");
}

#[test]
fn a_hidden_outdated_approval_is_marked_when_opened_and_excluded_from_batch_decisions() {
    let mut model = asked_at(100, 40, edit_approval("a"));
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("b")), 1001);
    outdated(&mut model, "b", true, 5000);
    assert!(!draw(&mut model, 5000).contains(MARK), "it is about the other");
    play(&mut model, 6000, "<tab>");
    assert!(draw(&mut model, 6001).contains(MARK));
    play(&mut model, 7000, "<ctrl+q>");
    draw(&mut model, 7600);
    play(&mut model, 8000, " ");
    let screen = draw(&mut model, 8001);
    assert!(screen.contains("changed on disk, and the updated diff was not shown"), "{screen}");
}
