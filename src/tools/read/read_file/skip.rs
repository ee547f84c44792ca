//! Skips the lines that precede a range, as raw bytes. The only state needed is whether the next line is inside a
//! private key.

use crate::policy::redact::opens_or_closes;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};
use std::io::{self, Read};

/// Chunk size in bytes. It is small in tests, so that they exercise many chunk boundaries.
const CHUNK_BYTES: usize = if cfg!(test) { 16 * 1024 } else { 512 * 1024 };
/// Number of bytes to examine after dashes that may start a key.
const AHEAD_BYTES: usize = 4 * 1024;
const DASHES: &str = "-----";

/// Where reading continues.
pub(super) struct SkipPosition {
    /// Number (1-based) of the line that starts here, or the number of lines plus one if no line does.
    pub line: u64,
    /// Bytes, starting with that line, that have already been read.
    pub rest: Vec<u8>,
    /// Whether the line is inside a private key.
    pub in_key: bool,
}

/// How an encoding represents line feeds and dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Units {
    Bytes,
    Utf16 { big_endian: bool },
}

/// Skips to the line `first`. The encoding must be UTF-16 or compatible with ASCII, so that line feeds can be
/// recognized.
pub(super) fn skip_to(from: &mut impl Read, encoding: &'static Encoding, first: u64) -> io::Result<SkipPosition> {
    let units = Units::for_encoding(encoding);
    let mut keys = Keys::new(units, encoding);
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut filled, mut line, mut within) = (0, 1, false);
    loop {
        let at_end = fill(from, &mut buffer, &mut filled)?;
        let until = if at_end { filled } else { (filled - AHEAD_BYTES) & !1 };
        let region = &buffer[..until];
        let wanted = first - line;
        let passed = units.count(region);
        if passed >= wanted {
            let stop = units.position_after(region, wanted);
            keys.scan(&buffer[..filled], stop);
            return Ok(SkipPosition { line: first, rest: buffer[stop..filled].to_vec(), in_key: keys.in_key });
        }
        keys.scan(&buffer[..filled], until);
        line += passed;
        if until > 0 {
            within = !units.is_line_end(region);
        }
        if at_end {
            return Ok(SkipPosition { line: line + u64::from(within), rest: Vec::new(), in_key: false });
        }
        buffer.copy_within(until..filled, 0);
        filled -= until;
    }
}

/// Fills the buffer. Returns whether the input has ended.
fn fill(from: &mut impl Read, buffer: &mut [u8], filled: &mut usize) -> io::Result<bool> {
    while *filled < buffer.len() {
        match from.read(&mut buffer[*filled..]) {
            Ok(0) => return Ok(true),
            Ok(count) => *filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

impl Units {
    fn for_encoding(encoding: &'static Encoding) -> Self {
        match encoding {
            _ if encoding == UTF_16LE => Self::Utf16 { big_endian: false },
            _ if encoding == UTF_16BE => Self::Utf16 { big_endian: true },
            _ => Self::Bytes,
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Utf16 { .. } => 2,
        }
    }

    fn bytes(self, text: &str) -> Vec<u8> {
        match self {
            Self::Bytes => text.as_bytes().to_vec(),
            Self::Utf16 { big_endian: true } => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Utf16 { big_endian: false } => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        }
    }

    /// Returns whether the `0x0A` byte at `at` is a line feed rather than half of another character.
    fn is_feed(self, region: &[u8], at: usize) -> bool {
        match self {
            Self::Bytes => true,
            Self::Utf16 { big_endian: false } => at.is_multiple_of(2) && region.get(at + 1) == Some(&0),
            Self::Utf16 { big_endian: true } => !at.is_multiple_of(2) && region[at - 1] == 0,
        }
    }

    fn count(self, region: &[u8]) -> u64 {
        let feeds = memchr_iter(b'\n', region);
        let count = if self == Self::Bytes { feeds.count() } else { feeds.filter(|at| self.is_feed(region, *at)).count() };
        count as u64
    }

    /// Returns the position that follows this many line feeds.
    fn position_after(self, region: &[u8], feeds: u64) -> usize {
        let Some(before) = feeds.checked_sub(1) else { return 0 };
        let mut ends = memchr_iter(b'\n', region).filter(|at| self.is_feed(region, *at));
        let last = ends.nth(usize::try_from(before).unwrap_or(usize::MAX));
        last.map_or(region.len(), |at| at / self.width() * self.width() + self.width())
    }

    fn has_feed(self, region: &[u8], from: usize, to: usize) -> bool {
        memchr_iter(b'\n', &region[from..to]).any(|at| self.is_feed(region, from + at))
    }

    fn is_line_end(self, region: &[u8]) -> bool {
        region.ends_with(&self.bytes("\n"))
    }
}

/// Scans for the markers of private keys. Its effect is that of applying `opens_or_closes` to every line.
struct Keys {
    in_key: bool,
    units: Units,
    encoding: &'static Encoding,
    dashes: Finder<'static>,
    dash: Vec<u8>,
    begin: Vec<u8>,
    end: Vec<u8>,
    line: Line,
}

/// Effect of the current line on the key state.
#[derive(Clone, Copy)]
enum Line {
    Nothing,
    Ends,
    /// A key may begin on the line. Contains the result for the first marker on it.
    Begins(Option<bool>),
}

impl Keys {
    fn new(units: Units, encoding: &'static Encoding) -> Self {
        Self {
            in_key: false,
            units,
            encoding,
            dashes: Finder::new(&units.bytes(DASHES)).into_owned(),
            dash: units.bytes("-"),
            begin: units.bytes("BEGIN "),
            end: units.bytes("END "),
            line: Line::Nothing,
        }
    }

    /// Examines the markers that start before `until`, continuing where the previous call stopped.
    fn scan(&mut self, buffer: &[u8], until: usize) {
        let width = self.units.width();
        let found_in = &buffer[..buffer.len().min(until + self.dash.len() * DASHES.len() - 1)];
        let (mut told, mut from) = (0, 0);
        while let Some(found) = found_in.get(from..).and_then(|rest| self.dashes.find(rest)) {
            let at = from + found;
            if at >= until {
                break;
            }
            if at % width != 0 {
                from = at + 1;
                continue;
            }
            let dashes = buffer[at..].chunks_exact(width).take_while(|unit| *unit == self.dash).count() * width;
            from = at + dashes;
            let (begins, ends) = (buffer[from..].starts_with(&self.begin), buffer[from..].starts_with(&self.end));
            if !begins && !ends {
                continue;
            }
            if self.units.has_feed(buffer, told, at) {
                self.end_line();
            }
            told = at;
            self.line = match self.line {
                Line::Begins(Some(true)) if ends => Line::Begins(Some(false)),
                Line::Begins(said) => Line::Begins(said),
                Line::Nothing | Line::Ends if begins => Line::Begins(self.marker_effect(buffer, from - DASHES.len() * width)),
                Line::Nothing | Line::Ends => Line::Ends,
            };
        }
        if self.units.has_feed(buffer, told, until) {
            self.end_line();
        }
    }

    /// Returns the effect of the text that starts with these dashes and continues to the end of the line.
    fn marker_effect(&self, buffer: &[u8], at: usize) -> Option<bool> {
        let seen = &buffer[at..buffer.len().min(at + AHEAD_BYTES)];
        let (text, _) = self.encoding.decode_without_bom_handling(seen);
        opens_or_closes(&text[..memchr(b'\n', text.as_bytes()).unwrap_or(text.len())])
    }

    fn end_line(&mut self) {
        let said = match std::mem::replace(&mut self.line, Line::Nothing) {
            Line::Nothing => None,
            Line::Ends => Some(false),
            Line::Begins(said) => said,
        };
        self.in_key = said.unwrap_or(self.in_key);
    }
}

#[cfg(test)]
mod tests;
