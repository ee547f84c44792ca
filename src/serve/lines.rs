//! Line splitter: the input of a client as messages of limited size.

pub(crate) use crate::text::BoundedLine;
use crate::text::LineSplitter;

/// Maximum size in bytes of a message; a longer one is discarded.
pub(crate) const LINE_BYTES: usize = 16 << 20;

/// The current, incomplete line.
#[derive(Debug)]
pub(crate) struct Lines(LineSplitter);

impl Default for Lines {
    fn default() -> Self {
        Self(LineSplitter::new(LINE_BYTES))
    }
}

impl Lines {
    /// Returns the lines that these bytes complete, without empty ones.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Vec<BoundedLine> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            lines.extend(self.0.take_line(&mut bytes).filter(is_message));
        }
        lines
    }

    /// Ends the input. Returns the rest as a line, whose parse error reports the incomplete message.
    pub(crate) fn end(&mut self) -> Option<BoundedLine> {
        self.0.finish().filter(is_message)
    }
}

fn is_message(line: &BoundedLine) -> bool {
    !matches!(line, BoundedLine::Whole(bytes) if bytes.trim_ascii().is_empty())
}
