//! Ring buffer for the output of a command without a terminal. It stores only the end of the output.

use std::collections::VecDeque;

/// The last bytes of an output stream of any length.
#[derive(Debug)]
pub(crate) struct RingBuffer {
    kept: VecDeque<u8>,
    limit: usize,
    /// Position in the stream of the first stored byte.
    start: u64,
    /// Position in the stream up to which the output has been read.
    read: u64,
}

/// New output for a reader.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct NewOutput {
    pub text: String,
    /// How much output was dropped before it could be read, such as `12 lines` or `4096 bytes`.
    pub missed: Option<String>,
}

impl RingBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept: VecDeque::new(), limit, start: 0, read: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(self.limit);
        self.kept.extend(&bytes[skipped..]);
        let excess = self.kept.len().saturating_sub(self.limit);
        self.kept.drain(..excess);
        self.start += (skipped + excess) as u64;
    }

    /// Returns the total number of bytes in the stream.
    pub(crate) fn total(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// Returns the output that has not been read yet. If `more_comes`, an incomplete last line is withheld, because it
    /// may contain half of a secret, unless unread output fills at least half of the buffer.
    pub(crate) fn take_new(&mut self, more_comes: bool) -> NewOutput {
        let missed = self.start.saturating_sub(self.read);
        let from = usize::try_from(self.read.max(self.start) - self.start).unwrap_or(usize::MAX);
        let mut bytes: Vec<u8> = self.kept.iter().skip(from).copied().collect();
        if more_comes && bytes.len() < self.limit / 2 {
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            bytes.truncate(end);
        }
        self.read = self.start + (from + bytes.len()) as u64;
        NewOutput { text: String::from_utf8_lossy(&bytes).into_owned(), missed: (missed > 0).then(|| format!("{missed} bytes")) }
    }

    /// Returns the last `count` bytes of the stream.
    pub(crate) fn tail(&self, count: usize) -> Vec<u8> {
        self.kept.iter().skip(self.kept.len().saturating_sub(count)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_return_only_new_output_and_report_lost_bytes() {
        let mut tape = RingBuffer::new(10);
        tape.push(b"one\ntwo\n");
        assert_eq!(tape.take_new(true), NewOutput { text: "one\ntwo\n".into(), missed: None });
        assert_eq!(tape.take_new(true), NewOutput::default());
        tape.push(b"0123456789abcde\n");
        assert_eq!(tape.take_new(true), NewOutput { text: "6789abcde\n".into(), missed: Some("6 bytes".into()) });
        assert_eq!((tape.total(), tape.tail(3)), (24, b"de\n".to_vec()));
    }

    #[test]
    fn incomplete_lines_are_held_back() {
        let mut tape = RingBuffer::new(100);
        tape.push(b"done\nAPI_KEY=ab");
        assert_eq!(tape.take_new(true).text, "done\n");
        tape.push(b"cd\n");
        assert_eq!(tape.take_new(true).text, "API_KEY=abcd\n");
        tape.push(b"no end");
        assert_eq!((tape.take_new(true).text.as_str(), tape.take_new(false).text.as_str()), ("", "no end"));
    }

    #[test]
    fn large_output_stays_within_the_buffer_limit() {
        let mut tape = RingBuffer::new(1000);
        for _ in 0..1000 {
            tape.push(&[b'x'; 4096]);
        }
        assert_eq!((tape.kept.len(), tape.total()), (1000, 4_096_000));
    }
}
