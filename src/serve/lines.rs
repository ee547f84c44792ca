//! Splitting of a client's input into messages of limited size, one per line.

pub(crate) use crate::text::BoundedLine;
use crate::text::LineSplitter;

/// Maximum size of a message in bytes. Longer messages are discarded.
pub(crate) const LINE_BYTES: usize = 16 << 20;

/// Line splitter, which buffers the current, incomplete line.
#[derive(Debug)]
pub(crate) struct Lines(LineSplitter);

impl Default for Lines {
    fn default() -> Self {
        Self(LineSplitter::new(LINE_BYTES))
    }
}

impl Lines {
    /// Adds input. Returns the lines that it completes, without any empty ones.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Vec<BoundedLine> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            lines.extend(self.0.take_line(&mut bytes).filter(is_message));
        }
        lines
    }

    /// Ends the input. Any incomplete message is returned as a line, which then leads to a parse error.
    pub(crate) fn end(&mut self) -> Option<BoundedLine> {
        self.0.finish().filter(is_message)
    }
}

fn is_message(line: &BoundedLine) -> bool {
    !matches!(line, BoundedLine::Whole(bytes) if bytes.trim_ascii().is_empty())
}
