//! The help: opening, searching and closing.

use super::dialog;
use super::focus::focus;
use crate::text;
use crate::tui::help::Help;
use crate::tui::input::is_text;
use crate::tui::interface::KeyFile;
use crate::tui::keymap::{Focus, Keymap};
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};
use crate::tui::typeahead_guard::GuardInput;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Opens the help. A letter waiting in a dialog does not take effect.
pub(crate) fn open(model: &mut Model, words: &str, now: u64, effects: &mut Vec<Effect>) {
    // A field keeps its text, and no key decides before it is visible again.
    if focus(model) != Focus::Field {
        dialog::stimulus(model, GuardInput::Other, now, effects);
    }
    // The word that was just sent no longer has a menu.
    if model.composer.is_empty() {
        model.menu.set_typing(None);
        model.menu.set(Vec::new());
    }
    model.overlays.help = Some(Help::new(focus(model), words));
    model.screen.dirty = true;
}

/// Closes the help, and rearms the guard of a dialog below.
fn close(model: &mut Model) {
    model.overlays.help = None;
    model.dialogs.arm_again(model.keys.last_text);
}

/// Handles a key of the help. Returns whether the key was handled; other keys close the help and act on the view below.
pub(crate) fn key(model: &mut Model, pressed: KeyEvent) -> bool {
    let key = model.keymap.key(Focus::List, pressed);
    let Some(help) = &mut model.overlays.help else { return false };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let page = help.page.max(1).cast_signed();
    match key.code {
        KeyCode::Esc | KeyCode::F(1) => close(model),
        KeyCode::Char('c') if ctrl => close(model),
        // The key opened the help on an empty draft.
        KeyCode::Char('?') if help.words.is_empty() => close(model),
        KeyCode::Up => help.scroll_by(-1),
        KeyCode::Down => help.scroll_by(1),
        KeyCode::Char('p') if ctrl => help.scroll_by(-1),
        KeyCode::Char('n') if ctrl => help.scroll_by(1),
        KeyCode::PageUp => help.scroll_by(-page),
        KeyCode::PageDown => help.scroll_by(page),
        KeyCode::Home => help.top = 0,
        KeyCode::End => help.top = usize::MAX,
        KeyCode::Char('u') if ctrl => help.search(String::clear),
        KeyCode::Backspace => help.search(|words| {
            words.pop();
        }),
        KeyCode::Tab | KeyCode::BackTab => {
            close(model);
            return false;
        }
        _ => match is_text(&key) {
            Some(letter) => help.search(|words| words.push(letter)),
            None if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                close(model);
                return false;
            }
            None => {}
        },
    }
    true
}

/// Searches for pasted text.
pub(crate) fn paste(model: &mut Model, pasted: &str) -> bool {
    let Some(help) = &mut model.overlays.help else { return false };
    let words = pasted.split_whitespace().collect::<Vec<_>>().join(" ");
    help.search(|filter| filter.push_str(&words));
    true
}

/// Describes the location of the user's key file.
pub(crate) fn key_file_location(file: &KeyFile) -> String {
    let path = text::reveal(&file.path);
    match (&file.text, path.is_empty()) {
        (_, true) => "the custom key file".to_owned(),
        (None, false) => format!("{path}: does not exist; all keys are built in"),
        (Some(_), false) => format!("{path}: your custom keys"),
    }
}

/// Applies the reloaded key file. An unreadable file leaves the keys unchanged.
pub(crate) fn keys_read(model: &mut Model, file: KeyFile, now: u64) {
    if file.text == model.options.keys.text {
        return;
    }
    model.options.keys = file;
    let path = text::reveal(&model.options.keys.path).into_owned();
    let text = match &model.options.keys.text {
        Some(Err(why)) => {
            let words = format!("{path}: cannot be read: {}; keys unchanged", text::reveal(why));
            return model.transcript.push(Kind::Note { text: words, tone: Tone::Warning });
        }
        Some(Ok(text)) => Some(text.as_str()),
        None => None,
    };
    (model.keymap, model.key_problems) = Keymap::new(text);
    // Rows contain key names.
    model.transcript.forget_layout();
    let words = if text.is_some() { "custom keys reloaded" } else { "custom key file removed; the built-in keys apply" };
    model.show_toast(words, now);
    check_keys(model);
}

/// Reports invalid entries of the key file once the transcript can show them.
pub(crate) fn check_keys(model: &mut Model) {
    if model.key_problems.is_empty() {
        return;
    }
    let place = text::reveal(&model.options.keys.path).into_owned();
    let problems = model.key_problems.iter().map(|problem| text::reveal(problem).into_owned());
    let lines: Vec<String> =
        [format!("{place}: some entries are invalid; the others apply")].into_iter().chain(problems).collect();
    model.transcript.push(Kind::Note { text: lines.join("\n  "), tone: Tone::Warning });
}
