//! Who has the keyboard, and what a key is there.

use crate::tui::keymap::Focus;
use crate::tui::model::Model;
use crate::tui::transcript::Kind;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Whose keys count now.
pub fn focus(model: &Model) -> Focus {
    if model.help.is_some() {
        return Focus::List;
    }
    if model.dialogs.inbox().is_some() {
        return Focus::Inbox;
    }
    if model.dialogs.is_open() {
        let has_field = model.dialogs.open().is_some_and(crate::tui::approval::Dialog::has_field);
        return if has_field { Focus::Field } else { Focus::Question };
    }
    // What is read of a session stands in front of the list of them.
    if model.reading.is_some() {
        return Focus::Reader;
    }
    if model.has_list() {
        return Focus::List;
    }
    if model.changes.is_some() {
        return Focus::Reader;
    }
    match &model.browse {
        Some(browse) if browse.typing.is_some() => Focus::Field,
        Some(_) => Focus::Browse,
        None if model.search.is_some() => Focus::Search,
        None if model.menu.is_open() => Focus::Menu,
        None => Focus::Composer,
    }
}

/// What the person called for: its end is in sight, and a question that waits does not cover it until they go there.
pub fn show_called_for(model: &mut Model, what: Kind) {
    model.transcript.push(what);
    model.transcript.follow();
    if model.dialogs.waits_for_idle() {
        model.dialogs.put_off();
    }
}

/// The key as the screen knows it.
pub fn translated(model: &Model, pressed: KeyEvent) -> KeyEvent {
    // Vim has keys of its own.
    let is_redo = pressed.code == KeyCode::Char('r') && pressed.modifiers == KeyModifiers::CONTROL;
    if is_redo && model.composer.vim_mode().is_some() && focus(model) == Focus::Composer {
        return pressed;
    }
    model.keymap.key(focus(model), pressed)
}
