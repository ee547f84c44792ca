//! Keyboard focus and key translation.

use crate::tui::keymap::Focus;
use crate::tui::model::UiModel;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Returns the part of the screen that has keyboard focus: a layer above all dialogs, the open dialog, the topmost
/// layer, or the conversation.
pub(crate) fn focus(model: &UiModel) -> Focus {
    if let Some(layer) = model.layers.top().filter(|layer| layer.covers_questions()) {
        return layer.focus();
    }
    if model.dialogs.inbox().is_some() {
        return Focus::Inbox;
    }
    if model.dialogs.is_open() {
        let has_field = model.dialogs.open().is_some_and(crate::tui::approval::Dialog::has_field);
        return if has_field { Focus::Field } else { Focus::Question };
    }
    if let Some(layer) = model.layers.top() {
        return layer.focus();
    }
    match &model.browse {
        Some(browse) if browse.typing.is_some() => Focus::Field,
        Some(_) => Focus::Browse,
        None if model.draft.search.is_some() => Focus::Search,
        None if model.menu.is_open() => Focus::Menu,
        None => Focus::Composer,
    }
}

/// Translates a key to the built-in one.
pub(crate) fn translate_key(model: &UiModel, pressed: KeyEvent) -> KeyEvent {
    // Vim mode has its own keys.
    let is_redo = pressed.code == KeyCode::Char('r') && pressed.modifiers == KeyModifiers::CONTROL;
    if is_redo && model.composer.vim_mode().is_some() && focus(model) == Focus::Composer {
        return pressed;
    }
    model.keymap.key(focus(model), pressed)
}
