//! Redacts a stream. Text is forwarded as soon as it can no longer be part of a secret.

use super::{Redactor, SecretSpan, block};
use crate::protocol::cut_position_before;
use std::sync::Arc;

/// Length, in bytes, above which a line is forwarded in pieces.
const LINE_BYTES: usize = 16 * 1024;
/// Number of bytes of a long line that are withheld until more text arrives; longer than any token.
const TOKEN_BYTES: usize = 4 * 1024;
/// Maximum distance, in bytes, between a name and its secret.
const NAME_BYTES: usize = 128;
/// Maximum number of key headers examined when searching for an unterminated private key.
const MAX_BEGINNINGS: usize = 64;
/// Length, in bytes, at which an unterminated private key is no longer tracked.
const BLOCK_BYTES: usize = 64 * 1024;

/// Redacts text that arrives in pieces, including secrets that are split across pieces.
pub struct Stream {
    redactor: Arc<Redactor>,
    held: String,
    /// Whether the stream is inside a key block whose marker has already been forwarded.
    in_block: bool,
}

impl Stream {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, held: String::new(), in_block: false }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Appends a piece of text and returns the redacted text that can now be forwarded.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.leave_block(false);
        let cut = self.cut();
        self.emit(cut)
    }

    /// Ends the stream and returns the remaining text, redacted.
    pub fn finish(&mut self) -> String {
        self.leave_block(true);
        let rest = std::mem::take(&mut self.held);
        self.redactor.hide(&rest).into_owned()
    }

    fn emit(&mut self, cut: usize) -> String {
        if cut == 0 {
            return String::new();
        }
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        self.redactor.hide(&ready).into_owned()
    }

    /// Discards the remaining lines of a key whose beginning has already been redacted.
    fn leave_block(&mut self, last: bool) {
        while self.in_block && !self.held.is_empty() {
            let (line_end, whole) = match self.held.find('\n') {
                Some(end) => (end + 1, true),
                None => (self.held.len(), false),
            };
            let line = &self.held[..line_end];
            if block::opens_or_closes(line) == Some(false) {
                self.in_block = false;
                self.held.drain(..line_end);
            } else if !block::is_key_line(line.trim_end()) && (whole || last) {
                self.in_block = false;
            } else if whole || last || line_end > LINE_BYTES {
                self.held.drain(..line_end);
            } else {
                return;
            }
        }
    }

    /// Returns the position at which the buffered text can be cut without splitting a secret.
    fn cut(&mut self) -> usize {
        if self.in_block {
            return 0;
        }
        let lines = self.held.rfind('\n').map_or(0, |end| end + 1);
        if let Some(begin) = self.open_block() {
            if self.held.len() - begin < BLOCK_BYTES {
                return begin;
            }
            self.in_block = true;
            return self.held.len();
        }
        let line = &self.held[lines..];
        let mut cut = lines;
        if line.len() > LINE_BYTES {
            cut = cut_position_before(&self.held, self.held.len() - TOKEN_BYTES);
        } else if !self.redactor.detectors.announces(&super::strip_ansi::PlainText::new(line).text) {
            cut +=
                line.rfind(char::is_whitespace).map_or(0, |space| space + line[space..].chars().next().map_or(1, char::len_utf8));
        }
        // Secrets that were found are not split, and not separated from their names.
        let spans = self.redactor.spans(&self.held);
        // Key lines without a beginning are recognized only by the end marker after them.
        let reach = |span: &SecretSpan| span.end + block::end_mark(&self.held[span.end..]);
        let around = |cut: usize| spans.iter().find(|span| span.start < cut && reach(span) > cut);
        match around(cut) {
            Some(span) if reach(span) < self.held.len() => reach(span),
            Some(span) => {
                let back = cut_position_before(&self.held, span.start.saturating_sub(NAME_BYTES));
                around(back).map_or(back, reach)
            }
            None => cut,
        }
    }

    /// Returns the start of the line that opens an unterminated private key. The beginning of another key ends such a
    /// key, but may occur in the middle of its last line. Until that line is complete, the first beginning is returned.
    fn open_block(&self) -> Option<usize> {
        let (mut open, mut end) = (None, self.held.len());
        for _ in 0..MAX_BEGINNINGS {
            let Some(begin) = self.held[..end].rfind("BEGIN ") else { break };
            let start = self.held[..begin].rfind('\n').map_or(0, |line| line + 1);
            let rest = &self.held[start..];
            let line = rest.split('\n').next().unwrap_or(rest);
            let opens = block::opens_or_closes(line).unwrap_or(false) || line.contains("BEGIN SSH2");
            if is_closed(rest) || !opens && line.len() < rest.len() {
                break;
            }
            open = opens.then_some(start).or(open);
            end = start;
        }
        open
    }
}

/// Returns whether the text contains the line that ends its first key.
fn is_closed(text: &str) -> bool {
    let end = text.find("-----END ").or_else(|| text.find("---- END SSH2")).map(|end| end + 9);
    end.is_some_and(|end| text[end..].contains("----") || text[end..].contains('\n'))
}
