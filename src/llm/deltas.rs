//! Pending deltas. Adjacent deltas of the same kind are merged until they are forwarded.

use crate::ports::Delta;

/// Deltas in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Deltas {
    ready: Vec<Delta>,
    /// Number of bytes of text so far, including forwarded text.
    pub text_bytes: usize,
    /// Number of parts so far, including forwarded parts.
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

    /// Adds the progress of a call; `size` is the length of its arguments so far.
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
