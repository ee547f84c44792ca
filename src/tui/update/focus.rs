//! Keyboard focus, and translation of keys to the built-in bindings.

use crate::tui::keymap::Focus;
use crate::tui::model::UiModel;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Part of the screen that receives input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputTarget {
    /// The topmost layer, which is above dialogs, whether or not one is open.
    LayerAboveDialogs,
    /// The list of pending approvals.
    Inbox,
    /// The open dialog.
    Dialog,
    /// The topmost layer, which is below dialogs, while no dialog is open.
    Layer,
    /// The transcript and the draft.
    Conversation,
}

/// Returns the part of the screen that receives input.
pub(crate) fn target(model: &UiModel) -> InputTarget {
    if model.layers.covers_questions() {
        InputTarget::LayerAboveDialogs
    } else if model.dialogs.inbox().is_some() {
        InputTarget::Inbox
    } else if model.dialogs.is_open() {
        InputTarget::Dialog
    } else if model.layers.top().is_some() {
        InputTarget::Layer
    } else {
        InputTarget::Conversation
    }
}

/// Returns the keyboard focus, which selects the key bindings.
pub(crate) fn focus(model: &UiModel) -> Focus {
    match target(model) {
        InputTarget::LayerAboveDialogs | InputTarget::Layer => model.layers.top().map_or(Focus::Composer, |layer| layer.focus()),
        InputTarget::Inbox => Focus::Inbox,
        InputTarget::Dialog => {
            let has_field = model.dialogs.open().is_some_and(crate::tui::approval::Dialog::has_field);
            if has_field { Focus::Field } else { Focus::Question }
        }
        InputTarget::Conversation => match &model.browse {
            Some(browse) if browse.typing.is_some() => Focus::Field,
            Some(_) => Focus::Browse,
            None if model.draft.search.is_some() => Focus::Search,
            None if model.menu.is_open() => Focus::Menu,
            None => Focus::Composer,
        },
    }
}

/// Translates a key to the built-in key bound to the same action.
pub(crate) fn translate_key(model: &UiModel, pressed: KeyEvent) -> KeyEvent {
    // Vim mode has its own key bindings.
    let is_redo = pressed.code == KeyCode::Char('r') && pressed.modifiers == KeyModifiers::CONTROL;
    if is_redo && model.composer.vim_mode().is_some() && focus(model) == Focus::Composer {
        return pressed;
    }
    model.keymap.key(focus(model), pressed)
}
