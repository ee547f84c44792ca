//! Text that was typed or pasted into a dialog, but belongs to the draft.

use super::draft::on_draft_changed;
use super::{amend, sessions};
use crate::tui::browse;
use crate::tui::layers::RewindList;
use crate::tui::model::UiModel;

/// Moves text to the draft, and makes the panel give up keyboard focus.
pub(crate) fn to_draft(model: &mut UiModel, text: &str, now: u64) {
    insert(model, text, "", now);
}

/// Moves typed text and the paste after it to the draft, and makes the panel release the keyboard.
pub(crate) fn paste_to_draft(model: &mut UiModel, typed: &str, pasted: &str, now: u64) {
    insert(model, typed, pasted, now);
}

fn insert(model: &mut UiModel, text: &str, pasted: &str, now: u64) {
    amend::take_back(model, now);
    model.dialogs.stay();
    if sessions::add_to_filter(model, &format!("{text}{pasted}")) {
        return;
    }
    // The typed text must be visible.
    model.layers.close::<RewindList>();
    browse::leave_browse(&mut model.browse, &mut model.transcript);
    model.screen.dirty = true;
    model.composer.insert(text);
    if !pasted.is_empty() {
        model.composer.insert_paste(pasted);
    }
    model.keys.last_key = Some(now);
    model.keys.last_text = Some(now);
    on_draft_changed(model, now);
}
