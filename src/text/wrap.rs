//! Wraps text into rows.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::width::{grapheme_width, is_plain};

/// Wraps text and returns the byte range of each row. Text can be broken at spaces, at line breaks and between wide
/// characters; the spaces and line breaks at a break belong to no row. A word longer than a row is broken at grapheme
/// boundaries. Always returns at least one row.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<Range<usize>> {
    wrap_keeping(text, width, &[])
}

/// Wraps text without breaking any of the ranges in `whole` that fit into a row. The ranges must be sorted.
pub(crate) fn wrap_keeping(text: &str, width: usize, whole: &[Range<usize>]) -> Vec<Range<usize>> {
    if text.len() <= width && is_plain(text) {
        return std::iter::once(0..text.len()).collect();
    }
    let mut rows = Rows::new(width);
    if whole.is_empty() && text.is_ascii() {
        for at in 0..text.len() {
            rows.push_grapheme(at, &text[at..=at]);
        }
    } else {
        for (at, grapheme) in text.grapheme_indices(true) {
            let holds = |piece: &&Range<usize>| piece.contains(&at);
            rows.keeps = whole.iter().find(holds).is_some_and(|piece| super::width(&text[piece.clone()]) <= width);
            rows.push_grapheme(at, grapheme);
        }
    }
    rows.finish(text)
}

/// Wraps code without dropping any characters. A row ends before a space in its last third if possible, and otherwise
/// at its full width.
pub(crate) fn wrap_exact(text: &str, width: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    if text.len() <= width && is_plain(text) {
        return std::iter::once(0..text.len()).collect();
    }
    let mut rows = Vec::new();
    // Start and width of the current row. `space` is its last space, at which the next row may start.
    let (mut start, mut used) = (0, 0);
    let mut space: Option<(usize, usize)> = None;
    for (at, grapheme) in text.grapheme_indices(true) {
        let cells = grapheme_width(grapheme);
        if used + cells > width && at > start && grapheme != " " {
            let (next, before) = space.take().filter(|(_, before)| before * 3 >= width * 2).unwrap_or((at, used));
            rows.push(start..next);
            (start, used) = (next, used - before);
        }
        if used + cells > width && at > start {
            rows.push(start..at);
            (start, used, space) = (at, 0, None);
        }
        if grapheme == " " {
            space = Some((at, used));
        }
        used += cells;
    }
    rows.push(start..text.len());
    rows
}

/// Position at which the current row may be broken.
struct Break {
    /// Byte offset at which the row's text ends, before any spaces.
    end: usize,
    /// Byte offset at which the next row starts, after any spaces.
    next: usize,
    /// Width of the row up to `next`, in cells.
    used: usize,
}

struct Rows {
    width: usize,
    rows: Vec<Range<usize>>,
    start: usize,
    /// Byte offset at which the row's last visible character ends. Any spaces that follow are dropped.
    text_end: usize,
    used: usize,
    last_break: Option<Break>,
    after: After,
    /// Whether the current range must not be broken.
    keeps: bool,
}

/// Kind of the last grapheme, which determines whether the row may be broken after it.
#[derive(Clone, Copy, PartialEq)]
enum After {
    Start,
    Letter,
    Wide,
    Space,
}

impl Rows {
    fn new(width: usize) -> Self {
        let width = width.max(1);
        Self { width, rows: Vec::new(), start: 0, text_end: 0, used: 0, last_break: None, after: After::Start, keeps: false }
    }

    fn push_grapheme(&mut self, at: usize, grapheme: &str) {
        let end = at + grapheme.len();
        match grapheme {
            "\n" => self.line_break(at, end),
            " " | "\t" if !self.keeps => self.space(end),
            _ => self.push_printable(at, end, grapheme),
        }
    }

    fn line_break(&mut self, at: usize, next: usize) {
        let end = if self.used > self.width { self.text_end.max(self.start) } else { at };
        self.rows.push(self.start..end);
        self.begin(next);
    }

    fn begin(&mut self, start: usize) {
        (self.start, self.text_end, self.used) = (start, start, 0);
        self.last_break = None;
        self.after = After::Start;
    }

    fn space(&mut self, end: usize) {
        self.used += 1;
        if self.after != After::Start {
            self.last_break = Some(Break { end: self.text_end, next: end, used: self.used });
            self.after = After::Space;
        }
    }

    fn push_printable(&mut self, at: usize, end: usize, grapheme: &str) {
        let cells = grapheme_width(grapheme);
        let closing = grapheme.starts_with(closes);
        let wide = cells > 1 && !closing;
        if !closing && !self.keeps && (self.after == After::Wide || (wide && self.after == After::Letter)) {
            self.last_break = Some(Break { end: at, next: at, used: self.used });
        }
        while self.used + cells > self.width && at > self.start {
            match self.last_break.take() {
                Some(place) => {
                    self.rows.push(self.start..place.end);
                    self.start = place.next;
                    self.used -= place.used;
                }
                // Indentation that is wider than the row is dropped.
                None if self.after == After::Start => self.begin(at),
                None => {
                    self.rows.push(self.start..at);
                    self.begin(at);
                }
            }
        }
        self.used += cells;
        self.text_end = end;
        self.after = if wide { After::Wide } else { After::Letter };
    }

    fn finish(mut self, text: &str) -> Vec<Range<usize>> {
        let end = if self.used > self.width { self.text_end.max(self.start) } else { text.len() };
        self.rows.push(self.start..end);
        self.rows
    }
}

/// Returns whether a character is wide punctuation that must not start a row.
fn closes(letter: char) -> bool {
    matches!(
        letter,
        '、' | '。' | '，' | '．' | '！' | '？' | '：' | '；' | '」' | '』' | '）' | '】' | '》' | '〉' | '〕' | 'ー'
    )
}
