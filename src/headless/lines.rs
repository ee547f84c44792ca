//! JSON output with one value per line, free of characters that a terminal or another reader would interpret.

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// Writes a value followed by a line break. Control characters and invisible characters are escaped, which leaves the
/// meaning of strings unchanged.
pub(crate) fn write(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, EscapingWriter)).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Escapes control characters in existing JSON. Outside of strings, JSON contains only ASCII, so only strings are
/// affected.
pub(crate) fn escape_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_control(letter) {
            let _ = std::fmt::Write::write_fmt(&mut text, format_args!("\\u{:04x}", u32::from(letter)));
        } else {
            text.push(letter);
        }
    }
    text
}

struct EscapingWriter;

impl Formatter for EscapingWriter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, letter)) = rest.char_indices().find(|(_, letter)| is_control(*letter)) {
            CompactFormatter.write_string_fragment(writer, &rest[..at])?;
            write!(writer, "\\u{:04x}", u32::from(letter))?;
            rest = &rest[at + letter.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

/// Returns whether a character is DEL, a C1 control character, a line separator or a bidirectional control.
fn is_control(letter: char) -> bool {
    matches!(letter, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lines_preserve_text_and_contain_no_control_characters() {
        let text = "a\u{1b}]0;x\u{7}\u{9b}31m é \u{202e}b\u{2028}c\u{7f}\n\"\\";
        let mut line = Vec::new();
        write(&mut line, &serde_json::json!({ text: text })).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(line.ends_with('\n') && line.contains("é") && line.contains("\\u009b31m"), "{line}");
        assert!(!line.trim_end().contains(|letter: char| letter.is_control() || is_control(letter)), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read[text], text);
    }
}
