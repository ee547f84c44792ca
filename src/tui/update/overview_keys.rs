//! Keys while an overview is open.

use super::{findings, overview, queue, slash};
use crate::tui::model::{Effect, Model};
use crate::tui::overview::RowAction;
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
        PickerResult::Chosen(_) => match (overview.action(), overview.picker.highlighted()) {
            (Some(RowAction::Run(command)), _) => {
                model.overlays.overview = None;
                run(model, &command, now, effects);
            }
            (Some(RowAction::EditQueued(id)), _) => {
                model.overlays.overview = None;
                queue::take_back(model, Some(id), now, effects);
            }
            (Some(RowAction::OpenFinding(at)), _) => findings::open(model, at),
            (Some(RowAction::ShowDetails), Some(row)) => {
                let title = row.cells.first().cloned().unwrap_or_default();
                model.overlays.reading = Some(TextViewer::with_title(&title, &row.detail));
            }
            (Some(RowAction::ShowDetails) | None, _) => {}
        },
        PickerResult::Other => match key.code {
            KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
            KeyCode::Char('f') if ctrl => {
                if let Some(at) = overview.finding() {
                    findings::draft_fix(model, at, now);
                }
            }
            KeyCode::Char('x') if ctrl => {
                if let Some(command) = overview.removal() {
                    run(model, &command, now, effects);
                    overview::refresh(model);
                }
            }
            // Pending dialogs come first.
            KeyCode::Tab if waits => model.dialogs.open_current(model.keys.last_text),
            _ => {}
        },
    }
    true
}

/// Runs a command and preserves the draft.
fn run(model: &mut Model, command: &str, now: u64, effects: &mut Vec<Effect>) {
    let draft = model.composer.text();
    model.composer.set(command);
    slash::run(model, command.trim_start_matches('/'), now, effects);
    model.composer.set(&draft);
}
