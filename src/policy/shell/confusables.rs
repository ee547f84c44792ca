//! Detects characters that are invisible or easily mistaken for other characters.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

const CONTROL: &str = "the line contains control characters, so the command would not run as shown";
const INVISIBLE: &str = "the line contains invisible or misleading characters";

pub(crate) fn oddities(line: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if line.is_ascii() && !line.bytes().any(|byte| (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f) {
        return found;
    }
    if line.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        found.push(CONTROL);
    }
    if line.chars().any(is_invisible) || has_stray_mark(line) {
        found.push(INVISIBLE);
    }
    found
}

/// Returns whether a combining character has no base character. Examples are a mark at the start of a line or word, and
/// an isolated part of a Hangul syllable.
fn has_stray_mark(line: &str) -> bool {
    line.graphemes(true).any(|grapheme| {
        let stands_alone = |first: char| !first.is_control() && first.width() == Some(0);
        grapheme.chars().next().is_some_and(stands_alone) || (grapheme.starts_with(' ') && grapheme.len() > 1)
    })
}

/// Returns whether a character is invisible or misleading, such as a non-ASCII space, joiner, direction mark, variation
/// selector, filler, tag, or full-width letter.
fn is_invisible(c: char) -> bool {
    (!c.is_ascii() && c.is_whitespace())
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
            | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFF01..=0xFF5E | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0xFFFD | 0x2D7F | 0x1107F | 0x13430..=0x13440 | 0x16FE4 | 0x1BCA0..=0x1BCA3 | 0x1D159 | 0x1D173..=0x1D17A | 0xE000..=0xF8FF | 0xE0000..=0xE0FFF | 0xF0000..=0x0010_FFFF)
}

/// Returns whether a file name could be mistaken for a different one. Characters required by writing systems or emoji
/// are allowed.
pub(crate) fn is_deceptive_name(name: &str) -> bool {
    if name.is_ascii() {
        return name.bytes().any(|byte| byte.is_ascii_control());
    }
    let hidden = |c: char| {
        matches!(u32::from(c),
            0x00AD | 0x061C | 0x115F | 0x1160 | 0x200B | 0x200E | 0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164
            | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0x2D7F | 0x1107F | 0x13430..=0x13440 | 0x16FE4 | 0x1D159 | 0xE0000..=0xE0FFF)
    };
    name.chars().any(|c| c.is_control() || hidden(c)) || has_stray_mark(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_reported_unless_the_script_needs_them() {
        for line in [
            "touch fileA1\u{11a8}2",
            "\u{338}\u{301}ls",
            "echo a\n\u{301}b",
            "echo \u{301}b",
            "ls \u{1107f}",
            "cat a\u{2d7f}b",
            "cat a\u{1d159}",
        ] {
            assert_eq!(oddities(line), [INVISIBLE], "{line:?}");
        }
        for line in ["cat re\u{301}sume\u{301}", "cat 한글 \u{1112}\u{1161}\u{11ab}", "cat ไม้ नमस्ते", "cat שָׁלוֹם"]
        {
            assert_eq!(oddities(line), [""; 0], "{line:?}");
        }
        assert!(
            is_deceptive_name("a\u{11a8}b")
                && is_deceptive_name("\u{301}a")
                && !is_deceptive_name("re\u{301}sume\u{301}")
                && !is_deceptive_name("한글")
        );
    }
}
