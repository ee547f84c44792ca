//! Sending and saving of the draft.

use crate::protocol::Command;
use crate::tui::model::{UiEffect, UiModel};

/// Delay in milliseconds between the last change of the draft and its saving.
const SAVE_DRAFT_MS: u64 = 300;

/// Takes the draft for sending, and deletes its saved copy.
pub(crate) fn take_draft(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) -> String {
    let (text, kept) = model.composer.take();
    if let Err(error) = kept {
        model.show_toast(format!("cannot write the prompt history: {error}"), now);
    }
    model.draft.save_at = None;
    model.task.taken_back.clear();
    model.keys.sent = Some(now);
    model.dialogs.record_sent(now);
    effects.push(UiEffect::Send(Command::SaveDraft { text: String::new() }));
    text
}

pub(crate) fn on_draft_changed(model: &mut UiModel, now: u64) {
    if model.composer.is_empty() {
        model.task.taken_back.clear();
    }
    model.draft.save_at = Some(now + SAVE_DRAFT_MS);
}

pub(crate) fn save_draft(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    if model.draft.save_at.take().is_some() {
        effects.push(UiEffect::Send(Command::SaveDraft { text: model.composer.text() }));
    }
}
