//! Help screen, and changes to the user's key file.

use super::dialog;
use super::focus::focus;
use crate::text;
use crate::tui::interface::KeymapFile;
use crate::tui::keymap::{Focus, Keymap};
use crate::tui::layers::Help;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};
use crate::tui::typeahead_guard::GuardInput;

/// Opens the help. If a choice in a dialog below was waiting for confirmation, it is cancelled.
pub(crate) fn open(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    // A field keeps its text. Keys for choices decide only once the dialog is visible again.
    if focus(model) != Focus::Field {
        dialog::stimulus(model, GuardInput::Other, now, effects);
    }
    // The menu for the submitted command is no longer needed.
    if model.composer.is_empty() {
        model.menu.set_typing(None);
        model.menu.set(Vec::new());
    }
    let help = Help::new(focus(model), words);
    model.layers.push(help);
    model.screen.dirty = true;
}

/// Applies the key file after it was reloaded. If it cannot be read, the key bindings stay as they are.
pub(crate) fn keys_read(model: &mut UiModel, file: KeymapFile, now: u64) {
    if file.text == model.options.keys.text {
        return;
    }
    model.options.keys = file;
    let path = text::reveal(&model.options.keys.path).into_owned();
    let text = match &model.options.keys.text {
        Some(Err(why)) => {
            let words = format!("{path}: cannot be read: {}; keys unchanged", text::reveal(why));
            return model.transcript.push(TranscriptEntryKind::Note { text: words, tone: NoteTone::Warning });
        }
        Some(Ok(text)) => Some(text.as_str()),
        None => None,
    };
    (model.keymap, model.keys.problems) = Keymap::new(text);
    // Rows contain key names.
    model.transcript.forget_layout();
    let words = if text.is_some() { "custom keys reloaded" } else { "custom key file removed; the built-in keys apply" };
    model.show_toast(words, now);
    check_keys(model);
}

/// Reports invalid entries in the key file once the transcript can show them.
pub(crate) fn check_keys(model: &mut UiModel) {
    if model.keys.problems.is_empty() {
        return;
    }
    let place = text::reveal(&model.options.keys.path).into_owned();
    let problems = model.keys.problems.iter().map(|problem| text::reveal(problem).into_owned());
    let lines: Vec<String> =
        [format!("{place}: some entries are invalid; the others apply")].into_iter().chain(problems).collect();
    model.transcript.push(TranscriptEntryKind::Note { text: lines.join("\n  "), tone: NoteTone::Warning });
}
