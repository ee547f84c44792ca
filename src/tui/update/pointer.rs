//! Switching the mouse between aye and the terminal.

use crate::tui::model::{UiEffect, UiModel};
use crate::tui::pointer::Pointer;

/// Handles ctrl+s, which releases the mouse so that the terminal can select text, or captures the mouse again.
pub(crate) fn toggle_mouse_capture(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let is_captured = !model.screen.pointer.is_captured;
    model.screen.pointer = Pointer { focused: model.screen.pointer.focused, ..Pointer::new(is_captured) };
    effects.push(UiEffect::Mouse(is_captured));
    let words = if is_captured { "aye handles the mouse again" } else { "the terminal handles the mouse · ctrl+s to undo" };
    model.show_toast(words.replace('·', model.screen.glyphs.dot), now);
}
