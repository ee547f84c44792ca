//! Captures output of any length: its beginning, its end, and its total size.

use std::collections::VecDeque;

/// Percentage of the limit that is used for the beginning of truncated output. The rest is used for its end.
const HEAD_PERCENT: usize = 80;

/// Beginning and end of a stream. Uses at most 1.2 times the limit, however long the stream is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputCapture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl OutputCapture {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        // Up to the limit, everything belongs to the head, so that short output is not truncated.
        let fits = (self.limit - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..fits]);
        let rest = &bytes[fits..];
        if rest.is_empty() {
            return;
        }
        let room = self.limit - head_share(self.limit);
        self.tail.extend(&rest[rest.len().saturating_sub(room)..]);
        let excess = self.tail.len().saturating_sub(room);
        self.tail.drain(..excess);
    }

    /// Returns the length of the whole stream in bytes.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns at most `budget` bytes of output as text. If the output is longer, a note replaces the middle.
    pub(crate) fn text(&self, budget: usize) -> String {
        self.text_with_gap(budget).0
    }

    /// Returns the text along with the number of bytes that the note replaces, if there is one.
    pub(crate) fn text_with_gap(&self, budget: usize) -> (String, Option<u64>) {
        let budget = budget.min(self.limit);
        if self.total <= budget as u64 {
            return (String::from_utf8_lossy(&self.head).into_owned(), None);
        }
        let head = whole_start(&self.head[..head_share(budget).min(self.head.len())]);
        let tail = self.last(budget - head_share(budget));
        let tail = without_partial_start(&tail);
        let (head, tail) = (to_gap(head), from_gap(tail));
        let cut = self.total - head.len() as u64 - tail.len() as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        (format!("{head}\n[... truncated {cut} bytes ...]\n{tail}"), Some(cut))
    }

    fn last(&self, count: usize) -> Vec<u8> {
        let from_tail = self.tail.len().min(count);
        let from_head = (count - from_tail).min(self.head.len());
        let mut bytes = self.head[self.head.len() - from_head..].to_vec();
        bytes.extend(self.tail.iter().skip(self.tail.len() - from_tail));
        bytes
    }
}

/// Maximum distance in bytes by which a cut is moved to reach a gap between words, so that a search for secrets is
/// never given only half of one.
const GAP_BYTES: usize = 4 * 1024;

fn is_gap(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',' | b';')
}

/// Returns the bytes up to the last line break, if there is one near the end, or else up to the last gap.
fn to_gap(bytes: &[u8]) -> &[u8] {
    let near = bytes.len().saturating_sub(GAP_BYTES.min(bytes.len() / 4));
    let last = |wanted: fn(u8) -> bool| bytes[near..].iter().rposition(|byte| wanted(*byte));
    let end = last(|byte| byte == b'\n').or_else(|| last(is_gap));
    end.map_or(bytes, |end| &bytes[..=near + end])
}

fn from_gap(bytes: &[u8]) -> &[u8] {
    let near = &bytes[..GAP_BYTES.min(bytes.len() / 2)];
    let first = |wanted: fn(u8) -> bool| near.iter().position(|byte| wanted(*byte));
    let start = first(|byte| byte == b'\n').or_else(|| first(is_gap));
    start.map_or(bytes, |start| &bytes[start + 1..])
}

fn head_share(limit: usize) -> usize {
    limit / 100 * HEAD_PERCENT + limit % 100 * HEAD_PERCENT / 100
}

/// Removes an incomplete character from the end.
pub(crate) fn whole_start(bytes: &[u8]) -> &[u8] {
    let longest = bytes.len().min(3);
    for back in 1..=longest {
        let at = bytes.len() - back;
        let needs = match bytes[at] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => break,
        };
        return if needs > back { &bytes[..at] } else { bytes };
    }
    bytes
}

/// Removes an incomplete character from the start.
fn without_partial_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| (0x80..=0xBF).contains(*byte)).count();
    &bytes[cut..]
}
