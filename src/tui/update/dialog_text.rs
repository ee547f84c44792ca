//! Text that was typed or pasted into a dialog but is meant for the draft.

use super::draft::on_draft_changed;
use super::{amend, sessions};
use crate::tui::browse;
use crate::tui::layers::RewindList;
use crate::tui::model::UiModel;

/// Moves typed text to the draft, or to the filter of the open session list. The dialog loses keyboard focus.
pub(crate) fn to_draft(model: &mut UiModel, text: &str, now: u64) {
    insert(model, text, "", now);
}

/// Moves typed text, followed by pasted text, to the draft or to the filter of the open session list.
pub(crate) fn paste_to_draft(model: &mut UiModel, typed: &str, pasted: &str, now: u64) {
    insert(model, typed, pasted, now);
}

fn insert(model: &mut UiModel, text: &str, pasted: &str, now: u64) {
    amend::take_back(model, now);
    model.dialogs.stay();
    if sessions::add_to_filter(model, &format!("{text}{pasted}")) {
        return;
    }
    // The draft must be visible, so that the user sees the text.
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
