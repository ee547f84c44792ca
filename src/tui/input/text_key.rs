//! Recognition of keys that type text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Returns the character that a key types, or `None` if it does not type text.
pub(crate) fn is_text(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Some(c),
        _ => None,
    }
}
