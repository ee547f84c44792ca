//! The lines of a client: messages of limited length.

pub use crate::text::Line;
use crate::text::LineSplitter;

/// A message may have so many bytes; what a longer one says is not kept.
pub const LINE_BYTES: usize = 16 << 20;

/// The line that is not at its end yet.
#[derive(Debug)]
pub struct Lines(LineSplitter);

impl Default for Lines {
    fn default() -> Self {
        Self(LineSplitter::new(LINE_BYTES))
    }
}

impl Lines {
    /// The lines that end in these bytes. Empty ones are no messages.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            lines.extend(self.0.take_line(&mut bytes).filter(is_message));
        }
        lines
    }

    /// Nothing more comes. What stands there without an end of line is a message all the same: half of one is no JSON.
    pub fn end(&mut self) -> Option<Line> {
        self.0.finish().filter(is_message)
    }
}

fn is_message(line: &Line) -> bool {
    !matches!(line, Line::Whole(bytes) if bytes.trim_ascii().is_empty())
}
