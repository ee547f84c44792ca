//! Saving the draft, and taking it to be sent.

use crate::protocol::Command;
use crate::tui::model::{UiEffect, UiModel};

/// Delay, in milliseconds, between the last change to the draft and saving it.
const SAVE_DRAFT_MS: u64 = 300;

/// Empties the draft and returns its text to be sent. Adds the text to the prompt history and deletes the saved draft.
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
