//! Splits incoming bytes into lines of limited length. Unlike the codec in tokio-util, the splitter does not need a
//! runtime, accepts bytes that are not UTF-8, and continues after an overlong line.

/// Line without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BoundedLine {
    Whole(Vec<u8>),
    /// The line exceeded the limit and was discarded.
    TooLong,
}

/// Line splitter, which buffers the current, incomplete line.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    max_bytes: usize,
    line: Vec<u8>,
    has_begun: bool,
    is_too_long: bool,
}

impl LineSplitter {
    /// Creates a splitter. `max_bytes` is the maximum length of a line, excluding its line break.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, line: Vec::new(), has_begun: false, is_too_long: false }
    }

    /// Consumes bytes up to and including the next line break and returns the line. If there is no line break,
    /// buffers all bytes and returns `None`.
    pub(crate) fn take_line(&mut self, bytes: &mut &[u8]) -> Option<BoundedLine> {
        let end = memchr::memchr(b'\n', bytes);
        let (piece, rest) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => (*bytes, &bytes[bytes.len()..]),
        };
        *bytes = rest;
        self.has_begun |= !piece.is_empty();
        if self.is_too_long || self.line.len() + piece.len() > self.max_bytes {
            self.is_too_long = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(piece);
        }
        end.is_some().then(|| self.cut())
    }

    /// Returns the last line if it is not terminated by a line break, or `None` if no bytes are left.
    pub(crate) fn finish(&mut self) -> Option<BoundedLine> {
        self.has_begun.then(|| self.cut())
    }

    /// Returns whether the current line already exceeds the limit.
    pub(crate) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    fn cut(&mut self) -> BoundedLine {
        self.has_begun = false;
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) { BoundedLine::TooLong } else { BoundedLine::Whole(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], step: usize) -> Vec<BoundedLine> {
        let mut splitter = LineSplitter::new(10);
        let mut lines = Vec::new();
        for mut piece in bytes.chunks(step) {
            while !piece.is_empty() {
                lines.extend(splitter.take_line(&mut piece));
            }
        }
        lines.extend(splitter.finish());
        assert_eq!(splitter.finish(), None);
        lines
    }

    #[test]
    fn lines_do_not_depend_on_chunk_boundaries() {
        let text = [b"one\n\n".as_slice(), &[b'x'; 10], b"\n", &[b'x'; 40], b"\n\xff\xfe\nlast"].concat();
        let whole = |bytes: &[u8]| BoundedLine::Whole(bytes.to_vec());
        let expected = [whole(b"one"), whole(b""), whole(&[b'x'; 10]), BoundedLine::TooLong, whole(b"\xff\xfe"), whole(b"last")];
        for step in [1, 2, 7, 1000] {
            assert_eq!(lines(&text, step), expected, "{step}");
        }
    }

    #[test]
    fn the_end_of_input_ends_only_a_started_line() {
        assert_eq!(lines(b"one\n", 2), [BoundedLine::Whole(b"one".to_vec())]);
        assert_eq!(lines(b"", 1), []);
        assert_eq!(lines(&[b'x'; 11], 4), [BoundedLine::TooLong]);
    }

    #[test]
    fn overlong_lines_are_detected_before_their_end_and_use_no_memory() {
        let mut splitter = LineSplitter::new(4);
        assert_eq!(splitter.take_line(&mut b"12345".as_slice()), None);
        assert!(splitter.is_too_long() && splitter.line.capacity() == 0);
        assert_eq!(splitter.take_line(&mut b"6789\n".as_slice()), Some(BoundedLine::TooLong));
        assert!(!splitter.is_too_long());
    }
}
