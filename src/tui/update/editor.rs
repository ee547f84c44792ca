//! Editing the draft in the user's editor.

use super::draft::on_draft_changed;
use crate::text;
use crate::tui::model::{Editable, EditorText, UiEffect, UiModel};

/// Opens the draft in the user's editor, which takes over the screen until it exits.
pub(crate) fn open(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    let edit = EditorText { what: Editable::Draft, name: "draft.md".to_owned(), text: model.composer.text() };
    effects.push(UiEffect::EditFile(edit));
}

/// Replaces the draft with the text from the user's editor, or shows the editor's error.
pub(crate) fn on_editor_closed(model: &mut UiModel, edited: Result<String, String>, now: u64) {
    model.screen.dirty = true;
    match edited {
        Ok(words) => {
            let words = text::clean(words.trim_end()).into_owned();
            if words != model.composer.text() {
                model.composer.set(&words);
                on_draft_changed(model, now);
            }
        }
        Err(why) => model.show_toast(text::clean(&why).into_owned(), now),
    }
}
