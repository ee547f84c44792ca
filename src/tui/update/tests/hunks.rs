use super::*;
use crate::tui::tests::fixtures::{effects_approval, hunks_approval};

/// Returns a screen with the prompt for a change with two hunks. By 12 s, the prompt has been fully shown and is armed.
fn asked(width: u16, height: u16) -> UiModel {
    let mut model = model(width, height);
    tell(&mut model, started("x"), 100);
    tell(&mut model, EventKind::ApprovalRequested(hunks_approval("a")), 9000);
    draw(&mut model, 9001);
    draw(&mut model, 12_000);
    assert!(model.dialogs.is_open());
    model
}

/// Presses the keys of a script at intervals of one second, and returns the commands that were sent.
fn press_slowly(model: &mut UiModel, from: u64, script: &str) -> Vec<String> {
    let mut said = Vec::new();
    for (at, msg) in (from..).step_by(1000).zip(keys(script)) {
        said.extend(update(model, msg, at).iter().filter_map(words));
        draw(model, at);
        said.extend(wait(model, at + 400));
    }
    said
}

const LEFT_OUT: &str = "a Amended { amendment: Hunks { hunks: [Taken, Left] } }";

#[test]
fn excluding_a_hunk_is_reflected_in_the_approve_choice() {
    let mut model = asked(120, 40);
    assert!(draw(&mut model, 12_001).contains("y  yes"));
    press_slowly(&mut model, 13_000, "] ");
    let screen = draw(&mut model, 20_000);
    for words in ["y  apply hunk 1 of 2", "☑ hunk 1 greet()", "☐ hunk 2 main()", "hunk 2 of 2"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    assert_eq!(press_slowly(&mut model, 21_000, "y"), [LEFT_OUT]);
}

#[test]
fn approving_is_impossible_without_a_selected_hunk() {
    let mut model = asked(120, 40);
    press_slowly(&mut model, 13_000, " ] ");
    assert!(draw(&mut model, 20_000).contains("y  no hunk selected"));
    assert_eq!(press_slowly(&mut model, 21_000, "y"), Vec::<String>::new());
    press_slowly(&mut model, 24_000, "[ ");
    assert_eq!(press_slowly(&mut model, 30_000, "y"), [LEFT_OUT]);
}

#[test]
fn hunk_keys_that_begin_a_sentence_are_undone_and_go_to_the_draft() {
    let mut model = asked(120, 40);
    assert_eq!(play(&mut model, 13_000, " yes, go on"), Vec::<String>::new());
    assert_eq!(model.composer.text(), " yes, go on");
    assert!(!model.dialogs.is_open());
    let panel = model.dialogs.current().unwrap();
    assert!(panel.hunks().unwrap().amendment().is_none());
    let mut model = asked(120, 40);
    play(&mut model, 13_000, "[] every");
    assert_eq!(model.composer.text(), "[] every");
}

#[test]
fn several_hunk_keys_in_a_row_are_not_text() {
    let mut model = asked(120, 40);
    play(&mut model, 13_000, "]] ");
    assert_eq!(model.composer.text(), "");
    assert!(model.dialogs.is_open());
    assert!(draw(&mut model, 15_000).contains("y  apply hunk 2 of 2"));
}

#[test]
fn the_lines_of_a_hunk_can_be_edited() {
    let mut model = asked(120, 40);
    press_slowly(&mut model, 13_000, "]e");
    let screen = draw(&mut model, 16_000);
    assert!(screen.contains("hunk 2 main(): the text that will be written if you approve"), "{screen}");
    // In the field, letters are always text.
    play(&mut model, 17_000, "    yn();<ctrl+j>");
    assert_eq!(play(&mut model, 19_000, "<ctrl+s>"), Vec::<String>::new());
    let screen = draw(&mut model, 23_000);
    assert!(screen.contains("+    yn();") && screen.contains("hunk 2 main() edited"), "{screen}");
    assert!(screen.contains("y  apply both hunks, with your edits"), "{screen}");
    let sent = press_slowly(&mut model, 24_000, "y");
    let edited = "    yn();\\n    println!(\\\"{}\\\", greet(\\\"you\\\")?);\\n";
    assert_eq!(sent, [format!("a Amended {{ amendment: Hunks {{ hunks: [Taken, Edited {{ text: \"{edited}\" }}] }} }}")]);
}

#[test]
fn the_screen_no_longer_shows_an_edit_that_was_dropped() {
    let mut model = asked(120, 40);
    press_slowly(&mut model, 13_000, "]e");
    play(&mut model, 17_000, "    yn();<ctrl+j>");
    play(&mut model, 19_000, "<ctrl+s>");
    assert!(draw(&mut model, 23_000).contains("+    yn();"));
    // Leaving out the hunk and selecting it again drops the edit.
    press_slowly(&mut model, 24_000, "  ");
    let screen = draw(&mut model, 28_000);
    assert!(!screen.contains("yn();") && !screen.contains("edited"), "{screen}");
    assert_eq!(press_slowly(&mut model, 29_000, "y"), ["a Approved"]);
}

#[test]
fn files_are_selected_and_toggled_through_the_guard() {
    let mut model = model(120, 40);
    tell(&mut model, started("x"), 100);
    tell(&mut model, EventKind::ApprovalRequested(effects_approval("a")), 9000);
    draw(&mut model, 9001);
    draw(&mut model, 12_000);
    let discarded = |model: &UiModel| {
        let effects = model.dialogs.current().unwrap().hunks().unwrap().discarded_effects();
        effects.into_iter().map(|effect| effect.path).collect::<Vec<_>>()
    };
    press_slowly(&mut model, 13_000, "}f");
    assert_eq!(discarded(&model), ["assets/logo.png"]);
    press_slowly(&mut model, 17_000, "{f");
    assert_eq!(discarded(&model), ["src/main.rs", "assets/logo.png"]);
    press_slowly(&mut model, 21_000, "f}f");
    assert_eq!(discarded(&model), Vec::<String>::new());
    assert!(model.dialogs.is_open() && model.composer.is_empty());
}

#[test]
fn escape_discards_edits_to_a_hunk() {
    let mut model = asked(120, 40);
    press_slowly(&mut model, 13_000, "e");
    play(&mut model, 15_000, "xyz<esc>");
    assert!(model.dialogs.is_open());
    draw(&mut model, 18_000);
    assert_eq!(press_slowly(&mut model, 19_000, "y"), ["a Approved"]);
}

#[test]
fn the_proposed_file_opens_in_the_editor_and_edits_amend_the_approval() {
    let mut model = asked(120, 40);
    assert_eq!(press_slowly(&mut model, 13_000, "E"), ["showproposed { approval_id: approvalid(\"a\"), file: 0 }"]);
    let lines: Vec<String> = (0..40).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat();
    let told = EventKind::ProposedShown { approval_id: ApprovalId::new("a"), file: 0, text: text.clone() };
    let effects = update(&mut model, Msg::Event(Box::new(event(told))), 15_000);
    let Some(UiEffect::EditFile(edit)) = effects.into_iter().find(|effect| matches!(effect, UiEffect::EditFile(_))) else {
        panic!("no editor is opened")
    };
    assert_eq!((edit.name.as_str(), &edit.text), ("src/main.rs", &text));
    let failed = Msg::Edited(Box::new(edit.clone()), Err("there is no editor `x`".to_owned()));
    assert!(update(&mut model, failed, 16_000).iter().find_map(words).is_none());
    assert!(draw(&mut model, 16_001).contains("there is no editor `x`") && model.dialogs.len() == 1);
    let changed = Msg::Edited(Box::new(edit), Ok(format!("{text}more\n")));
    let sent: Vec<_> = update(&mut model, changed, 17_000).iter().filter_map(words).collect();
    assert!(sent[0].starts_with("a Amended { amendment: File { file: 0, text: \"line 0"), "{sent:?}");
}

#[test]
fn a_file_is_not_opened_in_the_editor_if_that_would_reset_choices_in_other_files() {
    let mut model = model(120, 40);
    tell(&mut model, started("x"), 100);
    let mut approval = hunks_approval("a");
    // The second hunk belongs to a deleted file.
    approval.amendable.hunks[1].file = None;
    tell(&mut model, EventKind::ApprovalRequested(approval), 9000);
    draw(&mut model, 9001);
    draw(&mut model, 12_000);
    let toast = |model: &UiModel| model.toast.clone().map(|(words, _)| words).unwrap_or_default();
    assert_eq!(press_slowly(&mut model, 13_000, "]E"), Vec::<String>::new());
    assert!(toast(&model).contains("cannot be edited"), "{}", toast(&model));
    assert_eq!(press_slowly(&mut model, 17_000, " [E"), Vec::<String>::new());
    assert!(toast(&model).contains("reset your choices"), "{}", toast(&model));
    let opened = press_slowly(&mut model, 22_000, "] [E");
    assert_eq!(opened, ["showproposed { approval_id: approvalid(\"a\"), file: 0 }"]);
}

#[test]
fn an_edited_command_is_sent_as_an_amendment() {
    let mut model = model(120, 40);
    tell(&mut model, started("x"), 100);
    let line = "make all".to_owned();
    let amendable = Amendable { command: Some(line), ..Amendable::default() };
    let approval = Approval { amendable, risk_level: Risk::Low, critical: false, ..command_approval("a") };
    tell(&mut model, EventKind::ApprovalRequested(approval), 9000);
    draw(&mut model, 9001);
    draw(&mut model, 12_000);
    press_slowly(&mut model, 13_000, "e");
    assert_eq!(
        play(&mut model, 15_000, "<backspace><backspace><backspace>y<enter>"),
        ["a Amended { amendment: Command { line: \"make y\" } }"]
    );
}

#[test]
fn truncated_lines_do_not_count_as_seen() {
    let mut model = asked(120, 40);
    let long = format!("@@ -1 +1 @@\n-{}\n+{}\n", "a".repeat(300), "b".repeat(300));
    let mut approval = hunks_approval("b");
    (approval.proposal.diff, approval.amendable.hunks) = (FileDiffs::read(&long), Vec::new());
    model.dialogs.forget_approval(&ApprovalId::new("a"), None);
    tell(&mut model, EventKind::ApprovalRequested(approval), 13_000);
    model.dialogs.open_mut().unwrap().turn_wrap(120);
    draw(&mut model, 13_001);
    let screen = draw(&mut model, 16_000);
    assert!(!screen.contains("y  yes"), "{screen}");
    assert_eq!(press_slowly(&mut model, 17_000, "y"), Vec::<String>::new());
    assert!(draw(&mut model, 19_000).contains("y  yes"));
    // Once all of the lines were shown, they may be truncated.
    press_slowly(&mut model, 20_000, "w");
    assert!(draw(&mut model, 22_000).contains("y  yes"));
}

#[test]
fn wide_screens_show_the_diff_side_by_side() {
    let row = |screen: &str| screen.lines().any(|row| row.contains("−fn greet") && row.contains("+fn greet"));
    assert!(row(&draw(&mut asked(120, 40), 12_001)) && !row(&draw(&mut asked(100, 40), 12_001)));
    let mut model = asked(120, 40);
    press_slowly(&mut model, 13_000, "v");
    assert!(!row(&draw(&mut model, 15_000)));
    let mut model = asked(60, 20);
    press_slowly(&mut model, 13_000, "v");
    assert!(draw(&mut model, 13_500).contains("side-by-side view needs 80 columns"));
}
