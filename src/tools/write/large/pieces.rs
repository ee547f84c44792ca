//! A large file in which ranges have been replaced, represented as a sequence of file ranges and new texts.

use memchr::memmem::Finder;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Number of bytes to search at a time.
const CHUNK_BYTES: usize = 1 << 20;

pub(super) struct SplicedFile {
    file: File,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A range of the original file.
    Old(Range<u64>),
    New(Vec<u8>),
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Self::Old(range) => range.end - range.start,
            Self::New(bytes) => bytes.len() as u64,
        }
    }

    fn split(self, at: u64) -> (Self, Self) {
        match self {
            Self::Old(range) => (Self::Old(range.start..range.start + at), Self::Old(range.start + at..range.end)),
            Self::New(mut bytes) => {
                let rest = bytes.split_off(usize::try_from(at).unwrap_or(bytes.len()).min(bytes.len()));
                (Self::New(bytes), Self::New(rest))
            }
        }
    }
}

impl SplicedFile {
    pub(super) fn new(file: File, bytes: u64) -> Self {
        Self { file, parts: vec![Part::Old(0..bytes)] }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(Part::len).sum()
    }

    /// Replaces these ranges, which must be in ascending order.
    pub(super) fn replace(&mut self, ranges: &[(Range<u64>, Vec<u8>)]) {
        let mut rest = std::mem::take(&mut self.parts).into_iter();
        let mut current = rest.next();
        let mut at = 0;
        // Moves parts up to `end` into the result, or drops them.
        let mut pass = |end: u64, mut keep: Option<&mut Vec<Part>>| {
            while at < end
                && let Some(part) = current.take()
            {
                let length = part.len();
                let (taken, left) = if at + length <= end { (part, None) } else { cut(part, end - at) };
                at += taken.len();
                current = left.or_else(|| rest.next());
                if let Some(keep) = keep.as_deref_mut().filter(|_| taken.len() > 0) {
                    keep.push(taken);
                }
            }
        };
        let mut parts = Vec::new();
        for (range, new) in ranges {
            pass(range.start, Some(&mut parts));
            pass(range.end, None);
            parts.push(Part::New(new.clone()));
        }
        pass(u64::MAX, Some(&mut parts));
        self.parts = parts;
    }

    /// Finds the matches of all needles, in order. Stops once there are more than `most` matches.
    pub(super) fn find(&mut self, needles: &[Vec<u8>], most: usize) -> io::Result<Vec<Range<u64>>> {
        let finders: Vec<_> = needles.iter().map(|needle| Finder::new(needle.as_slice())).collect();
        let longest = needles.iter().map(Vec::len).max().unwrap_or(0);
        let mut found = Vec::new();
        let mut window: Vec<u8> = Vec::with_capacity(CHUNK_BYTES + longest);
        let mut start = 0;
        let mut from = 0;
        loop {
            let had = window.len();
            window.resize(had + CHUNK_BYTES, 0);
            let count = self.read_at(from, &mut window[had..])?;
            window.truncate(had + count);
            from += count as u64;
            for finder in &finders {
                let length = finder.needle().len();
                // Matches that end before the new chunk were found earlier.
                let mut at = had.saturating_sub(length - 1);
                while let Some(more) = window.get(at..).and_then(|rest| finder.find(rest)) {
                    let begin = start + (at + more) as u64;
                    found.push(begin..begin + length as u64);
                    at += more + 1;
                    if found.len() > most {
                        found.sort_by_key(|range| range.start);
                        return Ok(found);
                    }
                }
            }
            if count == 0 {
                found.sort_by_key(|range| range.start);
                return Ok(found);
            }
            let keep = window.len().min(longest.saturating_sub(1));
            start += (window.len() - keep) as u64;
            window.drain(..window.len() - keep);
        }
    }

    /// Counts the line endings before each of these positions, which must be in ascending order.
    pub(super) fn lines_before(&mut self, places: &[u64]) -> io::Result<Vec<u64>> {
        let mut buffer = vec![0; CHUNK_BYTES];
        let (mut at, mut lines) = (0, 0);
        let mut counts = Vec::with_capacity(places.len());
        for place in places {
            while at < *place {
                let room = usize::try_from(place - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
                let count = self.read_at(at, &mut buffer[..room])?;
                if count == 0 {
                    break;
                }
                lines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
                at += count as u64;
            }
            counts.push(lines);
        }
        Ok(counts)
    }

    pub(super) fn read(&mut self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0)];
        let count = self.read_at(range.start, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Fills the buffer, unless the end of the last part is reached. Returns the number of bytes read.
    fn read_at(&mut self, from: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut filled, mut at) = (0, 0);
        for part in &self.parts {
            let (begin, end) = (at, at + part.len());
            at = end;
            let place = from + filled as u64;
            if end <= place {
                continue;
            }
            if filled == buffer.len() {
                break;
            }
            let skip = place - begin;
            let room = usize::try_from(end - place).unwrap_or(usize::MAX).min(buffer.len() - filled);
            match part {
                Part::New(bytes) => {
                    let skip = usize::try_from(skip).unwrap_or(bytes.len());
                    buffer[filled..filled + room].copy_from_slice(&bytes[skip..skip + room]);
                }
                Part::Old(range) => {
                    self.file.seek(SeekFrom::Start(range.start + skip))?;
                    self.file.read_exact(&mut buffer[filled..filled + room])?;
                }
            }
            filled += room;
        }
        Ok(filled)
    }
}

fn cut(part: Part, at: u64) -> (Part, Option<Part>) {
    let (taken, left) = part.split(at);
    (taken, Some(left))
}
