//! Text width in terminal cells.

use std::borrow::Cow;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::confusables::is_combining;

/// Distance between tab stops, in cells.
const TAB: usize = 4;

/// Returns the width of a grapheme in cells. Takes emoji presentation, joined emoji and flags into account. The
/// result is the width in the screen buffer, where control characters occupy no cell.
pub(crate) fn grapheme_width(grapheme: &str) -> usize {
    match grapheme.as_bytes() {
        [byte] => usize::from((0x20..0x7f).contains(byte)),
        _ if grapheme.contains(char::is_control) => 0,
        _ => grapheme.width() + grapheme.chars().filter(|letter| is_sound_mark(*letter)).count(),
    }
}

/// Returns whether a character is a half-width sound mark, for which the screen buffer uses an additional cell.
/// Without counting that cell, the row would overflow.
fn is_sound_mark(letter: char) -> bool {
    matches!(letter, '\u{ff9e}' | '\u{ff9f}')
}

/// Kind of grapheme, based on how much its width varies between terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WidthDoubt {
    /// All terminals agree on the width.
    None,
    /// Accented letter, or a letter that is wide in East Asian fonts. The uncertainty extends to the whole word.
    Letter,
    /// Symbol that is wide in East Asian fonts.
    Sign,
    /// Emoji, or several characters drawn as one. The width depends on the terminal and its version.
    Picture,
}

/// Returns how uncertain a grapheme's width is.
pub(crate) fn width_doubt(grapheme: &str) -> WidthDoubt {
    let mut letters = grapheme.chars();
    let Some(first) = letters.next().filter(|_| grapheme.len() > 1) else { return WidthDoubt::None };
    if !letters.as_str().is_empty() {
        // The grapheme is either an accented letter or a joined sequence.
        let is_accented = first < '\u{530}' && letters.all(|letter| is_combining(letter) && letter < '\u{370}');
        return if is_accented { WidthDoubt::Letter } else { WidthDoubt::Picture };
    }
    match first {
        // All terminals support the East Asian scripts.
        '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fc}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => WidthDoubt::None,
        '\u{3001}'..='\u{3011}' | '\u{ff01}'..='\u{ff60}' => WidthDoubt::None,
        // This range also includes half of a flag.
        '\u{1f000}'..='\u{1faff}' => WidthDoubt::Picture,
        _ if first.width() == Some(2) || may_be_emoji(first) => WidthDoubt::Picture,
        _ if first.width_cjk() == first.width() => WidthDoubt::None,
        _ if first.is_alphabetic() => WidthDoubt::Letter,
        _ => WidthDoubt::Sign,
    }
}

/// Returns whether a character followed by a variation selector is drawn as an emoji. Some terminals draw such a
/// character as an emoji even without the selector.
fn may_be_emoji(letter: char) -> bool {
    let mut bytes = [0; 8];
    let end = letter.encode_utf8(&mut bytes).len();
    let with_selector = end + '\u{fe0f}'.encode_utf8(&mut bytes[end..]).len();
    letter.width() == Some(1) && std::str::from_utf8(&bytes[..with_selector]).is_ok_and(|text| text.width() == 2)
}

/// Returns the width of a string in cells. Tabs and line breaks count as zero, so text must be expanded and wrapped
/// first.
pub(crate) fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.graphemes(true).map(grapheme_width).sum() }
}

/// Returns the end of the grapheme that contains this byte position, or the position itself if it is a grapheme
/// boundary.
pub(crate) fn grapheme_end(text: &str, at: usize) -> usize {
    // Two ASCII characters never form a single grapheme.
    let is_ascii = |at: usize| text.as_bytes().get(at).is_none_or(u8::is_ascii);
    if is_ascii(at) && is_ascii(at.saturating_sub(1)) {
        return at;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        Ok(true) | Err(_) => at,
    }
}

/// Returns whether a string consists only of printable ASCII, in which case every byte is one grapheme and one cell.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// Truncates text to at most `cells` cells. If text was cut off, the result ends with `…`.
pub(crate) fn truncate(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    let mut used = 0;
    let mut end = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let next = used + grapheme_width(grapheme);
        if next > cells - 1 {
            break;
        }
        used = next;
        end = at + grapheme.len();
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Shortens text to at most `cells` cells by replacing its middle with `…`.
pub(crate) fn truncate_middle(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let tail = cells.saturating_sub(1) / 2;
    let (mut used, mut start) = (0, text.len());
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme_width(grapheme);
        if used > tail {
            break;
        }
        start = at;
    }
    let head = truncate(text, cells - width(&text[start..]));
    Cow::Owned(format!("{head}{}", &text[start..]))
}

/// Replaces each tab with spaces up to the next tab stop, counted from the start of the line.
pub(crate) fn expand_tabs(text: &str) -> Cow<'_, str> {
    tabs(text, ' ')
}

/// Replaces each tab with an arrow and spaces up to the next tab stop, for text that the user reviews.
pub(crate) fn mark_tabs(text: &str) -> Cow<'_, str> {
    tabs(text, '→')
}

/// Replaces each tab with `sign`, followed by spaces up to the next tab stop.
fn tabs(text: &str, sign: char) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for grapheme in text.graphemes(true) {
        match grapheme {
            "\t" => {
                let blanks = TAB - column % TAB;
                out.push(sign);
                out.extend(std::iter::repeat_n(' ', blanks - 1));
                column += blanks;
            }
            "\n" => {
                out.push('\n');
                column = 0;
            }
            _ => {
                out.push_str(grapheme);
                column += grapheme_width(grapheme);
            }
        }
    }
    Cow::Owned(out)
}
