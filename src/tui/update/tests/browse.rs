use super::*;
use crate::tui::layers::CommandPalette;
use crate::tui::tests::fixtures::{DIFF, completed};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

const ANSWER: &str =
    "Look at **every** token:\n\n```rust\nlet first = 1;\nlet second = 2;\n```\n\nand\n\n```sh\ncargo test\n```\n";

/// Returns a session with two prompts, a response that contains code, a command with long output, and an edit.
fn session(width: u16, height: u16) -> UiModel {
    let mut model = model(width, height);
    tell(&mut model, started("the first prompt"), 0);
    tell(&mut model, text(ANSWER), 10);
    tell(&mut model, requested("1", "RunCommand", "$ seq 400"), 20);
    let output = (1..=400).map(|n| format!("output {n}\n")).collect::<Vec<_>>().concat();
    tell(&mut model, completed("1", ToolStatus::Succeeded, &output, None), 30);
    tell(&mut model, requested("2", "EditFile", "Edit src/main.rs"), 40);
    let proposal = Proposal {
        summary: "Edit src/main.rs".to_owned(),
        diff: FileDiffs::read(DIFF),
        paths: vec!["src/main.rs".into()],
        ..Proposal::default()
    };
    let EventKind::ToolCompleted {
        tool_call_id,
        tool_name,
        status,
        latency_ms,
        output_text,
        error,
        redactions,
        artifact_uris,
        ..
    } = completed("2", ToolStatus::Succeeded, "", None)
    else {
        unreachable!()
    };
    let proposal = Some(proposal);
    tell(
        &mut model,
        EventKind::ToolCompleted {
            tool_call_id,
            tool_name,
            status,
            latency_ms,
            output_text,
            error,
            proposal,
            redactions,
            artifact_uris,
            ended: None,
        },
        50,
    );
    tell(&mut model, started("the second prompt"), 60);
    tell(&mut model, text("All of it is done.\n"), 70);
    tell(
        &mut model,
        EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: None, step_count: 1 },
        80,
    );
    draw(&mut model, 90);
    model
}

/// Returns the text next to the bar that marks the focused entry.
fn chosen(screen: &str) -> String {
    let rows = screen.lines().filter(|row| row.chars().nth(1) == Some('▌'));
    rows.map(|row| row.chars().skip(2).collect::<String>().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn browsing_moves_by_entry_and_by_prompt() {
    let mut model = session(80, 40);
    play(&mut model, 5000, "<ctrl+t>");
    assert_eq!(chosen(&draw(&mut model, 5100)), "All of it is done.");
    for (keys, begins) in [
        ("k", "the second prompt"),
        ("k", "Edit src/main.rs"),
        ("<up>", "$ seq 400"),
        ("{", "the first prompt"),
        ("}", "the second prompt"),
        ("G", "All of it is done."),
        ("g", "aye 0.1"),
        ("j", "the first prompt"),
    ] {
        play(&mut model, 5200, keys);
        let marked = chosen(&draw(&mut model, 5300));
        assert!(marked.starts_with(begins), "{keys}: {marked}");
    }
    play(&mut model, 6000, "<esc>hello");
    assert_eq!((model.browse.is_none(), model.composer.text()), (true, "hello".to_owned()));
    assert_eq!(chosen(&draw(&mut model, 6900)), "");
}

#[test]
fn escape_then_up_on_an_empty_draft_starts_browsing() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<esc><up>");
    assert!(model.browse.is_some());
    let mut model = session(80, 24);
    play(&mut model, 5000, "<up>");
    assert!(model.browse.is_none(), "up alone goes through the prompts sent before");
}

#[test]
fn keys_without_a_function_while_browsing_are_ignored_with_a_hint() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<ctrl+t>xz");
    assert_eq!(model.composer.text(), "");
    assert!(draw(&mut model, 5400).contains("`z` does nothing while you browse; esc goes back to typing"));
}

#[test]
fn enter_toggles_one_card_and_shows_all_400_lines_when_unfolded() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<ctrl+t>kkk");
    assert!(!draw(&mut model, 5400).contains("output 1"));
    play(&mut model, 5500, "<enter>");
    let screen = draw(&mut model, 5600);
    assert!(screen.contains("output 3") && screen.contains("392 lines") && screen.contains("output 400"), "{screen}");
    play(&mut model, 5700, "<enter>");
    let (transcript, look) = model.transcript_look(5800);
    let at = transcript.marks.chosen.unwrap();
    let rows = transcript.rows_of(at, look);
    assert_eq!(rows.iter().filter(|row| row.cells().contains("output ")).count(), 400);
    play(&mut model, 5900, "<enter>");
    assert!(!draw(&mut model, 6000).contains("output 1"));
    play(&mut model, 6100, "o");
    assert!(draw(&mut model, 6200).contains("output 1"), "all tools");
}

#[test]
fn copying_takes_the_source_text_without_decoration() {
    let mut model = session(40, 30);
    let keys = "<ctrl+t>g";
    play(&mut model, 5000, keys);
    play(&mut model, 5300, "jj");
    assert_eq!(play(&mut model, 5500, "y"), [format!("copy {:?} (12 lines)", ANSWER.trim_end())]);
    let code = |code: &str, what: &str| format!("copy {code:?} ({what})");
    assert_eq!(play(&mut model, 5600, "c"), [code("let first = 1;\nlet second = 2;\n", "code 1 of 2, 2 lines")]);
    assert_eq!(play(&mut model, 5700, "c"), [code("cargo test\n", "code 2 of 2, 10 characters")]);
    assert_eq!(play(&mut model, 5800, "c"), [code("let first = 1;\nlet second = 2;\n", "code 1 of 2, 2 lines")]);
    assert_eq!(play(&mut model, 5900, "jjp"), ["copy \"src/main.rs\" (src/main.rs)"]);
    assert_eq!(play(&mut model, 6200, "e"), ["show File(\"src/main.rs\")"]);
    play(&mut model, 6300, "u");
    assert!(draw(&mut model, 6400).contains("−fn greet"));
}

#[test]
fn selected_lines_are_copied_without_soft_wraps() {
    let mut model = model(40, 20);
    let long = "one line that is so long that a screen of forty cells breaks it twice at the least";
    tell(&mut model, text(&format!("{long}\n\n```\n{long}\n  indented\n```\n")), 0);
    draw(&mut model, 10);
    play(&mut model, 5000, "<ctrl+t>v");
    assert_eq!(play(&mut model, 5200, "y"), [format!("copy {long:?} (82 characters)")]);
    play(&mut model, 5300, "vjjj");
    assert_eq!(play(&mut model, 5800, "y"), [format!("copy {:?} (4 lines)", format!("{long}\n\n{long}\n  indented"))]);
    assert!(model.browse.as_ref().is_some_and(|browse| !browse.selects));
}

#[test]
fn tables_are_copied_as_cells_without_borders() {
    let table =
        "| Step | Before |\n|---|---:|\n| lex 你好 | 48.2 ms |\n| a name that is much too long for so narrow a screen | 1 s |\n";
    let mut model = model(84, 24);
    tell(&mut model, text(&format!("{table}\n---\n\nend\n")), 0);
    draw(&mut model, 10);
    play(&mut model, 5000, "<ctrl+t>vG");
    let lines = "Step\tBefore\nlex 你好\t48.2 ms\na name that is much too long for so narrow a screen\t1 s";
    assert_eq!(play(&mut model, 5200, "y"), [format!("copy {:?} (6 lines)", format!("{lines}\n\n\nend"))]);
    // Columns keep their positions.
    play(&mut model, 5300, "v<ctrl+v>");
    let screen = draw(&mut model, 5400);
    assert!(screen.contains("48.2 ms") && screen.contains("│"), "{screen}");
}

#[test]
fn a_wrapped_table_cell_is_copied_as_one_cell_and_partial_rows_without_borders() {
    let long = "word ".repeat(30);
    let mut model = model(90, 24);
    tell(&mut model, text(&format!("| a | b |\n|---|---|\n| {long} | {long} |\n")), 0);
    let screen = draw(&mut model, 10);
    let (column, row) = place(&screen, "a ");
    play(&mut model, 5000, "<ctrl+t>vG");
    let whole = format!("a\tb\n{}\t{}", long.trim(), long.trim());
    assert_eq!(play(&mut model, 5200, "y"), [format!("copy {whole:?} (2 lines)")]);
    play(&mut model, 5300, "<esc>");
    update(&mut model, pointer(MouseEventKind::Down(MouseButton::Left), column, row), 5400);
    update(&mut model, pointer(MouseEventKind::Drag(MouseButton::Left), column + 60, row), 5500);
    let effects = update(&mut model, pointer(MouseEventKind::Up(MouseButton::Left), column + 60, row), 5600);
    assert_eq!(effects.iter().filter_map(words).collect::<Vec<_>>(), ["copy \"a\\tb\" (3 characters)"]);
}

#[test]
fn a_click_highlights_a_list_row_and_a_second_click_selects() {
    let click = |model: &mut UiModel, words: &str, at: u64| {
        let screen = draw(model, at);
        let (column, row) = place(&screen, words);
        update(model, pointer(MouseEventKind::Down(MouseButton::Left), column, row), at)
            .iter()
            .filter_map(super::words)
            .collect::<Vec<_>>()
    };
    let mut model = session(100, 30);
    play(&mut model, 5000, "<ctrl+p>policy");
    assert_eq!(click(&mut model, "/policy grants", 5100), [""; 0]);
    assert!(draw(&mut model, 5200).contains("❯ /policy grants"));
    assert_eq!(click(&mut model, "/policy grants", 5300), ["listgrants"]);
    assert!(!model.layers.is_open::<CommandPalette>());
    // The same applies to the completion menu, but not to the click that brings the window to the front.
    play(&mut model, 6000, "/co");
    assert_eq!(click(&mut model, "/cost", 6200), [""; 0]);
    assert!(draw(&mut model, 6300).contains("❯ /cost"));
    update(&mut model, Msg::Input(UiInput::FocusIn), 6350);
    assert_eq!(click(&mut model, "/cost", 6400), [""; 0]);
    assert_eq!(model.composer.text(), "/co");
    click(&mut model, "/cost", 7000);
    assert!(model.composer.is_empty());
}

#[test]
fn clicks_on_rows_below_the_transcript_perform_their_action() {
    let click = |model: &mut UiModel, words: &str, at: u64| {
        let screen = draw(model, at);
        let (column, row) = place(&screen, words);
        update(model, pointer(MouseEventKind::Down(MouseButton::Left), column, row), at);
        draw(model, at)
    };
    let mut model = session(100, 24);
    play(&mut model, 5000, "<pgup>");
    let screen = click(&mut model, "below · end", 5200);
    assert!(!screen.contains("below · end") && model.transcript.is_following(), "{screen}");
    // While the user is typing, a dialog does not get focus. A click gives it focus.
    play(&mut model, 6000, "wait");
    for id in ["a", "b"] {
        tell(&mut model, EventKind::ApprovalRequested(edit_approval(id)), 6300);
    }
    assert!(!model.dialogs.is_open());
    update(&mut model, Msg::Input(UiInput::FocusIn), 8000);
    click(&mut model, "2 waiting for you", 8100);
    assert!(!model.dialogs.is_open(), "the click that brings the window to the front is none");
    click(&mut model, "2 waiting for you", 9000);
    assert!(model.dialogs.is_open() && model.dialogs.position_number() == 1);
    click(&mut model, "2 waiting for you", 9500);
    assert_eq!(model.dialogs.position_number(), 2, "the next one");
    assert_eq!(model.composer.text(), "wait");
}

#[test]
fn a_search_counts_matches_wraps_around_and_unfolds_cards() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<ctrl+t>/output 37");
    let screen = draw(&mut model, 6200);
    assert!(screen.contains("/output 37") && screen.contains("1 of 11"), "{screen}");
    assert!(screen.contains("output 37 ") || screen.contains("output 37\n"), "it opened\n{screen}");
    play(&mut model, 6300, "<enter>n");
    assert!(draw(&mut model, 6400).contains("2 of 11"));
    assert!(draw(&mut model, 6400).contains("output 370"));
    play(&mut model, 6500, "NN");
    assert!(draw(&mut model, 6600).contains("11 of 11"));
    play(&mut model, 6700, "<esc>");
    assert!(model.browse.is_some() && model.transcript.marks.query.is_none());
    play(&mut model, 6800, "/every token");
    assert!(draw(&mut model, 8200).contains("1 of 1"), "marks of Markdown do not stand in the way");
    play(&mut model, 8300, "<esc>/nowhere");
    assert!(draw(&mut model, 9200).contains("no matches"));
}

#[test]
fn the_cursor_is_placed_where_typed_keys_apply() {
    let mut model = session(80, 24);
    let cursor = |model: &mut UiModel, at: u64| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        let drawn = crate::tui::view::draw(model, &mut buffer, at);
        (drawn.cursor.map(|place| (place.x, place.y)), draw(model, at))
    };
    play(&mut model, 5000, "<ctrl+t>kk");
    let (place_of, screen) = cursor(&mut model, 5100);
    let entry = screen.lines().position(|line| line.chars().nth(1) == Some('▌')).unwrap_or(usize::MAX);
    assert_eq!(place_of, Some((1, entry as u16)), "at the chosen entry\n{screen}");
    play(&mut model, 5200, "/a好");
    let (place_of, screen) = cursor(&mut model, 5300);
    let row = screen.lines().position(|line| line.starts_with("  /a好")).expect("the search");
    assert_eq!(place_of, Some((6, row as u16)), "behind what is looked for\n{screen}");
    play(&mut model, 5400, "<esc><esc><esc>");
    let (place_of, screen) = cursor(&mut model, 6500);
    let row = screen.lines().position(|line| line.starts_with("❯  Ask")).expect("the composer");
    assert_eq!(place_of, Some((2, row as u16)), "in the draft\n{screen}");
    play(&mut model, 7000, "<ctrl+r>se");
    let (place_of, screen) = cursor(&mut model, 7600);
    let row = screen.lines().position(|line| line.starts_with("  search history: se")).expect("the search");
    assert_eq!(place_of, Some((20, row as u16)), "behind what was sent before\n{screen}");
}

#[test]
fn an_approval_that_arrives_while_browsing_gets_no_keys_before_tab() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<ctrl+t>");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 8000);
    draw(&mut model, 9000);
    assert!(!model.dialogs.is_open());
    assert_eq!(play(&mut model, 9100, "y").len(), 1, "y copies still");
    play(&mut model, 9500, "<tab>");
    assert!(model.dialogs.is_open() && model.browse.is_some());
    play(&mut model, 9600, "<esc>j");
    assert!(!model.dialogs.is_open() && model.browse.is_some());
}

#[test]
fn copy_takes_the_last_response_its_code_or_an_earlier_response() {
    let mut model = session(80, 24);
    let copied = |model: &mut UiModel, words: &str| {
        play(model, 5000, &format!("{words}<enter>")).into_iter().filter(|said| said.starts_with("copy")).collect::<Vec<_>>()
    };
    assert_eq!(copied(&mut model, "/copy"), ["copy \"All of it is done.\" (the last response, 18 characters)"]);
    assert_eq!(copied(&mut model, "/copy code"), ["copy \"cargo test\\n\" (the last code block, 10 characters)"]);
    assert!(copied(&mut model, "/copy 2")[0].contains("every"));
    assert!(copied(&mut model, "/copy 9").is_empty());
}

#[test]
fn export_accepts_a_format_and_a_file() {
    let sent = |words: &str| {
        let mut model = session(80, 24);
        play(&mut model, 5000, &format!("{words}<enter>"))
            .into_iter()
            .filter(|said| said.starts_with("export"))
            .collect::<Vec<_>>()
    };
    assert_eq!(sent("/export"), ["export { form: markdown, path: none }"]);
    assert_eq!(sent("/export html"), ["export { form: html, path: none }"]);
    assert_eq!(sent("/export json a b.txt"), ["export { form: json, path: some(\"a b.txt\") }"]);
    assert_eq!(sent("/export talk.html"), ["export { form: html, path: some(\"talk.html\") }"]);
    assert_eq!(sent("/export pdf"), [""; 0], "it is no form, and nobody means a file of this name");
    let mut model = session(80, 24);
    play(&mut model, 5000, "/export pdf<enter>");
    assert!(draw(&mut model, 5100).contains("`pdf` is not md, json or html"));
    assert_eq!(model.composer.text(), "/export pdf");
}

fn pointer(kind: MouseEventKind, column: u16, row: u16) -> Msg {
    Msg::Input(UiInput::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
}

/// Returns the column and row at which a text appears on the screen.
#[track_caller]
fn place(screen: &str, words: &str) -> (u16, u16) {
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(words)).expect(words);
    (line[..line.find(words).unwrap()].chars().count() as u16, row as u16)
}

#[test]
fn a_click_toggles_a_card_unless_the_click_focuses_the_window() {
    let mut model = session(80, 30);
    let screen = draw(&mut model, 5000);
    let (column, row) = place(&screen, "$ seq 400");
    let click = |model: &mut UiModel, at: u64| {
        for kind in [MouseEventKind::Down(MouseButton::Left), MouseEventKind::Up(MouseButton::Left)] {
            assert!(update(model, pointer(kind, column, row), at).is_empty());
        }
        draw(model, at)
    };
    update(&mut model, Msg::Input(UiInput::FocusIn), 5000);
    assert!(!click(&mut model, 5200).contains("output 1"));
    let opened = click(&mut model, 5400);
    assert!(opened.contains("output 1"), "{opened}");
}

#[test]
fn a_drag_selects_within_one_entry_and_copies_on_release() {
    let mut model = session(80, 30);
    let screen = draw(&mut model, 5000);
    let (column, row) = place(&screen, "let first");
    update(&mut model, pointer(MouseEventKind::Down(MouseButton::Left), column + 4, row), 5100);
    update(&mut model, pointer(MouseEventKind::Drag(MouseButton::Left), column + 9, row + 1), 5200);
    let effects = update(&mut model, pointer(MouseEventKind::Up(MouseButton::Left), column + 9, row + 1), 5300);
    assert_eq!(effects.iter().filter_map(words).collect::<Vec<_>>(), ["copy \"first = 1;\\nlet second\" (2 lines)"]);
    // Nothing beyond the entry is selected.
    update(&mut model, pointer(MouseEventKind::Down(MouseButton::Left), column, row), 5400);
    update(&mut model, pointer(MouseEventKind::Drag(MouseButton::Left), 60, row + 9), 5500);
    let effects = update(&mut model, pointer(MouseEventKind::Up(MouseButton::Left), 60, row + 9), 5600);
    let copied = effects.iter().filter_map(words).collect::<String>();
    assert!(copied.contains("cargo test") && !copied.contains("seq"), "{copied}");
}

#[test]
fn a_pointer_held_at_the_edge_scrolls_and_stops_at_the_end() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<ctrl+o><ctrl+o>");
    play(&mut model, 5300, "<home>");
    let screen = draw(&mut model, 5400);
    let (column, row) = place(&screen, "output 1");
    update(&mut model, pointer(MouseEventKind::Down(MouseButton::Left), column, row), 5500);
    let bottom = model.transcript.view_height() - 1;
    update(&mut model, pointer(MouseEventKind::Drag(MouseButton::Left), column + 8, bottom), 5600);
    let mut at = 5600;
    for _ in 0..1000 {
        let Some(next) = model.deadline(at).filter(|_| model.screen.pointer.deadline().is_some()) else { break };
        at = next;
        update(&mut model, Msg::Time, at);
        draw(&mut model, at);
    }
    assert!(model.screen.pointer.deadline().is_none(), "nothing wakes it any more");
    let effects = update(&mut model, pointer(MouseEventKind::Up(MouseButton::Left), column + 8, bottom), at + 10);
    let copied = effects.iter().filter_map(words).collect::<String>();
    assert!(copied.contains("output 1\\noutput 2\\n") && copied.contains("output 400"), "{copied}");
}

#[test]
fn ctrl_s_toggles_mouse_capture() {
    let mut model = session(80, 24);
    assert_eq!(play(&mut model, 5000, "<ctrl+s>"), ["mouse false"]);
    assert!(draw(&mut model, 5100).contains("ctrl+s to undo"));
    assert_eq!(play(&mut model, 5200, "<ctrl+s>"), ["mouse true"]);
}

#[test]
fn new_lines_are_counted_until_seen() {
    let mut model = session(80, 24);
    play(&mut model, 5000, "<home>");
    tell(&mut model, text("one more\n\nand one\n\n"), 5200);
    assert!(draw(&mut model, 5300).contains("3 new lines · end") || draw(&mut model, 5300).contains("4 new lines · end"));
    play(&mut model, 5400, "<pgdn>");
    play(&mut model, 5500, "<end>");
    assert!(!draw(&mut model, 5600).contains("new lines"));
}

#[test]
fn pages_and_columns_of_a_response_with_10_000_lines_can_be_selected() {
    let mut model = model(80, 24);
    let answer = (1..=10_000).map(|n| format!("row {n:05} of a table\n")).collect::<Vec<_>>().concat();
    tell(&mut model, text(&format!("```\n{answer}```\n")), 0);
    draw(&mut model, 10);
    play(&mut model, 5000, "<ctrl+t>v<pgdn>");
    let some = play(&mut model, 5200, "y");
    let lines = some[0].matches("\\n").count() + 1;
    assert!(some[0].contains("row") && lines > 5 && lines < 40, "{lines}");
    play(&mut model, 5300, "vG");
    let all = play(&mut model, 5400, "y");
    assert!(all[0].contains("row 10000 of a table") && all[0].ends_with("lines)"), "{}", &all[0][all[0].len() - 60..]);
    play(&mut model, 5500, "<ctrl+v>lllllljj");
    let columns = play(&mut model, 5600, "y");
    assert!(columns[0].contains("(3 lines)") && !columns[0].contains("table"), "{columns:?}");
}
