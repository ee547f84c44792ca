//! Command palette, which finds commands by a few letters of their name.

use super::draft::on_draft_changed;
use super::menu;
use super::slash::run as run_command;
use crate::tui::keymap::Focus;
use crate::tui::layers::CommandPalette;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::slash;

pub(crate) fn open(model: &mut UiModel) {
    let used = menu::recent_commands(model);
    let keys = |keys| model.keymap.translate_keys(Focus::Composer, keys).into_owned();
    let keys: Vec<(&str, String)> = slash::KEYS.iter().map(|(name, named)| (*name, keys(*named))).collect();
    let palette = CommandPalette::new(slash::COMMANDS, &model.menu.own, &keys, &used);
    model.layers.open(palette);
}

/// Runs the chosen command, preserving the draft. A command that needs an argument is inserted into the draft instead,
/// provided the draft is empty.
pub(super) fn run(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
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
    // A command that could not run would remain in the draft, although the user has not typed it.
    if model.composer.is_empty() || model.composer.text() == name {
        model.composer.set(&draft);
    }
    if !draft.is_empty() {
        on_draft_changed(model, now);
    }
}
