//! Sanitizes external text before it is displayed.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use super::confusables::{
    accepts_selector, is_combining, is_deceptive, is_drawn_onto, is_false_blank, is_joining_script, is_keycap, is_pictograph,
    write_mark,
};
use super::escape::{Escape, Step};
use super::width::mark_tabs;

/// Maximum number of combining marks displayed on a character. Further marks are only counted.
const MARKS: usize = 8;
/// Maximum length of a flag subdivision (`gbeng`, `ustx` …), including its terminator, in characters.
const TAGS: usize = 8;

/// How to handle escape sequences.
#[derive(Clone, Copy, PartialEq)]
enum SequenceHandling {
    Remove,
    Show,
}

/// How to handle carriage returns and backspaces.
#[derive(Clone, Copy, PartialEq)]
enum Overwrites {
    Show,
    Pass,
}

/// Cleans text that arrives in chunks. The result does not depend on the chunk boundaries.
pub(crate) struct Filter {
    sequences: SequenceHandling,
    overwrites: Overwrites,
    escape: Escape,
    /// Most recent character that is not a combining mark.
    base: char,
    /// Previous character, with which the next one may combine.
    last: char,
    /// Number of combining marks on the current base character.
    marks: usize,
    held: PendingCharacter,
    /// Ranges of replacement marks in the output; `None` if they were not requested.
    places: Option<Vec<Range<usize>>>,
}

/// Buffered character whose meaning depends on the next one.
#[derive(Default)]
enum PendingCharacter {
    #[default]
    Nothing,
    Return,
    Joiner(char),
    Keycap(char),
    Tags(String),
}

impl Default for Filter {
    fn default() -> Self {
        Self::new(SequenceHandling::Remove, Overwrites::Show)
    }
}

impl Filter {
    fn new(sequences: SequenceHandling, overwrites: Overwrites) -> Self {
        Self {
            sequences,
            overwrites,
            escape: Escape::Ground,
            base: '\n',
            last: '\n',
            marks: 0,
            held: PendingCharacter::Nothing,
            places: None,
        }
    }

    /// Creates a filter for a line renderer, which passes carriage returns and backspaces through.
    pub(super) fn for_lines() -> Self {
        Self::new(SequenceHandling::Remove, Overwrites::Pass)
    }

    /// Appends the cleaned chunk to `out`. An incomplete sequence at the end is processed together with the next
    /// chunk.
    pub(crate) fn push(&mut self, chunk: &str, out: &mut String) {
        let mut rest = chunk;
        while let Some(letter) = rest.chars().next() {
            let plain = if self.is_idle() { plain_prefix(rest) } else { 0 };
            if plain > 0 {
                out.push_str(&rest[..plain]);
                self.base = char::from(rest.as_bytes()[plain - 1]);
                self.last = self.base;
                self.marks = 0;
                rest = &rest[plain..];
            } else {
                self.push_char(letter, out);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }

    /// Appends any buffered text to `out` at the end of the input.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if let Some(text) = self.escape.finish() {
            text.chars().for_each(|letter| self.show(letter, out));
        }
        self.resolve_pending(None, out);
        self.end_marks(out);
        (self.base, self.last) = ('\n', '\n');
    }

    fn is_idle(&self) -> bool {
        self.escape.is_ground() && matches!(self.held, PendingCharacter::Nothing) && self.marks <= MARKS
    }

    fn push_char(&mut self, letter: char, out: &mut String) {
        if self.sequences == SequenceHandling::Show {
            return self.show(letter, out);
        }
        match self.escape.step(letter) {
            Step::Taken => {}
            Step::Text => self.show(letter, out),
            Step::AfterStray => {
                self.show('\u{1b}', out);
                self.show(letter, out);
            }
            Step::AfterUnended(text) => {
                text.chars().for_each(|letter| self.show(letter, out));
                self.show(letter, out);
            }
        }
    }

    fn show(&mut self, letter: char, out: &mut String) {
        if self.resolve_pending(Some(letter), out) {
            return;
        }
        match letter {
            '\r' if self.overwrites == Overwrites::Show => self.held = PendingCharacter::Return,
            '\r' | '\u{8}' if self.overwrites == Overwrites::Pass => self.start(letter, out),
            '\n' | '\t' => self.start(letter, out),
            '\u{200c}' | '\u{200d}' => self.held = PendingCharacter::Joiner(letter),
            '\u{e0020}'..='\u{e007f}' if self.base == '🏴' => self.held = PendingCharacter::Tags(String::from(letter)),
            '\u{fe0e}' | '\u{fe0f}' if self.marks == 0 && is_keycap(self.base) => self.held = PendingCharacter::Keycap(letter),
            '\u{fe0e}' | '\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => self.selector(letter, out),
            _ if is_deceptive(letter) => self.mark(letter, out),
            _ if self.sequences == SequenceHandling::Show && is_false_blank(letter) => self.mark(letter, out),
            _ if is_combining(letter) && self.has_no_base(letter) => self.mark(letter, out),
            _ if is_combining(letter) => self.combine(letter, out),
            _ => self.start(letter, out),
        }
    }

    /// Returns whether a combining mark has no base character. In revealed text, a space does not count as a base.
    fn has_no_base(&self, letter: char) -> bool {
        !is_drawn_onto(self.last, letter) || (self.sequences == SequenceHandling::Show && self.last == ' ')
    }

    /// Resolves buffered characters. Returns `true` if `next` was consumed.
    fn resolve_pending(&mut self, next: Option<char>, out: &mut String) -> bool {
        match std::mem::take(&mut self.held) {
            PendingCharacter::Nothing => false,
            PendingCharacter::Return => {
                if next != Some('\n') {
                    self.mark('\r', out);
                }
                false
            }
            PendingCharacter::Joiner(joiner) => {
                self.join(joiner, next, out);
                false
            }
            PendingCharacter::Keycap(selector) => {
                match next {
                    Some('\u{20e3}') => self.combine(selector, out),
                    Some(_) | None => self.mark(selector, out),
                }
                false
            }
            PendingCharacter::Tags(tags) => self.tag(tags, next, out),
        }
    }

    fn join(&mut self, joiner: char, next: Option<char>, out: &mut String) {
        let joins = next.is_some_and(|next| {
            (joiner == '\u{200d}' && is_pictograph(self.base) && is_pictograph(next))
                || (is_joining_script(self.base) && is_joining_script(next))
        });
        if joins { self.combine(joiner, out) } else { self.mark(joiner, out) }
    }

    fn tag(&mut self, mut tags: String, next: Option<char>, out: &mut String) -> bool {
        match next {
            Some('\u{e007f}') if tags.chars().all(|tag| matches!(tag, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}')) => {
                out.push_str(&tags);
                out.push('\u{e007f}');
                (self.base, self.last) = ('\u{e007f}', '\u{e007f}');
                true
            }
            Some(tag @ '\u{e0020}'..='\u{e007e}') if tags.chars().count() < TAGS => {
                tags.push(tag);
                self.held = PendingCharacter::Tags(tags);
                true
            }
            _ => {
                tags.chars().for_each(|tag| self.mark(tag, out));
                false
            }
        }
    }

    fn selector(&mut self, selector: char, out: &mut String) {
        if self.marks == 0 && accepts_selector(self.base, selector) {
            self.combine(selector, out);
        } else {
            self.mark(selector, out);
        }
    }

    fn combine(&mut self, letter: char, out: &mut String) {
        self.marks += 1;
        if self.marks <= MARKS {
            self.last = letter;
            out.push(letter);
        }
    }

    fn mark(&mut self, letter: char, out: &mut String) {
        self.end_marks(out);
        let start = out.len();
        write_mark(letter, out);
        if let Some(places) = &mut self.places {
            places.push(start..out.len());
        }
        (self.base, self.last) = ('\n', '\n');
    }

    fn start(&mut self, letter: char, out: &mut String) {
        self.end_marks(out);
        (self.base, self.last) = (letter, letter);
        out.push(letter);
    }

    fn end_marks(&mut self, out: &mut String) {
        if self.marks > MARKS {
            let _ = write!(out, "<+{} marks>", self.marks - MARKS);
        }
        self.marks = 0;
    }
}

/// Returns the length of the longest prefix that contains only printable ASCII, line breaks and tabs, in bytes.
fn plain_prefix(text: &str) -> usize {
    text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len())
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

fn filter_text(text: &str, mut filter: Filter) -> Cow<'_, str> {
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    filter.push(text, &mut out);
    filter.finish(&mut out);
    Cow::Owned(out)
}

/// Cleans external text for display. Removes escape sequences, replaces other control characters, direction changes
/// and invisible characters with marks, and counts excessive combining marks. Line breaks and tabs are preserved.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    filter_text(text, Filter::default())
}

/// Cleans text that the user reviews, such as a command, a path or a diff. Escape sequences are shown rather than
/// removed.
pub(crate) fn reveal(text: &str) -> Cow<'_, str> {
    filter_text(text, Filter::new(SequenceHandling::Show, Overwrites::Show))
}

/// Like [`reveal`], but for text drawn in rows: tabs are replaced with arrows that extend to the next tab stop.
pub(crate) fn reveal_rows(text: &str) -> String {
    mark_tabs(&reveal(text)).into_owned()
}

/// Like [`clean`], but returns a single line in which runs of whitespace are replaced with single spaces.
pub(crate) fn clean_line(text: &str) -> String {
    joined(&clean(text))
}

/// Like [`reveal`], but returns a single line in which runs of whitespace are replaced with single spaces.
pub(crate) fn reveal_line(text: &str) -> String {
    joined(&reveal(text))
}

/// Like [`reveal`], but for a name or path on one line. Line breaks, tabs, and leading and trailing spaces are
/// replaced with symbols.
pub(crate) fn reveal_name(text: &str) -> String {
    let revealed = reveal(text).replace('\n', "␊").replace('\t', "␉");
    let middle = revealed.trim_matches(' ');
    let before = revealed.len() - revealed.trim_start_matches(' ').len();
    let behind = revealed.len() - middle.len() - before;
    format!("{}{middle}{}", "␠".repeat(before), "␠".repeat(behind))
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the result of [`reveal`] and the ranges of its marks, which distinguishes them from text that merely looks
/// like a mark.
pub(crate) fn reveal_at(text: &str) -> (String, Vec<Range<usize>>) {
    let mut filter = Filter { places: Some(Vec::new()), ..Filter::new(SequenceHandling::Show, Overwrites::Show) };
    let mut out = String::with_capacity(text.len());
    filter.push(text, &mut out);
    filter.finish(&mut out);
    (out, filter.places.unwrap_or_default())
}
