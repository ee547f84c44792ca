//! Deltas waiting to be forwarded. Until then, adjacent deltas of the same kind are merged.

use crate::ports::Delta;

/// Pending deltas, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Deltas {
    ready: Vec<Delta>,
    /// Number of bytes of text received so far, including text that has been forwarded.
    pub text_bytes: usize,
    /// Number of parts received so far, including parts that have been forwarded.
    pub added: usize,
}

impl Deltas {
    pub(crate) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.text_bytes += piece.len();
        self.added += 1;
        if let Some(Delta::Text(text)) = self.ready.last_mut() {
            text.push_str(piece);
        } else {
            self.ready.push(Delta::Text(piece.to_owned()));
        }
    }

    pub(crate) fn reasoning(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.text_bytes += piece.len();
        self.added += 1;
        if let Some(Delta::Reasoning(text)) = self.ready.last_mut() {
            text.push_str(piece);
        } else {
            self.ready.push(Delta::Reasoning(piece.to_owned()));
        }
    }

    /// Adds progress on a tool call. `size` is the number of bytes of its arguments received so far.
    pub(crate) fn call(&mut self, tool: &str, size: usize) {
        self.added += 1;
        match self.ready.last_mut() {
            Some(Delta::ToolCallProgress { tool_name, bytes }) if tool_name == tool => *bytes = size as u64,
            Some(_) | None => self.ready.push(Delta::ToolCallProgress { tool_name: tool.to_owned(), bytes: size as u64 }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.ready)
    }
}
