//! Confusable characters, and the symbols displayed in their place.

use std::fmt::Write;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

/// Writes a visible mark: a single-cell picture for an ASCII control character, or text such as `<U+202E>` for any
/// other character.
pub(super) fn write_mark(letter: char, out: &mut String) {
    let code = u32::from(letter);
    let picture = match code {
        0..0x20 => char::from_u32(0x2400 + code),
        0x7f => Some('␡'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        None => {
            let _ = write!(out, "<U+{code:04X}>");
        }
    }
}

/// Returns whether a character must never be displayed as is, because it is a control character, changes the text
/// direction or is invisible.
pub(super) fn is_deceptive(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_control();
    }
    matches!(u32::from(letter),
        0x80..=0x9f
        | 0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b | 0x200e | 0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2d7f
        | 0x3164 | 0xfe00..=0xfe0d | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xfffe | 0xffff | 0x1107f | 0x13430..=0x13440
        | 0x16fe4 | 0x1bca0..=0x1bca3 | 0x1d159 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// Returns whether a character looks like a space but is not treated as one by programs.
pub(super) fn is_false_blank(letter: char) -> bool {
    letter == '\u{2800}' || (!letter.is_ascii() && letter.is_whitespace())
}

/// Returns whether a character can be part of a joined emoji sequence.
pub(super) fn is_pictograph(letter: char) -> bool {
    matches!(u32::from(letter),
        0xa9 | 0xae | 0x203c | 0x2049 | 0x2122 | 0x2139 | 0x2190..=0x21ff | 0x2300..=0x27bf | 0x2900..=0x297f
        | 0x2b00..=0x2bff | 0x3030 | 0x303d | 0x3297 | 0x3299 | 0x1f000..=0x1faff)
}

/// Returns whether a character belongs to a script that uses joiners.
pub(super) fn is_joining_script(letter: char) -> bool {
    matches!(u32::from(letter), 0x600..=0xdff | 0x1000..=0x109f | 0x1780..=0x18af | 0xfb50..=0xfdff | 0xfe70..=0xfefc)
}

/// Returns whether a character combines with the preceding one.
pub(super) fn is_combining(letter: char) -> bool {
    !letter.is_ascii() && letter.width() == Some(0)
}

/// Returns whether a combining character is drawn onto the preceding character. If not, it occupies no cell and would
/// be invisible.
pub(super) fn is_drawn_onto(before: char, letter: char) -> bool {
    let mut bytes = [0; 8];
    let middle = before.encode_utf8(&mut bytes).len();
    let end = middle + letter.encode_utf8(&mut bytes[middle..]).len();
    std::str::from_utf8(&bytes[..end]).is_ok_and(|pair| pair.graphemes(true).count() == 1)
}

/// Returns whether a character forms a keycap when followed by a variation selector and an enclosing keycap.
pub(super) fn is_keycap(base: char) -> bool {
    matches!(base, '0'..='9' | '#' | '*')
}

/// Returns whether a variation selector is valid after the given character.
pub(super) fn accepts_selector(base: char, selector: char) -> bool {
    match u32::from(selector) {
        0xfe0e | 0xfe0f => is_pictograph(base),
        0xe0100..=0xe01ef => matches!(u32::from(base), 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff),
        _ => false,
    }
}
