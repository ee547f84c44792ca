//! Searches files that are not UTF-8 by decoding them in the same way as `ReadFile`.

use crate::sys::locale;
use crate::sys::path::open_file;
use crate::sys::process::whole_start;
use crate::tools::document::charset;
use crate::tools::document::charset::{DecodingReader, HELD_BYTES, ReadAs};
use crate::tools::settings::ToolSettings;
use encoding_rs::{Encoding, UTF_8};
use std::io::{self, Read};
use std::path::Path;

/// How the encoding of a file is detected.
pub(in crate::tools) struct Encodings {
    /// The locale's encoding.
    locale: Option<String>,
    /// Size in bytes up to which `ReadFile` uses the whole file to detect its encoding.
    pub most_held: u64,
}

impl Encodings {
    pub(super) fn new(settings: &ToolSettings) -> Self {
        Self { locale: locale::charset(), most_held: settings.max_file_size_bytes.min(HELD_BYTES) }
    }

    /// Returns a file's encoding. Returns `None` if it is UTF-8, or if the file is not text and is therefore searched
    /// as bytes.
    pub(super) fn detect(&self, bytes: &[u8]) -> Option<&'static Encoding> {
        charset::detect(bytes, self.locale.as_deref(), ReadAs::Detected).ok().filter(|encoding| *encoding != UTF_8)
    }

    /// Returns the encoding of a large file, judging by its first bytes.
    pub(super) fn detect_from_start(&self, start: &[u8]) -> Option<&'static Encoding> {
        self.detect(whole_start(start))
    }

    /// Reads a file and returns its encoding.
    pub(super) fn detect_file(&self, path: &Path) -> io::Result<Option<&'static Encoding>> {
        let mut bytes = Vec::new();
        open_file(path)?.take(self.most_held).read_to_end(&mut bytes)?;
        Ok(self.detect(&bytes))
    }
}

pub(super) fn is_utf_16(start: &[u8]) -> bool {
    start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF")
}

/// Opens a file and decodes it to UTF-8.
pub(super) fn open_as_utf8(path: &Path, encoding: Option<&'static Encoding>) -> io::Result<Box<dyn Read>> {
    let file = open_file(path)?;
    Ok(match encoding {
        Some(encoding) => Box::new(DecodingReader::new(file, encoding)),
        None => Box::new(file),
    })
}

/// Error that stops reading at the first byte that is not UTF-8.
#[derive(Debug, thiserror::Error)]
#[error("not UTF-8")]
struct NotUtf8;

pub(super) fn is_not_utf8(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotUtf8>())
}

/// Reader that passes text through up to the first byte that is not UTF-8.
pub(super) struct OnlyUtf8<R> {
    inner: R,
    /// Bytes of an incomplete character at the end of the last chunk.
    begun: Vec<u8>,
}

impl<R> OnlyUtf8<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, begun: Vec::new() }
    }

    fn continues_with(&mut self, mut bytes: &[u8]) -> bool {
        while !self.begun.is_empty() {
            let Some((next, rest)) = bytes.split_first() else { return true };
            self.begun.push(*next);
            bytes = rest;
            match std::str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return false,
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) if error.error_len().is_none() => {
                self.begun.extend_from_slice(&bytes[error.valid_up_to()..]);
                true
            }
            Err(_) => false,
        }
    }
}

impl<R: Read> Read for OnlyUtf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let whole = if count == 0 { buffer.is_empty() || self.begun.is_empty() } else { self.continues_with(&buffer[..count]) };
        if whole { Ok(count) } else { Err(io::Error::new(io::ErrorKind::InvalidData, NotUtf8)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reader that returns only a few bytes at a time.
    struct Small<'a>(&'a [u8], usize);

    impl Read for Small<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    proptest! {
        #[test]
        fn only_valid_utf_8_is_passed_through(
            parts in prop::collection::vec(prop_oneof![
                3 => "[aé€😀]{0,4}".prop_map(String::into_bytes),
                1 => prop::collection::vec(any::<u8>(), 0..3),
            ], 0..6),
            at_once in 1..5_usize,
        ) {
            let bytes = parts.concat();
            let mut passed = Vec::new();
            let read = OnlyUtf8::new(Small(&bytes, at_once)).read_to_end(&mut passed);
            prop_assert_eq!(read.is_ok(), std::str::from_utf8(&bytes).is_ok());
            match read {
                Ok(_) => prop_assert_eq!(passed, bytes),
                Err(error) => prop_assert!(is_not_utf8(&error)),
            }
        }
    }
}
