//! Tests of the help: keys for the current context come first, typing searches, and keys never decide a dialog below
//! the help.

use super::*;
use crate::tui::layers::{Help, ModelPicker};
use crate::tui::tests::fixtures::listed_models;

/// Returns the rows below the title and the search row.
fn rows(model: &mut UiModel, at: u64) -> Vec<String> {
    draw(model, at).lines().skip(2).map(|row| row.trim_end().to_owned()).collect()
}

#[test]
fn the_help_scrolls_and_closes_on_escape() {
    for (width, height) in [(120, 36), (60, 20), (40, 12)] {
        let mut model = model(width, height);
        assert!(play(&mut model, 1000, "?").is_empty());
        let screen = draw(&mut model, 1100);
        assert!(screen.contains("type to search") && screen.contains("Write"), "{screen}");
        play(&mut model, 2000, "<end>");
        assert!(draw(&mut model, 2100).contains("ctrl+d"), "{}", draw(&mut model, 2100));
        play(&mut model, 3000, "<pgup><home>");
        assert!(rows(&mut model, 3100)[0].contains("Write"));
        play(&mut model, 4000, "<esc>a");
        assert_eq!((!model.layers.is_open::<Help>(), model.composer.text()), (true, "a".to_owned()));
    }
}

#[test]
fn typing_in_the_help_searches_words_and_keys() {
    let mut model = model(100, 30);
    play(&mut model, 1000, "?ctrl+g");
    let found = rows(&mut model, 2000);
    assert_eq!(found[0].trim(), "Typing [composer]");
    assert!(found[1].contains("ctrl+g") && found[1].contains("edit the draft in your editor"), "{found:?}");
    assert!(found[2].trim().is_empty(), "{found:?}");
    play(&mut model, 3000, "<ctrl+u>model change");
    let found = rows(&mut model, 4000).join("\n");
    assert!(found.contains("ctrl+l") && found.contains("/model") && !found.contains("ctrl+g"), "{found}");
    play(&mut model, 5000, "<ctrl+u>xyzzy");
    assert!(draw(&mut model, 6000).contains("no matches"));
    play(&mut model, 7000, "<backspace><backspace><backspace><backspace><backspace>");
    assert!(rows(&mut model, 8000)[0].contains("Write"), "the sheet is back");
    let _ = update(&mut model, Msg::Input(UiInput::Paste("keymap.toml".to_owned())), 9000);
    assert!(draw(&mut model, 9000).contains("Custom keys"));
    assert_eq!(model.composer.text(), "");
}

#[test]
fn the_help_lists_currently_active_keys_first() {
    let first = |model: &mut UiModel| rows(model, 40_000)[0].trim().to_owned();
    let mut browsing = model(100, 30);
    tell(&mut browsing, started("x"), 10);
    play(&mut browsing, 1000, "<ctrl+t>?");
    assert_eq!(first(&mut browsing), "Browsing [browse]");
    play(&mut browsing, 2000, "<esc>");
    assert!(browsing.browse.is_some() && !browsing.layers.is_open::<Help>());
    let f1 = |model: &mut UiModel| drop(update(model, press(KeyCode::F(1), KeyModifiers::NONE), 30_000));
    let mut asking = asked(vec![edit_approval("a")]);
    f1(&mut asking);
    assert_eq!(first(&mut asking), "Approvals and questions [question]");
    let mut choosing = model(100, 30);
    play(&mut choosing, 1000, "<ctrl+l>");
    tell(&mut choosing, EventKind::ModelsListed { models: listed_models(), notices: Vec::new() }, 2000);
    f1(&mut choosing);
    assert!(first(&mut choosing).starts_with("Lists"), "{}", first(&mut choosing));
    play(&mut choosing, 41_000, "<esc>");
    assert!(choosing.layers.is_open::<ModelPicker>() && draw(&mut choosing, 42_000).contains("opus"));
    let mut by_word = model(100, 30);
    play(&mut by_word, 1000, "/keys<enter>");
    assert!(first(&mut by_word).starts_with("Write"), "the word is no longer a draft");
    let mut menu = model(100, 30);
    play(&mut menu, 1000, "/mo");
    f1(&mut menu);
    assert!(first(&mut menu).contains("[menu]"), "{}", first(&mut menu));
}

#[test]
fn nothing_is_decided_while_the_help_is_open_and_the_approval_arms_again() {
    let mut model = asked(vec![edit_approval("a")]);
    assert_eq!(play(&mut model, 7000, "y"), [""; 0]);
    let _ = update(&mut model, press(KeyCode::F(1), KeyModifiers::NONE), 7100);
    draw(&mut model, 7100);
    assert_eq!(wait(&mut model, 7500), [""; 0], "the letter that waited is taken back");
    assert_eq!(play(&mut model, 8000, "y<enter>n<down><enter>"), [""; 0]);
    assert_eq!(wait(&mut model, 9000), [""; 0]);
    assert!(model.layers.is_open::<Help>() && model.dialogs.is_open());
    assert_eq!(model.composer.text(), "");
    assert_eq!(play(&mut model, 10_000, "<esc>"), [""; 0]);
    assert!(draw(&mut model, 10_050).contains("y  yes"));
    assert_eq!(play(&mut model, 10_100, "y"), [""; 0]);
    assert_eq!(wait(&mut model, 10_460), ["a Approved"]);
    let mut model = asked(vec![edit_approval("a")]);
    let _ = update(&mut model, press(KeyCode::F(1), KeyModifiers::NONE), 7000);
    play(&mut model, 8000, "<esc>");
    draw(&mut model, 8001);
    draw(&mut model, 10_000);
    play(&mut model, 11_000, "y");
    assert_eq!(wait(&mut model, 11_350), ["a Approved"]);
}

#[test]
fn text_typed_in_an_approval_is_preserved_while_the_help_is_open() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 7000, "N");
    wait(&mut model, 7400);
    play(&mut model, 8000, "because");
    let _ = update(&mut model, press(KeyCode::F(1), KeyModifiers::NONE), 9000);
    assert_eq!(rows(&mut model, 9100)[0].trim(), "Text fields in a form [field]");
    assert_eq!(play(&mut model, 9200, "<esc>"), [""; 0]);
    assert!(!model.layers.is_open::<Help>() && draw(&mut model, 9300).contains("because"));
    play(&mut model, 11_000, " it is late");
    draw(&mut model, 11_500);
    assert_eq!(play(&mut model, 13_000, "<enter>"), ["a Denied { reason: Some(\"because it is late\") }"]);
}

#[test]
fn an_approval_that_arrives_while_the_help_is_open_does_not_take_focus() {
    let mut model = model(100, 30);
    play(&mut model, 1000, "?");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9000);
    wait(&mut model, 12_000);
    assert!(!model.dialogs.is_open());
    assert!(draw(&mut model, 12_000).contains("waiting for you"));
    play(&mut model, 13_000, "<tab>");
    assert!(!model.layers.is_open::<Help>() && model.dialogs.is_open(), "tab reviews it");
}

#[test]
fn a_key_of_another_function_closes_the_help_and_runs_that_function() {
    let mut model = model(100, 30);
    tell(&mut model, started("x"), 10);
    play(&mut model, 1000, "?<ctrl+t>");
    assert!(!model.layers.is_open::<Help>() && model.browse.is_some());
}

#[test]
fn help_and_keys_accept_search_words() {
    for command in ["/help undo", "/keys undo", "/keymap undo"] {
        let mut model = model(100, 30);
        play(&mut model, 1000, command);
        play(&mut model, 5000, "<enter>");
        let screen = draw(&mut model, 6000);
        assert!(screen.contains("filter: undo") && screen.contains("/policy undo") && !screen.contains("ctrl+g"), "{screen}");
        assert_eq!(model.composer.text(), "");
    }
}

#[test]
fn the_help_sheet_fits_24_rows_without_scrolling() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "?");
    let screen = draw(&mut model, 2000);
    for words in ["enter", "ctrl+j", "run a command yourself", "go to the approval", "always allow", "ctrl+l", "rewind", "ctrl+d"]
    {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
}
