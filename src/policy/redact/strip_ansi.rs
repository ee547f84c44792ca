//! Removes ANSI sequences, so a colour change inside a token does not prevent its detection. Positions can be mapped
//! back to the original text.

use std::borrow::Cow;
use std::ops::Range;

/// Text without ANSI sequences and invisible characters, with a mapping to positions in the original text.
pub(super) struct PlainText<'a> {
    pub text: Cow<'a, str>,
    /// Positions in the plain text at which bytes were removed, each with the total number of bytes removed up to that
    /// point.
    cuts: Vec<(usize, usize)>,
}

const INVISIBLE: &[char] = &['\u{200B}', '\u{200C}', '\u{200D}', '\u{2060}', '\u{FEFF}', '\u{AD}', '\u{180E}', '\u{34F}'];

impl<'a> PlainText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        // Most text contains nothing to remove. This check covers many bytes at a time.
        if bytes.is_ascii() && memchr::memchr2(0x1B, 0x08, bytes).is_none() {
            return Self { text: Cow::Borrowed(text), cuts: Vec::new() };
        }
        // First bytes of removable text: ESC, and the lead bytes of invisible characters.
        if !bytes.iter().any(|byte| matches!(byte, 0x1B | 0x08 | 0xC2 | 0xE2 | 0xEF | 0xE1 | 0xCD)) {
            return Self { text: Cow::Borrowed(text), cuts: Vec::new() };
        }
        let mut plain = String::with_capacity(text.len());
        let mut cuts = Vec::new();
        let mut cut = 0;
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            let length = invisible_length(text, at, letter);
            if length > 0 {
                cut += length;
                cuts.push((plain.len(), cut));
                at += length;
            } else {
                plain.push(letter);
                at += letter.len_utf8();
            }
        }
        if cuts.is_empty() { Self { text: Cow::Borrowed(text), cuts } } else { Self { text: Cow::Owned(plain), cuts } }
    }

    /// Maps a range of the plain text to the original text, including any bytes that were removed inside it.
    pub(super) fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let before = |at: usize| {
            let index = self.cuts.partition_point(|(place, _)| *place <= at);
            index.checked_sub(1).map_or(0, |index| self.cuts[index].1)
        };
        let last = range.end.saturating_sub(1).max(range.start);
        range.start + before(range.start)..range.end + before(last)
    }
}

/// Returns the number of bytes at `at` that do not belong to the visible text.
fn invisible_length(text: &str, at: usize, letter: char) -> usize {
    if INVISIBLE.contains(&letter) {
        return letter.len_utf8();
    }
    if letter != '\u{1B}' && letter != '\u{9B}' {
        return 0;
    }
    let bytes = text.as_bytes();
    let start = at + letter.len_utf8();
    let kind = if letter == '\u{9B}' { Some(b'[') } else { bytes.get(start).copied() };
    let body = if letter == '\u{9B}' { start } else { start + 1 };
    match kind {
        Some(b'[') => {
            let length = bytes[body.min(bytes.len())..].iter().take(64).position(|byte| (0x40..=0x7E).contains(byte));
            length.map_or(0, |length| body + length + 1 - at)
        }
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            // The sequence ends at BEL or ST.
            let rest = &bytes[body..];
            rest.iter().take(4096).position(|byte| matches!(byte, 0x07 | 0x1B)).map_or(0, |end| {
                let two = rest[end] == 0x1B && rest.get(end + 1) == Some(&b'\\');
                body + end + 1 + usize::from(two) - at
            })
        }
        Some(b'(' | b')' | b'*' | b'+' | b'#' | b'%') if bytes.get(start + 1).is_some_and(u8::is_ascii) => 3,
        Some(byte) if (0x30..=0x7E).contains(&byte) => 2,
        _ => 0,
    }
}
