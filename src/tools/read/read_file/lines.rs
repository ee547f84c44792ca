//! Reads a range of lines in a single pass from the start of a file, keeping only the returned text in memory.

use super::skip::{SkipPosition, skip_to};
use crate::policy::redact::Redactor;
use crate::protocol::{cut_position_after, cut_position_before};
use crate::tools::document::charset::{CHUNK_BYTES, DecodingReader, decode};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{self, Cursor, Read};

/// Number of bytes to examine around a cut within a line, so that no part of a secret is shown.
const AROUND_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    /// First line (1-based).
    pub first: u64,
    pub count: u64,
    /// First column of the first line, in characters (1-based).
    pub column: u64,
}

pub(super) const ALL: Range = Range { first: 1, count: u64::MAX, column: 1 };

/// The lines that were read, and the reason why others were omitted.
pub(super) struct LineSelection {
    pub text: String,
    /// Number of lines that have been read, counting from the start of the file.
    pub seen: u64,
    /// Number of additional lines that redaction has merged into the first line shown.
    pub folded: u64,
    pub rest: RemainingText,
    /// Whether the first line is inside a private key.
    pub in_key: bool,
}

impl LineSelection {
    /// Replaces the text with its redacted form, `shown`, and counts the lines that redaction merged into the first
    /// one.
    pub(super) fn hide(&mut self, shown: String) {
        self.folded += breaks(&self.text).saturating_sub(breaks(&shown));
        self.text = shown;
    }
}

fn breaks(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemainingText {
    Nothing,
    /// There are more lines after the requested ones.
    Lines,
    /// The size limit was reached before the end of the requested range.
    Bound,
    /// The size limit was reached within the first line. Contains the column at which to continue.
    LongLine {
        column: u64,
    },
    /// The first line ends before the requested column. Contains the number of columns that it has.
    ShortLine {
        columns: u64,
    },
}

/// Reads the range, and no more of the input than necessary.
pub(super) fn read_range(
    from: impl Read,
    encoding: &'static Encoding,
    range: Range,
    max_bytes: usize,
    redactor: &Redactor,
) -> io::Result<LineSelection> {
    if encoding.is_ascii_compatible() || encoding == UTF_16LE || encoding == UTF_16BE {
        return read_range_from(from, encoding, range, max_bytes, redactor);
    }
    // Line feeds cannot be recognized in the bytes alone.
    read_range_from(DecodingReader::new(from, encoding), UTF_8, range, max_bytes, redactor)
}

fn read_range_from(
    mut from: impl Read,
    encoding: &'static Encoding,
    range: Range,
    max_bytes: usize,
    redactor: &Redactor,
) -> io::Result<LineSelection> {
    let from_start = range.first == 1;
    let SkipPosition { line, rest, in_key } = if from_start {
        SkipPosition { line: 1, rest: Vec::new(), in_key: false }
    } else {
        skip_to(&mut from, encoding, range.first)?
    };
    let mut decoder =
        if from_start { encoding.new_decoder_with_bom_removal() } else { encoding.new_decoder_without_bom_handling() };
    let mut from = Cursor::new(rest).chain(from);
    let mut lines = LineReader { range, max_bytes, line, ..LineReader::default() };
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        let count = from.read(&mut bytes)?;
        let rest = lines.take(&decode(&mut decoder, &bytes[..count])).or((count == 0).then_some(RemainingText::Nothing));
        if let Some(rest) = rest {
            return Ok(LineSelection { in_key, ..lines.into_selection(rest, redactor) });
        }
    }
}

struct LineReader {
    range: Range,
    max_bytes: usize,
    /// Number of the current line (1-based).
    line: u64,
    /// Whether nothing of the current line has been read yet.
    at_start: bool,
    /// Number of characters of the first line that have been skipped.
    passed: u64,
    /// The end of the skipped text.
    before: String,
    text: String,
}

impl Default for LineReader {
    fn default() -> Self {
        Self { range: ALL, max_bytes: 0, line: 1, at_start: true, passed: 0, before: String::new(), text: String::new() }
    }
}

impl LineReader {
    /// Adds those parts of `piece` that are in the range, up to slightly more than the size limit. Returns the reason
    /// to stop reading, if there is one.
    fn take(&mut self, piece: &str) -> Option<RemainingText> {
        for part in piece.split_inclusive('\n') {
            if self.line - self.range.first.min(self.line) >= self.range.count {
                return Some(RemainingText::Lines);
            }
            let wanted = self.pass(part);
            self.text.push_str(wanted);
            if self.text.ends_with("\r\n") {
                // Use LF, because edits match LF to any line ending.
                self.text.truncate(self.text.len() - 2);
                self.text.push('\n');
            }
            self.at_start = part.ends_with('\n');
            if self.at_start && self.passed + 1 < self.range.column {
                return Some(RemainingText::ShortLine { columns: self.passed });
            }
            self.line += u64::from(self.at_start);
            if self.text.len() > self.max_bytes + AROUND_BYTES {
                return Some(RemainingText::Bound);
            }
        }
        None
    }

    /// Skips the part of the first line that precedes the requested column.
    fn pass<'a>(&mut self, part: &'a str) -> &'a str {
        let left = self.range.column - 1 - self.passed;
        if left == 0 || self.line > self.range.first {
            return part;
        }
        let line = part.strip_suffix("\r\n").or_else(|| part.strip_suffix('\n')).unwrap_or(part);
        let end = line.char_indices().nth(usize::try_from(left).unwrap_or(usize::MAX)).map_or(line.len(), |(at, _)| at);
        self.passed += line[..end].chars().count() as u64;
        self.before.push_str(&line[..end]);
        if self.before.len() > 2 * AROUND_BYTES {
            self.before.drain(..cut_position_after(&self.before, self.before.len() - AROUND_BYTES));
        }
        &part[end..]
    }

    fn into_selection(mut self, rest: RemainingText, redactor: &Redactor) -> LineSelection {
        let short = self.line == self.range.first && self.passed + 1 < self.range.column && !self.at_start;
        let rest = if short { RemainingText::ShortLine { columns: self.passed } } else { rest };
        let mut seen = if self.at_start { self.line - 1 } else { self.line };
        let rest = match rest {
            _ if self.text.len() <= self.max_bytes => rest,
            RemainingText::ShortLine { .. } => rest,
            RemainingText::Nothing | RemainingText::Lines | RemainingText::Bound | RemainingText::LongLine { .. } => {
                let rest = self.cut(redactor);
                seen = self.range.first + breaks(&self.text).saturating_sub(1);
                rest
            }
        };
        let all = breaks(&self.text);
        if !self.before.is_empty() {
            let head = cut_position_before(&self.text, AROUND_BYTES.min(self.text.len()));
            let shown = redactor.redact_from(&format!("{}{}", self.before, &self.text[..head]), self.before.len());
            self.text.replace_range(..head, &shown);
        }
        let folded = all.saturating_sub(breaks(&self.text));
        LineSelection { text: self.text, seen, folded, rest, in_key: false }
    }

    /// Cuts the text after the last complete line, or within a line if that line alone exceeds the limit.
    fn cut(&mut self, redactor: &Redactor) -> RemainingText {
        if let Some(end) = self.text.as_bytes()[..self.max_bytes].iter().rposition(|byte| *byte == b'\n') {
            self.text.truncate(end + 1);
            return RemainingText::Bound;
        }
        let end = cut_position_before(&self.text, self.max_bytes);
        let from = cut_position_after(&self.text, end.saturating_sub(AROUND_BYTES));
        let to = cut_position_before(&self.text, (end + AROUND_BYTES).min(self.text.len()));
        let whole = from + redactor.safe_cut_before(&self.text[from..to], end - from);
        // A multi-line secret is redacted at its first line.
        let end = if whole == 0 { end } else { whole };
        self.text.truncate(end);
        RemainingText::LongLine { column: self.range.column + self.text.chars().count() as u64 }
    }
}

#[cfg(test)]
mod tests;
