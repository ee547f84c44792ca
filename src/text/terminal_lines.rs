//! Command output as lines, with carriage returns and backspaces applied.

use unicode_segmentation::UnicodeSegmentation;

use super::ansi::is_blank;
use super::confusables::is_combining;
use super::sanitize::Filter;

/// Maximum length of an unfinished line, in bytes. Longer lines are emitted in pieces.
const OPEN: usize = 64 * 1024;

/// Renders output as it arrives. Complete lines are appended to `out`; the unfinished line is available from
/// [`Cleaner::open_line`].
///
/// If the successive states of an overwritten line form a progress display, only the last state is kept. Any other
/// overwritten text remains visible, followed by a `␍`, so a command cannot hide its output.
pub(crate) struct Cleaner {
    filter: Filter,
    /// Part of the line that can no longer change.
    shown: String,
    /// State of the line before the current one.
    held: String,
    /// Whether the buffered state itself replaced an earlier progress state.
    held_is_progress: bool,
    current: String,
    backspaces: usize,
    return_seen: bool,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self::new()
    }
}

impl Cleaner {
    pub(crate) fn new() -> Self {
        Self {
            filter: Filter::for_lines(),
            shown: String::new(),
            held: String::new(),
            held_is_progress: false,
            current: String::new(),
            backspaces: 0,
            return_seen: false,
        }
    }

    /// Processes the next chunk. An escape sequence may continue in a later chunk.
    pub(crate) fn push(&mut self, chunk: &str, out: &mut String) {
        let mut text = String::with_capacity(chunk.len());
        self.filter.push(chunk, &mut text);
        self.follow(&text, out);
    }

    /// Appends the unfinished line at the end of the output and resets the renderer.
    pub(crate) fn finish(&mut self, out: &mut String) {
        let mut text = String::new();
        self.filter.finish(&mut text);
        self.follow(&text, out);
        out.push_str(&self.open_line());
        *self = Self::new();
    }

    /// Returns the unfinished line in its current state.
    pub(crate) fn open_line(&self) -> String {
        let last = if is_blank(&self.current) { &self.held } else { &self.current };
        let mut line = self.shown.clone();
        if !is_blank(&self.current) && !self.may_drop_buffered() {
            line.push_str(&self.held);
            line.push('␍');
        }
        line.push_str(last);
        line
    }

    fn follow(&mut self, text: &str, out: &mut String) {
        for letter in text.chars() {
            match letter {
                '\n' => self.end_line(out),
                '\r' => self.return_seen = true,
                '\u{8}' => self.backspaces += 1,
                _ => self.push_char(letter),
            }
        }
        if self.current.len() + self.shown.len() > OPEN {
            out.push_str(&self.open_line());
            self.clear();
        }
    }

    fn end_line(&mut self, out: &mut String) {
        out.push_str(&self.open_line());
        out.push('\n');
        self.clear();
    }

    fn clear(&mut self) {
        self.shown.clear();
        self.held.clear();
        self.current.clear();
        (self.held_is_progress, self.return_seen, self.backspaces) = (false, false, 0);
    }

    fn push_char(&mut self, letter: char) {
        if std::mem::take(&mut self.return_seen) {
            self.end_state();
        }
        match std::mem::take(&mut self.backspaces) {
            0 => self.current.push(letter),
            count => self.overwrite(count, letter),
        }
    }

    /// Starts over at the beginning of the line, and determines whether the previous state was progress output.
    fn end_state(&mut self) {
        self.backspaces = 0;
        if is_blank(&self.current) {
            self.current.clear();
            return;
        }
        let progress = !self.held.is_empty() && is_same_progress(&self.held, &self.current);
        if !self.may_drop_buffered() {
            self.shown.push_str(&self.held);
            self.shown.push('␍');
        }
        self.held = std::mem::take(&mut self.current);
        self.held_is_progress = progress;
    }

    fn may_drop_buffered(&self) -> bool {
        self.held.is_empty() || self.held_is_progress || is_same_progress(&self.held, &self.current)
    }

    fn overwrite(&mut self, count: usize, letter: char) {
        let over: Vec<&str> = self.current.graphemes(true).rev().take(count).collect();
        let end = self.current.len() - over.iter().map(|grapheme| grapheme.len()).sum::<usize>();
        let mut as_text = [0; 4];
        let bold_or_underlined = !is_combining(letter)
            && matches!(over[..], [under] if under == letter.encode_utf8(&mut as_text) || under == "_" || letter == '_');
        let hides = over.iter().any(|grapheme| grapheme.contains(char::is_alphabetic)) || is_combining(letter);
        if bold_or_underlined && letter == '_' {
            return;
        }
        if bold_or_underlined || !hides {
            self.current.truncate(end);
        } else {
            self.current.extend(std::iter::repeat_n('␈', count));
        }
        self.current.push(letter);
    }
}

/// Returns whether two states belong to the same progress display. This is the case if the first state contains only
/// numbers and bars, or if both start with the same word.
fn is_same_progress(before: &str, after: &str) -> bool {
    first_word(before).is_none_or(|word| Some(word) == first_word(after))
}

fn first_word(text: &str) -> Option<&str> {
    text.split(|letter: char| !letter.is_alphabetic()).find(|word| !word.is_empty())
}
