use super::*;

#[test]
fn new_text_does_not_move_the_view_while_scrolled_up() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 0);
    for n in 0..100 {
        tell(&mut model, text(&format!("line {n}\n\n")), 10);
    }
    draw(&mut model, 20);
    play(&mut model, 100, "<pgup>");
    let top = |screen: &str| screen.lines().next().unwrap().to_owned();
    let before = draw(&mut model, 300);
    tell(&mut model, text("one more\n\nand one\n\n"), 400);
    let after = draw(&mut model, 500);
    assert_eq!(top(&before), top(&after));
    assert!(after.contains("4 new lines · end"), "{after}");
    play(&mut model, 600, "<end>");
    assert!(draw(&mut model, 700).contains("and one"));
}

#[test]
fn a_resize_keeps_the_entry_at_the_top_of_the_view() {
    let mut model = model(120, 30);
    for n in 0..60 {
        tell(&mut model, requested(&n.to_string(), "ReadFile", &format!("Read file-{n}")), 10);
    }
    draw(&mut model, 20);
    play(&mut model, 100, "<pgup>");
    let top = |screen: String| screen.lines().next().unwrap().split_whitespace().nth(2).unwrap().to_owned();
    let before = top(draw(&mut model, 300));
    for width in [60, 160, 80] {
        update(&mut model, Msg::Resize(Size::new(width, 30)), 400);
        assert_eq!(top(draw(&mut model, 500)), before);
    }
}

#[test]
fn ctrl_d_scrolls_while_the_view_is_scrolled_up_and_quits_at_the_end() {
    let mut model = model(80, 24);
    for n in 0..60 {
        tell(&mut model, requested(&n.to_string(), "ReadFile", &format!("Read file-{n}")), 10);
    }
    draw(&mut model, 20);
    assert_eq!(play(&mut model, 100, "<ctrl+u><ctrl+u><ctrl+d>"), Vec::<String>::new());
    assert!(!model.transcript.is_following());
    assert_eq!(play(&mut model, 1000, "<ctrl+d><ctrl+d>"), Vec::<String>::new());
    draw(&mut model, 1500);
    assert!(model.transcript.is_following());
    assert_eq!(play(&mut model, 2000, "<ctrl+d>"), ["quit", "exit Quit"]);
}

#[test]
fn a_long_prompt_is_folded_and_a_paste_becomes_a_chip() {
    let mut model = model(80, 24);
    let long = (1..=200).map(|n| format!("row {n}.")).collect::<Vec<_>>().join("\n");
    update(&mut model, Msg::Input(UiInput::Paste(long.clone())), 1000);
    draw(&mut model, 1000);
    let screen = draw(&mut model, 1100);
    assert!(screen.contains("❯ [pasted 200 lines]") && !screen.contains("row "), "{screen}");
    assert_eq!(model.composer.text(), long, "all of it is sent");
    tell(&mut model, started(&long), 2000);
    play(&mut model, 2000, "<ctrl+c>");
    let screen = draw(&mut model, 2500);
    assert!(screen.contains("❯ [pasted 200 lines] · ctrl+o unfold") && !screen.contains("row 6."), "{screen}");
    let mixed = format!("{long}\nWhy does row 7 fail?");
    tell(&mut model, started(&mixed), 2600);
    let screen = draw(&mut model, 2700);
    assert!(screen.contains("❯ Why does row 7 fail?") && !screen.contains("row 6."), "your own words come first\n{screen}");
    assert!(screen.contains("│ [pasted 200 lines] · ctrl+o unfold"), "{screen}");
    let typed = long.replace("row", "line");
    tell(&mut model, started(&typed), 2800);
    let screen = draw(&mut model, 2900);
    assert!(
        screen.contains("line 6.") && screen.contains("⋯ 194 lines · ctrl+o unfold") && !screen.contains("line 7."),
        "{screen}"
    );
    play(&mut model, 3000, "<ctrl+o><ctrl+o>");
    assert!(draw(&mut model, 3500).contains("line 200."));
    let ten: Vec<_> = (1..=10).map(|n| format!("ten {n}.")).collect();
    tell(&mut model, started(&ten.join("\n")), 4000);
    assert!(draw(&mut model, 4500).contains("ten 10."));
}

#[test]
fn the_count_of_rows_below_includes_the_row_covered_by_the_indicator() {
    let mut model = model(80, 20);
    tell(&mut model, started("go"), 0);
    tell(&mut model, text("one\n\ntwo\n"), 0);
    draw(&mut model, 100);
    play(&mut model, 200, "<pgup>");
    assert!(!draw(&mut model, 300).contains("below"), "all of it is seen");
    tell(&mut model, text(&"\nmore\n".repeat(40)), 400);
    draw(&mut model, 500);
    play(&mut model, 600, "<pgup>");
    let below = |screen: String| screen.lines().find(|row| row.contains("below")).map(str::to_owned);
    let first = below(draw(&mut model, 700));
    assert!(first.is_some() && first == below(draw(&mut model, 800)), "{first:?}");
}

#[test]
fn a_paste_of_ten_thousand_lines_is_one_chip_that_backspace_removes() {
    let mut model = model(80, 24);
    let long = (1..=10_000).map(|n| format!("row {n}.")).collect::<Vec<_>>().join("\n");
    play(&mut model, 1000, "Why? ");
    update(&mut model, Msg::Input(UiInput::Paste(long.clone())), 2000);
    play(&mut model, 3000, " End");
    let screen = draw(&mut model, 3500);
    assert!(screen.contains("❯ Why? [pasted 10,000 lines] End"), "{screen}");
    let whole = format!("Why? {long} End");
    assert_eq!(model.composer.text(), whole);
    play(&mut model, 4000, "<backspace><backspace><backspace><backspace>");
    assert_eq!(model.composer.shown_text(), "Why? [pasted 10,000 lines]");
    play(&mut model, 5000, "<backspace>");
    assert_eq!(model.composer.text(), "Why? ");
    // A prompt that returns from the history or the queue has its chip again.
    model.composer.set(&whole);
    assert_eq!(model.composer.shown_text(), "Why? [pasted 10,000 lines] End");
    tell(&mut model, started(&whole), 6000);
    let screen = draw(&mut model, 6500);
    assert!(screen.contains("❯ Why?") && screen.contains("│ [pasted 10,000 lines] · ctrl+o unfold"), "{screen}");
    assert!(!screen.contains("row "), "{screen}");
}

/// Returns a screen whose prompt history is in a directory, as after a start.
fn started_with_history_in(directory: &std::path::Path) -> UiModel {
    let hide = |text: &str| text.replace("secret", "[hidden]");
    let redactor = crate::tui::HistoryRedactor(std::sync::Arc::new(hide));
    let history = crate::tui::HistoryOptions { file: Some(directory.join("history.jsonl")), redactor };
    let options = crate::tui::interface::UiOptions { history, ..crate::tui::tests::fixtures::options() };
    let mut model = UiModel::new(options, None, Size::new(80, 24));
    update(&mut model, Msg::Start(Box::new(crate::tui::tests::fixtures::start())), 0);
    model
}

#[test]
fn a_chip_survives_a_restart_in_the_draft_and_in_the_history() {
    // A tab, a colour and a secret do not appear in what is saved, or in another form.
    for line in ["row", "row\t\u{1b}[31mred\u{1b}[0m", "a secret"] {
        let directory = tempfile::tempdir().unwrap();
        let long = (1..=40).map(|n| format!("{line} {n}.\n")).collect::<Vec<_>>().concat();
        let saved = long.replace("secret", "[hidden]");
        let mut model = started_with_history_in(directory.path());
        play(&mut model, 1000, "Why? ");
        update(&mut model, Msg::Input(UiInput::Paste(long.clone())), 2000);
        // aye is killed before the draft is sent.
        let mut model = started_with_history_in(directory.path());
        tell(&mut model, EventKind::DraftRestored { text: format!("Why? {saved}") }, 1000);
        assert_eq!(model.composer.shown_text().trim_end(), "Why? [pasted 40 lines]", "{line:?}");
        assert!(draw(&mut model, 1100).contains("❯ Why? [pasted 40 lines]"), "{line:?}");
        let sent = play(&mut model, 2000, "<enter>");
        let cleaned = crate::text::clean(&saved).into_owned();
        assert_eq!(sent, [format!("prompt {:?}", format!("Why? {cleaned}"))], "{line:?}");
        let mut model = started_with_history_in(directory.path());
        play(&mut model, 3000, "<up>");
        assert_eq!(model.composer.shown_text().trim_end(), "Why? [pasted 40 lines]", "{line:?}");
        let prompt = model.composer.text();
        tell(&mut model, started(&prompt), 4000);
        assert!(draw(&mut model, 4100).contains("│ [pasted 40 lines] · ctrl+o unfold"), "{line:?}");
    }
}

/// Returns a screen whose draft contains some text followed by a long paste, and the pasted text.
fn with_paste() -> (UiModel, String) {
    let mut model = model(80, 24);
    let long = (1..=20).map(|n| format!("row {n}.")).collect::<Vec<_>>().join("\n");
    play(&mut model, 1000, "Why? ");
    update(&mut model, Msg::Input(UiInput::Paste(long.clone())), 2000);
    assert_eq!(model.composer.shown_text(), "Why? [pasted 20 lines]");
    (model, long)
}

#[test]
fn no_key_damages_the_chip_of_a_paste() {
    // No part of the chip is deleted alone.
    let (mut model, long) = with_paste();
    play(&mut model, 3000, "<ctrl+w>");
    assert_eq!(model.composer.text(), "Why? ");
    // Text that is typed inside the chip goes behind it.
    let (mut model, _) = with_paste();
    play(&mut model, 3000, "<left><left><left>x!");
    assert_eq!(model.composer.text(), format!("Why? {long}x!"));
    // The same applies to Vim keys.
    let (mut model, _) = with_paste();
    model.composer.turn_vim();
    play(&mut model, 3000, "<esc>hhxu");
    assert_eq!(model.composer.text(), format!("Why? {long}"));
    play(&mut model, 5000, "x");
    assert_eq!(model.composer.text(), "Why? ");
}

#[test]
fn a_word_typed_behind_a_chip_is_separated_from_it_by_one_space() {
    for (typed, expected) in [("what", " what"), (" what", " what"), (", what", ", what")] {
        let (mut model, long) = with_paste();
        play(&mut model, 3000, typed);
        assert_eq!(model.composer.shown_text(), format!("Why? [pasted 20 lines]{expected}"));
        assert_eq!(model.composer.text(), format!("Why? {long}{expected}"));
    }
}

#[test]
fn backspace_deletes_a_selection_and_not_the_chip_next_to_it() {
    let (mut model, long) = with_paste();
    play(&mut model, 3000, " ab");
    for at in [4000, 4100, 4200] {
        update(&mut model, press(KeyCode::Left, KeyModifiers::SHIFT), at);
    }
    play(&mut model, 5000, "<backspace>");
    assert_eq!(model.composer.text(), format!("Why? {long}"));
}

#[test]
fn a_paste_hides_no_command() {
    for start in ["!", "/quit "] {
        let command = (1..=20).map(|n| format!("{start}echo {n}")).collect::<Vec<_>>().join("\n");
        let mut model = model(80, 24);
        update(&mut model, Msg::Input(UiInput::Paste(command.clone())), 2000);
        assert_eq!(model.composer.shown_text(), command, "the command is shown");
        // A chip that moves to the start of the draft is not a command.
        let mut model = super::model(80, 24);
        play(&mut model, 1000, "x");
        update(&mut model, Msg::Input(UiInput::Paste(command.clone())), 2000);
        play(&mut model, 3000, "<home>");
        update(&mut model, press(KeyCode::Delete, KeyModifiers::NONE), 4000);
        assert_eq!(model.composer.shown_text(), "[pasted 20 lines]");
        let effects = update(&mut model, press(KeyCode::Enter, KeyModifiers::NONE), 9000);
        let is_prompt = |effect: &UiEffect| matches!(effect, UiEffect::Send(Command::Prompt { text }) if *text == command);
        assert!(effects.iter().any(is_prompt), "{effects:?}");
    }
}

#[test]
fn a_chip_of_file_paths_is_replaced_with_references() {
    let (mut model, _) = with_paste();
    let paths = (1..=12).map(|n| format!("/home/me/{n}.md")).collect::<Vec<_>>().join("\n");
    model.composer.insert_paste(&paths);
    model.composer.insert(" ok");
    assert_eq!(model.composer.shown_text(), "Why? [pasted 20 lines][pasted 12 lines] ok");
    assert!(model.composer.replace_paste(&paths, |_| " @1.md".to_owned()));
    assert_eq!(model.composer.shown_text(), "Why? [pasted 20 lines] @1.md ok");
}
