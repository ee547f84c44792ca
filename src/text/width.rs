//! How many cells a piece of text takes.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Cells between two tab stops.
const TAB: usize = 4;

/// Cells of one grapheme: the only place that knows the rules for emoji presentation, joined emoji and flags.
/// It agrees with the cells the screen buffer gives to the same grapheme; control characters take none there.
pub fn grapheme_width(grapheme: &str) -> usize {
    match grapheme.as_bytes() {
        [byte] => usize::from((0x20..0x7f).contains(byte)),
        _ if grapheme.contains(char::is_control) => 0,
        _ => grapheme.width() + grapheme.chars().filter(|letter| is_sound_mark(*letter)).count(),
    }
}

/// Half-width sound marks, to each of which the screen buffer adds a cell; a row laid out with fewer would run over its edge.
fn is_sound_mark(letter: char) -> bool {
    matches!(letter, '\u{ff9e}' | '\u{ff9f}')
}

/// Cells of a text. Tabs and line breaks take none: expand and wrap first.
pub fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.graphemes(true).map(grapheme_width).sum() }
}

/// Printable ASCII only: a byte is a grapheme is a cell.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// The beginning of a text that fits `cells`; ends with `…` when something was cut.
pub fn truncate(text: &str, cells: usize) -> Cow<'_, str> {
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

/// The two ends of a text, with `…` for what was cut between them.
pub fn truncate_middle(text: &str, cells: usize) -> Cow<'_, str> {
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

/// Tabs as spaces up to the next stop, counted from the start of each line.
pub fn expand_tabs(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for grapheme in text.graphemes(true) {
        match grapheme {
            "\t" => {
                let blanks = TAB - column % TAB;
                out.extend(std::iter::repeat_n(' ', blanks));
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
