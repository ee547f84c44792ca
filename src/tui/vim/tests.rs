//! Tests that compare drafts before and after keys are pressed. `|` marks the cursor.

use super::*;
use proptest::prelude::*;

fn text_area(text: &str) -> TextArea<'static> {
    let lines = text.split('\n').map(|line| line.replace('|', "")).collect();
    let mut area = TextArea::new(lines);
    for (row, line) in text.split('\n').enumerate() {
        if let Some(at) = line.find('|') {
            move_cursor(&mut area, Place { row, column: line[..at].chars().count() });
        }
    }
    area
}

fn shown(area: &TextArea<'_>) -> String {
    let at = cursor_place(area);
    let lines = area.lines().iter().enumerate().map(|(row, line)| {
        let cut = line.char_indices().nth(at.column).map_or(line.len(), |(byte, _)| byte);
        if row == at.row { format!("{}|{}", &line[..cut], &line[cut..]) } else { line.clone() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn press(vim: &mut Vim, area: &mut TextArea<'static>, keys: &str) {
    for letter in keys.chars() {
        let key = match letter {
            '⎋' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
            '↻' => KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL),
            letter => KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE),
        };
        if vim.key(area, key) == KeyOutcome::Nothing && vim.mode() == VimMode::Insert {
            vim.record_typed(key);
            area.input(key);
        }
    }
}

/// Returns the draft after the given keys were pressed in normal mode.
fn after(text: &str, keys: &str) -> String {
    let (mut vim, mut area) = (Vim { mode: VimMode::Normal, ..Vim::default() }, text_area(text));
    press(&mut vim, &mut area, keys);
    shown(&area)
}

#[test]
fn motions_move_the_cursor_as_in_vim() {
    for (text, keys, expected) in [
        ("|one two", "w", "one |two"),
        ("|one, two", "w", "one|, two"),
        ("|one, two", "W", "one, |two"),
        ("|one\n\n  two", "w", "one\n|\n  two"),
        ("|one\n\n  two", "ww", "one\n\n  |two"),
        ("|one two three", "2w", "one two |three"),
        ("|one", "w", "on|e"),
        ("one tw|o", "b", "one |two"),
        ("one |two", "b", "|one two"),
        ("one\n|two", "b", "|one\ntwo"),
        ("|one two", "e", "on|e two"),
        ("on|e two", "e", "one tw|o"),
        ("one tw|o", "0", "|one two"),
        ("  one tw|o", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("|one\ntwo\nthree", "G", "one\ntwo\n|three"),
        ("one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"),
        ("|one\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("|one\ntwo\nthree", "jl", "one\nt|wo\nthree"),
        ("one\nlon|ger", "k", "on|e\nlonger"),
        ("|a.b.c", "f.;", "a.b|.c"),
        ("|a.b.c", "t.", "|a.b.c"),
        ("|ab.c", "t.", "a|b.c"),
        ("|a.b.c", "t.;", "a.|b.c"),
        ("a.b.|c", "F.,", "a.b|.c"),
        ("|e\u{301}a", "l", "e\u{301}|a"),
        ("|one", "lllll", "on|e"),
        ("o|ne", "hhh", "|one"),
    ] {
        assert_eq!(after(text, keys), expected, "{text:?} {keys}");
    }
}

#[test]
fn operators_act_on_the_same_text_as_in_vim() {
    for (text, keys, expected) in [
        ("|one two", "dw", "|two"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "2dw", "|three"),
        ("|one two three", "d2w", "|three"),
        ("|one two", "cwnew⎋", "ne|w two"),
        ("one| two", "cwX⎋", "one|Xtwo"),
        ("one t|wo", "db", "one |wo"),
        ("|one two", "de", "| two"),
        ("on|e two", "d$", "o|n"),
        ("on|e two", "D", "o|n"),
        ("on|e two", "d0", "|e two"),
        ("|one\ntwo\nthree", "dd", "|two\nthree"),
        ("one\ntwo\nth|ree", "dd", "one\n|two"),
        ("|one", "dd", "|"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("|one\ntwo\nthree", "dj", "|three"),
        ("one\ntwo\nthr|ee", "dgg", "|"),
        ("one\nt|wo", "ccnew⎋", "one\nne|w"),
        ("|one two", "x", "|ne two"),
        ("one tw|o", "x", "one t|w"),
        ("o|ne", "X", "|ne"),
        ("|e\u{301}a", "x", "|a"),
        ("|one", "sX⎋", "|Xne"),
        ("a |bc. d", "dt.", "a |. d"),
        ("a |bc. d", "df.", "a | d"),
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one tw|o", "daw", "on|e"),
        ("say \"he|llo\" now", "di\"", "say \"|\" now"),
        ("say \"he|llo\" now", "da\"", "say |now"),
        ("say \"he|llo\"", "da\"", "sa|y"),
        ("f(a, |b)", "di(", "f(|)"),
        ("f(a, |b)", "dab", "|f"),
        ("f(a, (b), |c)", "ci)X⎋", "f(|X)"),
        ("f |{\n  x\n}", "diB", "f {|}"),
        ("a[|1]", "ci[2⎋", "a[|2]"),
        ("<|p>", "yi<$p", "<p>|p"),
        ("f|(a", "di(", "f|(a"),
        ("|one\ntwo three", "d2w", "|three"),
        ("|one\ntwo\nthree", "d2w", "|\nthree"),
        ("one\n  |two\n  three", "dd", "one\n  |three"),
        ("|one two", "majqx", "|one two"),
        ("|one two", "yww", "one |two"),
        ("|one two", "ywwP", "one one| two"),
        ("|one\ntwo", "yyp", "one\n|one\ntwo"),
        ("|one\ntwo", "yyjp", "one\ntwo\n|one"),
        ("|one\ntwo", "ddp", "two\n|one"),
        ("|ab", "xp", "b|a"),
        ("|one", "rX", "|Xne"),
        ("|one", "2rX", "X|Xe"),
        ("|one", "9rX", "|one"),
        ("|one", "ddu", "|one"),
    ] {
        assert_eq!(after(text, keys), expected, "{text:?} {keys}");
    }
}

#[test]
fn insert_mode_starts_at_the_requested_position_and_ends_one_character_left() {
    for (text, keys, expected) in [
        ("o|ne", "iX⎋", "o|Xne"),
        ("o|ne", "aX⎋", "on|Xe"),
        ("  o|ne", "IX⎋", "  |Xone"),
        ("|one", "AX⎋", "one|X"),
        ("|one\ntwo", "oX⎋", "one\n|X\ntwo"),
        ("one\n|two", "OX⎋", "one\n|X\ntwo"),
        ("o|ne", "3iX⎋", "oXX|Xne"),
        ("|one", "2Aab⎋", "oneaba|b"),
        ("|one", "2oX⎋", "one\nX\n|X"),
    ] {
        assert_eq!(after(text, keys), expected, "{text:?} {keys}");
    }
}

#[test]
fn dot_repeats_the_last_change() {
    for (text, keys, expected) in [
        ("|one two three", "dw.", "|three"),
        ("|one two", "cwX⎋w.", "X |X"),
        ("|one\ntwo\nthree", "dd.", "|three"),
        ("|abc", "x..", "|"),
        ("|abcdef", "x3.", "|ef"),
        ("|abcdef", "2x.", "|ef"),
        ("|abcdefgh", "2x3..", "|"),
        ("|one", "2iX⎋.", "XX|XXone"),
    ] {
        assert_eq!(after(text, keys), expected, "{text:?} {keys}");
    }
}

#[test]
fn escape_is_unhandled_if_there_is_nothing_to_cancel() {
    let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
    let (mut vim, mut area) = (Vim::default(), text_area("|"));
    assert_eq!(vim.key(&mut area, escape), KeyOutcome::Nothing, "an empty draft");
    let mut area = text_area("one|");
    assert_eq!(vim.key(&mut area, escape), KeyOutcome::Moved);
    assert_eq!((vim.mode(), shown(&area)), (VimMode::Normal, "on|e".to_owned()));
    assert_eq!(vim.key(&mut area, escape), KeyOutcome::Nothing);
    press(&mut vim, &mut area, "2d");
    assert_eq!(vim.key(&mut area, escape), KeyOutcome::Moved);
    assert_eq!(vim.key(&mut area, escape), KeyOutcome::Nothing);
}

#[test]
fn vim_command_lines_are_discarded() {
    let (mut vim, mut area) = (Vim { mode: VimMode::Normal, ..Vim::default() }, text_area("o|ne two"));
    press(&mut vim, &mut area, ":dd/x");
    assert!(vim.is_in_command_line());
    let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(vim.key(&mut area, enter), KeyOutcome::Moved, "it is not sent");
    assert_eq!((vim.is_in_command_line(), shown(&area)), (false, "o|ne two".to_owned()));
    assert_eq!(vim.key(&mut area, enter), KeyOutcome::Nothing);
    press(&mut vim, &mut area, ":w");
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!((vim.key(&mut area, interrupt), vim.is_in_command_line()), (KeyOutcome::Nothing, false), "it is for the screen");
    for letter in FOR_TEXT.chars() {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
        let mut vim = Vim { mode: VimMode::Normal, ..Vim::default() };
        assert_eq!(vim.key(&mut text_area("|"), key), KeyOutcome::Nothing, "{letter} begins a draft");
    }
    press(&mut vim, &mut area, "/two⎋x");
    assert_eq!(shown(&area), "o|e two");
}

proptest! {
    #[test]
    fn no_key_sequence_moves_the_cursor_outside_the_text(text in "[a-c .\"\n]{0,30}", keys in "[hjklwWbBeE0^$gGfFtT;,dcyxXsSDCYpPurvVJiaIAoO~.RU%{}|()><=:mb1-3\"⎋ab↻]{0,40}") {
        let (mut vim, mut area) = (Vim { mode: VimMode::Normal, ..Vim::default() }, text_area(&text));
        press(&mut vim, &mut area, &keys);
        let at = cursor_place(&area);
        prop_assert!(at.row < area.lines().len() && at.column <= area.lines()[at.row].chars().count());
    }

    #[test]
    fn undo_restores_the_original_text(text in "[a-c .\n]{1,30}", keys in prop::sample::select(vec!["dw", "dd", "x", "D", "rX", "daw", "yyp", "3iX⎋"])) {
        let before = text_area(&text);
        let undone = after(&text, &format!("{keys}uuuuuu"));
        prop_assert_eq!(undone.replace('|', ""), before.lines().join("\n"));
    }
}

#[test]
fn an_insertion_is_undone_and_redone_as_a_unit() {
    for (text, keys, expected) in [
        ("|one two", "A xyz⎋u", "one tw|o"),
        ("|one two", "A xyz⎋u↻", "one two| xyz"),
        ("|one two", "ciwabc⎋u", "|one two"),
        ("|one two", "xxuu", "|one two"),
        ("|one two", "xx2u", "|one two"),
        ("|one two", "xxuu↻", "|ne two"),
        ("|one\ntwo", "ddup", "one\n|one\ntwo"),
        ("|one two", "dwAx⎋u", "tw|o"),
        ("|one", "u", "|one"),
    ] {
        assert_eq!(after(text, keys), expected, "{text} {keys}");
    }
    let (mut vim, mut area) = (Vim::default(), text_area("|"));
    press(&mut vim, &mut area, "hello world, and much more than fifty letters of it, for those are soon typed⎋u");
    assert_eq!(shown(&area), "|", "all that was typed since the draft began");
}

#[test]
fn dot_repeats_only_completed_changes_and_their_inserted_text() {
    for (text, keys, expected) in [
        // If there is no X before the end, the rest of the keys are commands, including the dot.
        ("|one X two", "ctX.d⎋$.", ".dX tw|o"),
        ("|one X two", "ctXdd⎋0fX.", "dd|X two"),
        ("|a b", "ciw.⎋u.", "|. b"),
        // Undone changes, plain movements and cancelled commands are not repeated.
        ("|one two", "xu.", "|ne two"),
        ("|one two", "xu↻.", "|e two"),
        ("|one two three", "xd⎋3⎋f⎋.", "|e two three"),
        ("|one two three", "x:.⎋.", "|e two three"),
    ] {
        assert_eq!(after(text, keys), expected, "{text} {keys}");
    }
    let (mut vim, mut area) = (Vim::default(), text_area("|"));
    press(&mut vim, &mut area, "do⎋.");
    assert_eq!(shown(&area), "dd|oo", "what the draft began with is typed again, and not taken for commands");
}

#[test]
fn commands_on_many_rows_are_fast_and_puts_are_bounded_in_size() {
    let (mut vim, mut area) = (Vim { mode: VimMode::Normal, ..Vim::default() }, text_area("|one"));
    press(&mut vim, &mut area, "yy9999p");
    assert_eq!(area.lines().len(), 10_000);
    press(&mut vim, &mut area, "dgg");
    press(&mut vim, &mut area, "ione⎋");
    press(&mut vim, &mut area, "yy9999p");
    let bytes: usize = area.lines().iter().map(String::len).sum();
    assert!(bytes < 2 << 20, "{bytes}");
}

#[test]
fn pending_commands_are_cancelled_when_the_draft_changes_or_enter_is_pressed() {
    let (mut vim, mut area) = (Vim { mode: VimMode::Normal, ..Vim::default() }, text_area("|short"));
    press(&mut vim, &mut area, "2d");
    // Another draft has replaced the text.
    vim.reset_pending();
    press(&mut vim, &mut area, "l");
    assert_eq!((shown(&area).as_str(), vim.mode()), ("s|hort", VimMode::Normal));
    for keys in ["r", "f", "d", "\"", "dt"] {
        press(&mut vim, &mut area, keys);
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(vim.key(&mut area, enter), KeyOutcome::Moved, "{keys}");
        assert_eq!(vim.key(&mut area, enter), KeyOutcome::Nothing, "{keys}");
    }
}

#[test]
fn changing_a_word_on_its_last_letter_changes_only_that_letter() {
    assert_eq!(after("on|e two", "cwX⎋"), "on|X two");
    assert_eq!(after("|a two", "cwX⎋"), "|X two");
    assert_eq!(after("|one two", "cwX⎋"), "|X two");
}

#[test]
fn unsupported_vim_commands_change_nothing() {
    for keys in ["v", "V", "J", "~", ">>", "<<", "gUU", "guw", "=", "R", "%", "}", "{", "&", "K", "Q"] {
        assert_eq!(after("on|e two", keys).replace('|', ""), "one two", "{keys}");
    }
}
