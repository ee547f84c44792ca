//! Bytes as they come, cut into lines of bounded length.

/// A message may have so many bytes; what a longer one says is not kept.
pub const LINE_BYTES: usize = 16 << 20;

/// One line of the client, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Whole(Vec<u8>),
    /// It had more than `LINE_BYTES`; all of it was passed over.
    TooLong,
}

/// The line that is not at its end yet.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    too_long: bool,
}

impl Lines {
    /// The lines that end in these bytes. Empty ones are no messages.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.begin(&rest[..end]);
            lines.extend(self.end());
            rest = &rest[end + 1..];
        }
        self.begin(rest);
        lines
    }

    /// Nothing more comes. What stands there without an end of line is a message all the same: half of one is no JSON.
    pub fn end(&mut self) -> Option<Line> {
        let begun = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.too_long) {
            return Some(Line::TooLong);
        }
        (!begun.trim_ascii().is_empty()).then_some(Line::Whole(begun))
    }

    fn begin(&mut self, piece: &[u8]) {
        if self.too_long || self.begun.len() + piece.len() > LINE_BYTES {
            self.too_long = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(piece);
        }
    }
}
