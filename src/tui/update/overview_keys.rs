//! Keys while an overview is open.

use super::slash;
use crate::tui::model::{Effect, Model};
use crate::tui::picker::PickerResult;
use crate::tui::text_viewer::TextViewer;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Handles a key of the overview. Returns whether one is open.
pub(crate) fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let Some(overview) = &mut model.overlays.overview else { return false };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    model.keys.last_key = Some(now);
    model.toast = None;
    match overview.picker.key(key) {
        PickerResult::Nothing | PickerResult::Refused(_) => {}
        PickerResult::Closed => model.overlays.overview = None,
        PickerResult::Chosen(_) => match (overview.command(), overview.picker.at()) {
            (Some(command), _) => {
                model.overlays.overview = None;
                show(model, command, now, effects);
            }
            (None, Some(row)) => {
                let title = row.cells.first().cloned().unwrap_or_default();
                model.overlays.reading = Some(TextViewer::titled(&title, &row.detail));
            }
            (None, None) => {}
        },
        PickerResult::Other => match key.code {
            KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
            // Pending dialogs come first.
            KeyCode::Tab if waits => model.dialogs.open_current(model.keys.last_text),
            _ => {}
        },
    }
    true
}

/// Runs a command and keeps the draft.
fn show(model: &mut Model, command: &str, now: u64, effects: &mut Vec<Effect>) {
    let draft = model.composer.text();
    model.composer.set(command);
    slash::run(model, command.trim_start_matches('/'), now, effects);
    model.composer.set(&draft);
}
