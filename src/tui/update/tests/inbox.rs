//! Tests of the list of pending dialogs.

use super::*;
use crate::tui::tests::fixtures::{completed, interrupted};

fn touch(id: &str, file: &str) -> Approval {
    let mut approval = Approval { risk_level: Risk::Low, critical: false, parts: Vec::new(), ..command_approval(id) };
    approval.tool_call_id = call(&format!("call-{id}"));
    approval.command.as_mut().unwrap().line = format!("touch {file}");
    approval
}

fn listed() -> UiModel {
    let mut model = asked(vec![touch("a", "one.txt"), command_approval("b"), touch("c", "two.txt"), edit_approval("d")]);
    play(&mut model, 6000, "<ctrl+q>");
    draw(&mut model, 6100);
    model
}

#[test]
fn the_list_shows_pending_approvals_with_risk_and_age() {
    let mut model = listed();
    let screen = draw(&mut model, 7000);
    for words in [
        "4 waiting for you",
        "1  $ touch one.txt",
        "3  $ touch two.txt",
        "4  Edit src/main.rs +6 −5",
        "low risk",
        "critical risk",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    assert!(screen.contains("just now"), "{screen}");
    assert_eq!(model.deadline(7000), Some(65_000), "a minute after they came");
    assert!(draw(&mut model, 65_000 + 120_000).contains("3 min ago"));
}

#[test]
fn selected_approvals_are_decided_together_and_no_others() {
    let mut model = listed();
    assert_eq!(play(&mut model, 7000, " <down><down> y"), Vec::<String>::new(), "a letter right behind a mark is no answer");
    assert_eq!(model.composer.text(), " y", "{}", draw(&mut model, 7600));
    let mut model = listed();
    play(&mut model, 7000, " <down><down> ");
    assert!(draw(&mut model, 7400).contains("2 selected"));
    play(&mut model, 8000, "y");
    assert_eq!(wait(&mut model, 8350), Vec::<String>::new(), "it takes enter too");
    assert_eq!(play(&mut model, 8500, "<enter>"), ["a Approved", "c Approved"]);
    assert_eq!(model.dialogs.len(), 2);
    let is_armed = |at| model.dialogs.inbox().unwrap().guard.is_armed(at);
    assert!(!is_armed(8500) && is_armed(8501), "what is left arms anew");
    let mut model = listed();
    play(&mut model, 7000, " ");
    play(&mut model, 8000, "n");
    wait(&mut model, 8350);
    assert_eq!(play(&mut model, 8500, "<enter>"), ["a Denied { reason: None }"]);
}

#[test]
fn high_and_critical_risk_cannot_be_selected_and_the_reason_is_shown() {
    let mut model = listed();
    play(&mut model, 7000, "<down> ");
    let screen = draw(&mut model, 7300);
    assert!(screen.contains("critical risk must be reviewed individually"), "{screen}");
    play(&mut model, 8000, "y");
    wait(&mut model, 8350);
    assert_eq!(play(&mut model, 8500, "<enter>"), Vec::<String>::new());
    assert!(draw(&mut model, 8600).contains("nothing is selected"));
    tell(&mut model, interrupted("x", "$ make"), 9000);
    play(&mut model, 9500, "<end> ");
    assert!(draw(&mut model, 9800).contains("reviewed individually"));
}

#[test]
fn a_command_not_fully_shown_must_be_opened_before_selection() {
    let long = format!("{} ; echo end", "a-name ".repeat(40));
    let mut model = asked(vec![edit_approval("x"), touch("a", &long), touch("b", "two\n  three")]);
    play(&mut model, 6000, "<ctrl+q>");
    draw(&mut model, 6100);
    play(&mut model, 7000, "2 ");
    let screen = draw(&mut model, 7300);
    assert!(screen.contains("this command is not fully shown here; enter opens it"), "{screen}");
    play(&mut model, 7500, "3 ");
    let screen = draw(&mut model, 7800);
    assert!(screen.contains("[x] 3  $ touch two␊  three"), "its breaks are seen: {screen}");
    play(&mut model, 8500, "y");
    wait(&mut model, 8850);
    assert_eq!(play(&mut model, 9000, "<enter>"), ["b Approved"]);
}

#[test]
fn enter_opens_the_highlighted_approval_and_digits_only_move_the_highlight() {
    let mut model = listed();
    assert_eq!(play(&mut model, 7000, "3"), Vec::<String>::new());
    assert_eq!(play(&mut model, 7500, "<enter>"), Vec::<String>::new());
    assert!(model.dialogs.inbox().is_none());
    assert!(draw(&mut model, 7600).contains("touch two.txt"));
    assert_eq!(model.dialogs.position_number(), 3);
    draw(&mut model, 8300);
    play(&mut model, 8500, "y");
    assert_eq!(wait(&mut model, 8850), ["c Approved"]);
}

#[test]
fn arriving_and_ending_approvals_do_not_move_the_highlight() {
    let mut model = listed();
    play(&mut model, 7000, "<down><down>");
    tell(&mut model, EventKind::ApprovalRequested(touch("e", "three.txt")), 7300);
    let error = ToolError::new(ErrorCode::Cancelled, "stopped");
    tell(&mut model, completed("call-a", ToolStatus::Failed, "", Some(error)), 7400);
    let screen = draw(&mut model, 7500);
    let at = screen.lines().find(|row| row.starts_with('❯') && row.contains("touch")).unwrap_or_else(|| panic!("{screen}"));
    assert!(at.contains("two.txt"), "{screen}");
    play(&mut model, 8500, "<enter>");
    assert!(
        draw(&mut model, 8600).contains("in  ~/src/greeter")
            || crate::tui::approval::name(model.dialogs.open().unwrap()).contains("two.txt")
    );
}

#[test]
fn new_approvals_do_not_change_the_open_one() {
    let mut model = asked(vec![touch("a", "one.txt")]);
    tell(&mut model, EventKind::ApprovalRequested(command_approval("b")), 5700);
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 6350), ["a Approved"]);
    assert!(model.dialogs.is_open());
    let strip = draw(&mut model, 6400);
    assert!(!strip.contains("waiting for you"), "{strip}");
}

#[test]
fn text_typed_into_the_list_goes_to_the_draft() {
    for typed in ["yes please", " 1 and 2", "1 2 3", "y es", "n"] {
        let mut model = listed();
        let sent: Vec<String> = play(&mut model, 7000, typed);
        assert_eq!(sent, Vec::<String>::new());
        wait(&mut model, 20_000);
        if typed == "n" {
            assert!(model.dialogs.inbox().is_some());
        } else if typed != "1 2 3" {
            assert_eq!(model.composer.text(), typed);
        }
    }
}

#[test]
fn typed_letters_keep_their_order_when_a_listed_approval_changes() {
    let mut model = asked(vec![edit_approval("a"), touch("b", "two.txt")]);
    play(&mut model, 6000, "<ctrl+q>");
    draw(&mut model, 6100);
    update(&mut model, Msg::Input(UiInput::Fence), 6150);
    draw(&mut model, 6900);
    play(&mut model, 7000, "y");
    let outdated =
        EventKind::ApprovalOutdated { approval_id: ApprovalId::new("a"), tool_call_id: call("call-a"), outdated: true };
    tell(&mut model, outdated, 7040);
    draw(&mut model, 7050);
    assert_eq!(play(&mut model, 7080, "es please"), [""; 0]);
    wait(&mut model, 20_000);
    assert_eq!(model.composer.text(), "yes please");
}

#[test]
fn the_strip_names_all_pending_approvals() {
    let mut model = asked(vec![touch("a", "one.txt"), touch("b", "two.txt"), edit_approval("c")]);
    update(&mut model, Msg::Resize(Size::new(120, 36)), 6000);
    let screen = draw(&mut model, 7000);
    let strip = "3 waiting for you   1 $ touch one.txt  low   2 $ touch two.txt  low   3 Edit src/main.rs +6 −5  low";
    // The title of the open prompt is not repeated.
    let others = "3 waiting for you   2 $ touch two.txt  low   3 Edit src/main.rs +6 −5  low";
    assert!(screen.contains(others) && screen.contains("tab next"), "{screen}");
    play(&mut model, 8000, "<esc>");
    let screen = draw(&mut model, 8100);
    assert!(screen.contains(strip) && screen.contains("tab to review"), "{screen}");
    update(&mut model, Msg::Resize(Size::new(40, 12)), 9000);
    let screen = draw(&mut model, 9100);
    assert!(screen.contains("3 waiting for you"), "{screen}");
    assert!(update(&mut model, press(KeyCode::Char('q'), KeyModifiers::CONTROL), 9200).is_empty());
    for (width, height) in [(40, 12), (60, 20), (80, 24)] {
        update(&mut model, Msg::Resize(Size::new(width, height)), 9300);
        let screen = draw(&mut model, 9400);
        assert!(screen.contains("approve selected") && screen.contains("touch one.txt"), "{screen}");
    }
}

fn click(model: &mut UiModel, words: &str, at: u64) {
    let screen = draw(model, at);
    let row = screen.lines().position(|row| row.contains(words)).unwrap_or_else(|| panic!("{words}\n{screen}"));
    let before = screen.lines().nth(row).unwrap().split(words).next().unwrap().chars().count();
    let kind = crossterm::event::MouseEventKind::Down(crossterm::event::MouseButton::Left);
    let event = crossterm::event::MouseEvent { kind, column: before as u16, row: row as u16, modifiers: KeyModifiers::NONE };
    assert!(update(model, Msg::Input(UiInput::Mouse(event)), at).is_empty());
    draw(model, at);
}

#[test]
fn a_click_highlights_a_choice_and_only_enter_confirms() {
    for (words, sent) in [("y  yes", "a Approved"), ("n  no", "a Denied { reason: None }")] {
        let mut model = asked(vec![touch("a", "one.txt")]);
        click(&mut model, words, 6000);
        assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
        assert_eq!(play(&mut model, 6500, "<enter>"), [sent]);
    }
    // The row also fits on the smallest screen.
    let mut model = asked(vec![touch("a", "one.txt")]);
    update(&mut model, Msg::Resize(Size::new(40, 12)), 6000);
    draw(&mut model, 6000);
    click(&mut model, "n no", 7000);
    assert_eq!(play(&mut model, 7300, "<enter>"), ["a Denied { reason: None }"]);
}

#[test]
fn a_click_that_focuses_the_window_does_not_highlight_anything() {
    let mut model = asked(vec![touch("a", "one.txt")]);
    update(&mut model, Msg::Input(UiInput::FocusIn), 6000);
    click(&mut model, "y  yes", 6200);
    assert_eq!(play(&mut model, 6500, "<enter>"), Vec::<String>::new());
    let mut model = listed();
    click(&mut model, "touch two.txt", 7000);
    assert_eq!(play(&mut model, 7300, "<enter>"), Vec::<String>::new(), "it opens it");
    assert_eq!(model.dialogs.position_number(), 3);
    let mut model = listed();
    play(&mut model, 7000, " ");
    click(&mut model, "approve the selected one", 7500);
    assert_eq!(play(&mut model, 8000, "<enter>"), ["a Approved"]);
}
