//! Keys with modifiers, written in the usual notation: `ctrl+g`, `alt+up`, `f1`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Chord {
    pub code: KeyCode,
    pub modifiers: KeyModifiers,
}

const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("space", KeyCode::Char(' ')),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
];
/// Alternative names of keys and modifiers, each with its canonical name.
const ALIASES: &[(&str, &str)] =
    &[("return", "enter"), ("escape", "esc"), ("pageup", "pgup"), ("pagedown", "pgdn"), ("del", "delete"), ("control", "ctrl")];
/// Key combinations that most terminals report as another key, each with that key.
const SAME: &[(&str, &str)] = &[("ctrl+i", "tab"), ("ctrl+m", "enter"), ("ctrl+[", "esc")];

impl Chord {
    /// Parses a key with optional modifiers, such as `ctrl+g`.
    ///
    /// # Errors
    ///
    /// Returns a message that says what is wrong with `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_lowercase();
        if let Some((_, other)) = SAME.iter().find(|(name, _)| *name == lower) {
            return Err(format!("`{text}` is the same key as `{other}` in most terminals; choose another key"));
        }
        let mut modifiers = KeyModifiers::empty();
        let mut rest = text.trim();
        while let Some((name, key)) = rest.split_once('+').filter(|(name, key)| !name.is_empty() && !key.is_empty()) {
            modifiers |= match canonical(&name.to_lowercase()) {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => {
                    return Err(format!(
                        "invalid modifier `{name}` in `{text}`; use ctrl, alt or shift, as in `ctrl+e`, `alt+up`, `f2`"
                    ));
                }
            };
            rest = key;
        }
        let lower = rest.to_lowercase();
        let name = canonical(&lower);
        if let Some((_, code)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Ok(Self::new(*code, modifiers));
        }
        if let Some(number) =
            name.strip_prefix('f').and_then(|number| number.parse().ok()).filter(|number| (1..=24).contains(number))
        {
            return Ok(Self::new(KeyCode::F(number), modifiers));
        }
        let mut letters = rest.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(Self::new(KeyCode::Char(letter), modifiers)),
            _ => Err(format!("unknown key `{text}`; expected a single character, f1 to f24, or one of {}", names())),
        }
    }

    pub(crate) fn from_event(key: KeyEvent) -> Self {
        Self::new(key.code, key.modifiers)
    }

    pub(crate) fn event(self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Creates a key in normalized form: `shift+tab` becomes `BackTab`, shift is applied to the case of a letter, and a
    /// letter pressed with ctrl becomes lower case.
    fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let modifiers = modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let (code, modifiers) = match code {
            KeyCode::BackTab => (KeyCode::BackTab, modifiers - KeyModifiers::SHIFT),
            KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => (KeyCode::BackTab, modifiers - KeyModifiers::SHIFT),
            KeyCode::Char(letter) if modifiers.contains(KeyModifiers::CONTROL) => {
                (KeyCode::Char(letter.to_lowercase().next().unwrap_or(letter)), modifiers)
            }
            KeyCode::Char(letter) if modifiers.contains(KeyModifiers::SHIFT) => {
                (KeyCode::Char(letter.to_uppercase().next().unwrap_or(letter)), modifiers - KeyModifiers::SHIFT)
            }
            code => (code, modifiers),
        };
        Self { code, modifiers }
    }

    /// Returns whether the key has modifiers in addition to the ones that key handlers check, because ctrl+alt+t, for
    /// example, must not act as ctrl+t. Shift is ignored for symbols, because it may be required to type them.
    pub(crate) fn has_extra_modifiers(self) -> bool {
        let is_letter = matches!(self.code, KeyCode::Char(letter) if letter.is_alphabetic());
        let second = if is_letter { KeyModifiers::ALT | KeyModifiers::SHIFT } else { KeyModifiers::ALT };
        self.modifiers.contains(KeyModifiers::CONTROL) && self.modifiers.intersects(second)
    }

    /// Returns whether the key inserts text into a draft, unless it is bound to an action.
    pub(crate) fn is_text(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }
}

fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, known)| known)
}

fn names() -> String {
    NAMED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in [(KeyModifiers::CONTROL, "ctrl+"), (KeyModifiers::ALT, "alt+"), (KeyModifiers::SHIFT, "shift+")] {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match (self.code, NAMED.iter().find(|(_, code)| *code == self.code)) {
            (KeyCode::BackTab, _) => f.write_str("shift+tab"),
            (_, Some((name, _))) => f.write_str(name),
            (KeyCode::F(number), None) => write!(f, "f{number}"),
            (KeyCode::Char(letter), None) => write!(f, "{letter}"),
            (code, None) => write!(f, "{code}"),
        }
    }
}
