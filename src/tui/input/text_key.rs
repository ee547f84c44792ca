//! Keys that type text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Returns the character of a text key.
pub(crate) fn is_text(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Some(c),
        _ => None,
    }
}
