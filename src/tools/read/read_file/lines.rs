//! Some lines of a text that is read once, from its start: no more is held than is given.

use super::skip::{Skipped, skip_to};
use crate::policy::redact::Redactor;
use crate::protocol::{cut_after, cut_before};
use crate::tools::charset::{CHUNK_BYTES, Decoded, decode};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{self, Cursor, Read};

/// Looked at before and after a place where a line is cut, so that no secret is shown in halves.
const AROUND_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    /// From 1.
    pub first: u64,
    pub count: u64,
    /// Where in the first line to begin, in characters from 1.
    pub column: u64,
}

pub(super) const ALL: Range = Range { first: 1, count: u64::MAX, column: 1 };

/// Some lines, and what was left out.
pub(super) struct Taken {
    pub text: String,
    /// Lines seen from the start of the file.
    pub seen: u64,
    /// Lines that the first line of the text stands for beyond itself.
    pub folded: u64,
    pub rest: Rest,
    /// The first of them stands within a private key.
    pub in_key: bool,
}

impl Taken {
    /// Puts `shown` in the place of the text, the start of which is hidden on one line.
    pub(super) fn hide(&mut self, shown: String) {
        self.folded += breaks(&self.text).saturating_sub(breaks(&shown));
        self.text = shown;
    }
}

fn breaks(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// More lines follow those asked for.
    Lines,
    /// The bound was reached before the end of what was asked for.
    Bound,
    /// It was reached within the first line, of which this is the next column.
    LongLine {
        column: u64,
    },
    /// The first line ends before the column asked for.
    ShortLine {
        columns: u64,
    },
}

/// Reads no further than it must.
pub(super) fn take(
    from: impl Read,
    encoding: &'static Encoding,
    range: Range,
    most_bytes: usize,
    redactor: &Redactor,
) -> io::Result<Taken> {
    if encoding.is_ascii_compatible() || encoding == UTF_16LE || encoding == UTF_16BE {
        return take_from(from, encoding, range, most_bytes, redactor);
    }
    // Where a line feed is cannot be told from the bytes alone.
    take_from(Decoded::new(from, encoding), UTF_8, range, most_bytes, redactor)
}

fn take_from(
    mut from: impl Read,
    encoding: &'static Encoding,
    range: Range,
    most_bytes: usize,
    redactor: &Redactor,
) -> io::Result<Taken> {
    let from_start = range.first == 1;
    let Skipped { line, rest, in_key } = if from_start {
        Skipped { line: 1, rest: Vec::new(), in_key: false }
    } else {
        skip_to(&mut from, encoding, range.first)?
    };
    let mut decoder =
        if from_start { encoding.new_decoder_with_bom_removal() } else { encoding.new_decoder_without_bom_handling() };
    let mut from = Cursor::new(rest).chain(from);
    let mut lines = LineTaker { range, most_bytes, line, ..LineTaker::default() };
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        let count = from.read(&mut bytes)?;
        let rest = lines.take(&decode(&mut decoder, &bytes[..count])).or((count == 0).then_some(Rest::Nothing));
        if let Some(rest) = rest {
            return Ok(Taken { in_key, ..lines.taken(rest, redactor) });
        }
    }
}

struct LineTaker {
    range: Range,
    most_bytes: usize,
    /// The line being read, from 1.
    line: u64,
    /// Nothing of that line was seen yet.
    at_start: bool,
    /// How much of the first line was passed over, in characters.
    passed: u64,
    /// The end of that.
    before: String,
    text: String,
}

impl Default for LineTaker {
    fn default() -> Self {
        Self { range: ALL, most_bytes: 0, line: 1, at_start: true, passed: 0, before: String::new(), text: String::new() }
    }
}

impl LineTaker {
    /// Takes what belongs to the range, and somewhat more than the bound; the reason to stop, if there is one.
    fn take(&mut self, piece: &str) -> Option<Rest> {
        for part in piece.split_inclusive('\n') {
            if self.line - self.range.first.min(self.line) >= self.range.count {
                return Some(Rest::Lines);
            }
            let wanted = self.pass(part);
            self.text.push_str(wanted);
            if self.text.ends_with("\r\n") {
                // Edits match LF to whatever the file has.
                self.text.truncate(self.text.len() - 2);
                self.text.push('\n');
            }
            self.at_start = part.ends_with('\n');
            if self.at_start && self.passed + 1 < self.range.column {
                return Some(Rest::ShortLine { columns: self.passed });
            }
            self.line += u64::from(self.at_start);
            if self.text.len() > self.most_bytes + AROUND_BYTES {
                return Some(Rest::Bound);
            }
        }
        None
    }

    /// Without what stands before the column in the first line.
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
            self.before.drain(..cut_after(&self.before, self.before.len() - AROUND_BYTES));
        }
        &part[end..]
    }

    fn taken(mut self, rest: Rest, redactor: &Redactor) -> Taken {
        let short = self.line == self.range.first && self.passed + 1 < self.range.column && !self.at_start;
        let rest = if short { Rest::ShortLine { columns: self.passed } } else { rest };
        let mut seen = if self.at_start { self.line - 1 } else { self.line };
        let rest = match rest {
            _ if self.text.len() <= self.most_bytes => rest,
            Rest::ShortLine { .. } => rest,
            Rest::Nothing | Rest::Lines | Rest::Bound | Rest::LongLine { .. } => {
                let rest = self.cut(redactor);
                seen = self.range.first + breaks(&self.text).saturating_sub(1);
                rest
            }
        };
        let all = breaks(&self.text);
        if !self.before.is_empty() {
            let head = cut_before(&self.text, AROUND_BYTES.min(self.text.len()));
            let shown = redactor.shown_from(&format!("{}{}", self.before, &self.text[..head]), self.before.len());
            self.text.replace_range(..head, &shown);
        }
        let folded = all.saturating_sub(breaks(&self.text));
        Taken { text: self.text, seen, folded, rest, in_key: false }
    }

    /// At the last whole line, or within a line that alone is too long.
    fn cut(&mut self, redactor: &Redactor) -> Rest {
        if let Some(end) = self.text.as_bytes()[..self.most_bytes].iter().rposition(|byte| *byte == b'\n') {
            self.text.truncate(end + 1);
            return Rest::Bound;
        }
        let end = cut_before(&self.text, self.most_bytes);
        let from = cut_after(&self.text, end.saturating_sub(AROUND_BYTES));
        let to = cut_before(&self.text, (end + AROUND_BYTES).min(self.text.len()));
        let whole = from + redactor.shown_until(&self.text[from..to], end - from);
        // What is secret as a whole is hidden by what it begins with.
        let end = if whole == 0 { end } else { whole };
        self.text.truncate(end);
        Rest::LongLine { column: self.range.column + self.text.chars().count() as u64 }
    }
}

#[cfg(test)]
mod tests;
