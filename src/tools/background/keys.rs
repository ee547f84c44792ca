//! Named keys and the bytes that a terminal sends for them.

/// Keys that a terminal turns into a signal, the end of input or the end of a line.
const PLAIN: &[(&str, &str)] =
    &[("enter", "\r"), ("ctrl-c", "\x03"), ("ctrl-d", "\x04"), ("ctrl-z", "\x1a"), ("ctrl-\\", "\x1c")];

const OTHERS: &[(&str, &str)] = &[
    ("tab", "\t"),
    ("shift-tab", "\x1b[Z"),
    ("escape", "\x1b"),
    ("backspace", "\x7f"),
    ("delete", "\x1b[3~"),
    ("space", " "),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("pageup", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
    ("f1", "\x1bOP"),
    ("f2", "\x1bOQ"),
    ("f3", "\x1bOR"),
    ("f4", "\x1bOS"),
    ("f5", "\x1b[15~"),
    ("f6", "\x1b[17~"),
    ("f7", "\x1b[18~"),
    ("f8", "\x1b[19~"),
    ("f9", "\x1b[20~"),
    ("f10", "\x1b[21~"),
    ("f11", "\x1b[23~"),
    ("f12", "\x1b[24~"),
];

/// Alternative key names, each with the standard name.
const ALSO: &[(&str, &str)] =
    &[("return", "enter"), ("esc", "escape"), ("del", "delete"), ("pgup", "pageup"), ("pgdn", "pagedown")];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub name: String,
    pub bytes: String,
    /// Whether the key either leaves typed text unchanged or discards it. Any other key can edit a line in a shell.
    pub is_plain: bool,
}

impl Key {
    /// Parses a key name such as `ctrl-c`, `C-c`, `^C` or `Up`. Returns `None` if there is no such key.
    pub(crate) fn parse(given: &str) -> Option<Self> {
        let lower = given.trim().to_ascii_lowercase().replace(['+', '_', ' '], "-");
        let lower = lower.trim_start_matches('<').trim_end_matches('>');
        let letter = ["ctrl-", "control-", "c-", "^"].iter().find_map(|start| lower.strip_prefix(start));
        let name = match letter {
            Some(letter) => format!("ctrl-{letter}"),
            None => ALSO.iter().find(|(other, _)| *other == lower).map_or(lower, |(_, name)| *name).replace("page-", "page"),
        };
        let found = |table: &[(&str, &str)]| table.iter().find(|(known, _)| *known == name).map(|(_, bytes)| (*bytes).to_owned());
        if let Some(bytes) = found(PLAIN) {
            return Some(Self { name, bytes, is_plain: true });
        }
        let control = || match name.strip_prefix("ctrl-")?.as_bytes() {
            [letter @ b'a'..=b'z'] => Some(char::from(letter - b'a' + 1).to_string()),
            _ => None,
        };
        let bytes = found(OTHERS).or_else(control)?;
        Some(Self { name, bytes, is_plain: false })
    }

    /// Returns the key that corresponds to a single control character, which some models send instead of a key name.
    pub(crate) fn from_control_char(text: &str) -> Option<Self> {
        let all = PLAIN.iter().chain(OTHERS).filter(|(name, _)| *name != "space");
        let known = all.clone().find(|(_, bytes)| *bytes == text).map(|(name, _)| (*name).to_owned());
        let control = || match text.as_bytes() {
            [byte @ 1..=26] if !matches!(byte, b'\n') => Some(format!("ctrl-{}", char::from(byte - 1 + b'a'))),
            _ => None,
        };
        Self::parse(&known.or_else(control)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_several_names_for_one_byte_sequence() {
        for name in ["ctrl-c", "Ctrl+C", "C-c", "^C", "<ctrl-c>", "control-c"] {
            assert_eq!(Key::parse(name).unwrap().bytes, "\x03", "{name}");
        }
        for (name, bytes) in [("Up", "\x1b[A"), ("esc", "\x1b"), ("Return", "\r"), ("page up", "\x1b[5~"), ("ctrl-l", "\x0c")] {
            assert_eq!(Key::parse(name).unwrap().bytes, bytes, "{name}");
        }
        assert_eq!(Key::parse("hyper-q"), None);
        assert!(Key::parse("ctrl-d").unwrap().is_plain && !Key::parse("tab").unwrap().is_plain);
    }

    #[test]
    fn a_single_control_character_is_recognized_as_its_key() {
        for (text, name) in [("\x03", "ctrl-c"), ("\x1b", "escape"), ("\x1b[A", "up"), ("\x0c", "ctrl-l"), ("\r", "enter")] {
            assert_eq!(Key::from_control_char(text).unwrap().name, name);
        }
        assert_eq!(Key::from_control_char("a"), None);
        assert_eq!(Key::from_control_char("\n"), None);
        assert_eq!(Key::from_control_char(" "), None);
    }
}
