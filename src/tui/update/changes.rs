//! The `/diff` view: request, display and keys.

use super::draft::take_draft;
use crate::protocol::{ChangedFiles, Query, SessionQuery};
use crate::tui::changes::Changes;
use crate::tui::interface::ModelAccess;
use crate::tui::model::{Effect, Model};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) fn request_changes(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    take_draft(model, now, effects);
    if model.info.model_access != Some(ModelAccess::Ready) {
        return model.show_toast("no changes: no session has started yet", now);
    }
    request(model, now, effects);
}

fn request(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    model.overlays.changes_requested = true;
    model.show_toast("loading changes", now);
    effects.push(Effect::Ask(Query::Session(SessionQuery::ListChanges { task_id: None })));
}

/// Shows the changed files if the user requested them.
pub(crate) fn show(model: &mut Model, changed: ChangedFiles) {
    if !std::mem::take(&mut model.overlays.changes_requested) {
        return;
    }
    model.toast = None;
    model.overlays.help = None;
    model.overlays.changes = Some(match model.overlays.changes.take() {
        Some(open) => open.with_files(changed),
        None => Changes::new(changed),
    });
}

/// Handles a key of the view. Returns whether it is open.
pub(crate) fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let Some(changes) = &mut model.overlays.changes else { return false };
    model.keys.last_key = Some(now);
    let page = changes.page().cast_signed();
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if ctrl => model.overlays.changes = None,
        KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
        KeyCode::Char('u') if ctrl => changes.scroll_by(-page / 2),
        KeyCode::Char('d') if ctrl => changes.scroll_by(page / 2),
        KeyCode::Char(_) if ctrl => {}
        KeyCode::Esc | KeyCode::Char('q') => model.overlays.changes = None,
        KeyCode::Up | KeyCode::Char('k') => changes.scroll_by(-1),
        KeyCode::Down | KeyCode::Char('j') => changes.scroll_by(1),
        KeyCode::PageUp => changes.scroll_by(-page),
        KeyCode::PageDown | KeyCode::Char(' ') => changes.scroll_by(page),
        KeyCode::Home | KeyCode::Char('g') => changes.scroll_by(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => changes.scroll_by(isize::MAX),
        // Pending dialogs come first.
        KeyCode::Tab if waits => {
            model.dialogs.open_current(model.keys.last_text);
        }
        KeyCode::Char('n') | KeyCode::Tab | KeyCode::Right => changes.turn(true),
        KeyCode::Char('p') | KeyCode::BackTab | KeyCode::Left => changes.turn(false),
        KeyCode::Char('r') => request(model, now, effects),
        _ => {}
    }
    true
}
