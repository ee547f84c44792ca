//! Command palette: every command by a few letters of its name.

use super::draft::on_draft_changed;
use super::menu;
use super::slash::run as run_command;
use crate::tui::keymap::Focus;
use crate::tui::model::{Effect, Model};
use crate::tui::palette;
use crate::tui::picker::PickerResult;
use crate::tui::slash;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) fn open(model: &mut Model) {
    model.overlays.make_room();
    let used = menu::recent_commands(model);
    let keys = |keys| model.keymap.translate_keys(Focus::Composer, keys).into_owned();
    let keys: Vec<(&str, String)> = slash::KEYS.iter().map(|(name, named)| (*name, keys(*named))).collect();
    model.overlays.palette = Some(palette::picker(slash::COMMANDS, &model.menu.own, &keys, &used));
}

/// Handles a key of the palette. Returns whether it is open.
pub(crate) fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let Some(picker) = &mut model.overlays.palette else { return false };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    model.keys.last_key = Some(now);
    model.toast = None;
    match picker.key(key) {
        PickerResult::Nothing | PickerResult::Refused(_) => {}
        PickerResult::Closed => model.overlays.palette = None,
        PickerResult::Chosen(name) => {
            model.overlays.palette = None;
            run(model, &name, now, effects);
        }
        PickerResult::Other => match key.code {
            KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
            // Pending dialogs come first.
            KeyCode::Tab if waits => model.dialogs.open_current(model.keys.last_text),
            _ => {}
        },
    }
    true
}

/// Runs a command and preserves the draft; a command that needs an argument goes into the draft if the draft is empty.
fn run(model: &mut Model, name: &str, now: u64, effects: &mut Vec<Effect>) {
    let wants = slash::needs_argument(name, &model.menu.own);
    let draft = model.composer.text();
    if wants && !draft.trim().is_empty() {
        return model.show_toast(format!("{name} needs an argument: send or clear the draft first"), now);
    }
    if wants {
        model.composer.set(&format!("{name} "));
        return on_draft_changed(model, now);
    }
    model.composer.set(name);
    run_command(model, name.trim_start_matches('/'), now, effects);
    // A command that could not be run would stay in the draft, although nobody typed it.
    if model.composer.is_empty() || model.composer.text() == name {
        model.composer.set(&draft);
    }
    if !draft.is_empty() {
        on_draft_changed(model, now);
    }
}
