//! Determines the properties of a file that are needed to append text to it, without loading the file into memory.

use crate::tools::document::content::{Form, NotText};

/// Number of bytes to examine in order to tell whether a file is text.
const START_BYTES: usize = 8 * 1024;

#[derive(Debug, Default)]
pub(super) struct Tail {
    start: Vec<u8>,
    bytes: u64,
    lines: u64,
    crlf: bool,
    ended: bool,
    /// Last code unit of the previous chunk.
    last: Vec<u8>,
    /// Bytes of an incomplete character at the end of the previous chunk.
    open: Vec<u8>,
    not_utf8: bool,
}

impl Tail {
    /// Adds a chunk. All chunks except the last must have the same, even size.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        if self.start.len() < START_BYTES {
            self.start.extend(chunk.iter().take(START_BYTES - self.start.len()));
        }
        self.bytes += chunk.len() as u64;
        match Self::unit(&self.start) {
            CodeUnit::Byte => {
                self.check_utf8(chunk);
                self.endings(chunk.iter().map(|byte| u16::from(*byte)));
            }
            CodeUnit::Little => self.endings(chunk.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))),
            CodeUnit::Big => self.endings(chunk.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))),
        }
    }

    fn unit(start: &[u8]) -> CodeUnit {
        match start {
            [0xFF, 0xFE, ..] => CodeUnit::Little,
            [0xFE, 0xFF, ..] => CodeUnit::Big,
            _ => CodeUnit::Byte,
        }
    }

    fn endings(&mut self, units: impl Iterator<Item = u16>) {
        let (lf, cr) = (u16::from(b'\n'), u16::from(b'\r'));
        let mut before = self.last.first().map_or(0, |byte| u16::from(*byte));
        for unit in units {
            self.ended = unit == lf;
            if self.ended {
                self.lines += 1;
                self.crlf = before == cr;
            }
            before = unit;
        }
        self.last = vec![u8::try_from(before).unwrap_or(0)];
    }

    fn check_utf8(&mut self, chunk: &[u8]) {
        if self.not_utf8 {
            return;
        }
        // The rest of a split character has at most three bytes.
        let head = chunk.len().min(3);
        let mut joined = std::mem::take(&mut self.open);
        let mut rest = chunk;
        if !joined.is_empty() {
            let wanted = (1..=head).find(|count| {
                let whole = [joined.as_slice(), &chunk[..*count]].concat();
                std::str::from_utf8(&whole).is_ok()
            });
            match wanted {
                Some(count) => rest = &chunk[count..],
                None if chunk.len() < 3 => {
                    joined.extend(chunk);
                    self.open = joined;
                    return;
                }
                None => {
                    self.not_utf8 = true;
                    return;
                }
            }
        }
        if let Err(error) = std::str::from_utf8(rest) {
            match error.error_len() {
                None => self.open = rest[error.valid_up_to()..].to_vec(),
                Some(_) => self.not_utf8 = true,
            }
        }
    }

    pub(crate) fn form(&self) -> Result<Form, NotText> {
        let cut = match std::str::from_utf8(&self.start) {
            Err(error) if error.error_len().is_none() && self.bytes > self.start.len() as u64 => error.valid_up_to(),
            _ => self.start.len(),
        };
        match Form::detect(&self.start[..cut])? {
            Form::Utf8 if self.not_utf8 || !self.open.is_empty() => Ok(Form::Latin1),
            Form::Utf8Bom if self.not_utf8 || !self.open.is_empty() => Err(NotText::Malformed),
            form => Ok(form),
        }
    }

    /// Returns the number of lines that have an ending.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns whether the last line that has an ending ends with CRLF.
    pub(crate) fn crlf(&self) -> bool {
        self.crlf
    }

    pub(crate) fn ends_with_break(&self) -> bool {
        self.ended
    }

    /// Returns whether UTF-16 text ends with half a code unit, so that any appended text would be unreadable.
    pub(crate) fn ends_in_half_unit(&self) -> bool {
        !matches!(Self::unit(&self.start), CodeUnit::Byte) && !self.bytes.is_multiple_of(2)
    }
}

enum CodeUnit {
    Byte,
    Little,
    Big,
}
