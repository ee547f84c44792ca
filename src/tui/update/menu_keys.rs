//! Keys in the completion menu.

use super::menu::{complete, insert_item, is_searching};
use super::slash;
use crate::tui::menu::{EnterAction, Typing};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::slash::is_command;
use crossterm::event::{KeyCode, KeyEvent};

/// Handles a key in the menu. Returns whether the key was handled.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if !key.modifiers.is_empty() {
        return false;
    }
    if key.code == KeyCode::Tab && is_searching(model) && !model.menu.is_open() {
        model.menu.complete_on_results();
        return true;
    }
    if !model.menu.is_open() {
        return false;
    }
    match key.code {
        KeyCode::Up => model.menu.step(false),
        KeyCode::Down => model.menu.step(true),
        KeyCode::Esc => model.menu.close(),
        KeyCode::Tab => complete(model, now),
        KeyCode::Enter => return on_enter(model, now, effects),
        _ => return false,
    }
    true
}

/// Handles Enter by choosing the highlighted row. Returns `false` if the draft is already a complete command, or if the
/// row has not been visible long enough.
fn on_enter(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let draft = model.composer.text();
    if matches!(model.menu.typing(), Some(Typing::Command(_))) && is_command(&draft, &model.menu.own) && !model.menu.is_moved() {
        return false;
    }
    let Some(item) = model.menu.highlighted_if_seen(now).cloned() else { return false };
    if item.then == EnterAction::Run {
        // The history must contain the complete command.
        model.composer.set(&item.text);
        let typed = item.text.trim_start_matches('/').to_owned();
        slash::run(model, &typed, now, effects);
    } else {
        insert_item(model, &item, now);
    }
    true
}
