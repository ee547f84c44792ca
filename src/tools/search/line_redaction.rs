//! Redacts lines in search results. Matches in redacted text are ignored, because searches could otherwise reveal a
//! secret character by character.

use crate::policy::redact::Redactor;
use crate::tools::document::charset::{DecodingReader, exposes_secret};
use encoding_rs::Encoding;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::Path;

/// Replaces a line of a private key, which by itself does not look secret.
const HIDDEN_KEY_LINE: &str = "[a line of a private key]";
/// Replaces a line that contains a secret which is visible in its bytes but not in its characters.
const HIDDEN_BY_ENCODING: &str = "[a line with a redacted secret]";
/// Text with which every key block starts.
const BEGIN: &[u8] = b"-----BEGIN ";
/// Line length in bytes below which no part of a key is revealed.
const MIN_KEY_BYTES: usize = 4;
/// Maximum length in bytes of a line within or around a key.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// Line ranges of the private keys in a file, determined on demand.
#[derive(Debug, Default)]
pub(super) struct PrivateKeyLines {
    lines: Option<Vec<RangeInclusive<u64>>>,
    /// The file's encoding, if it is not UTF-8.
    encoding: Option<&'static Encoding>,
}

impl PrivateKeyLines {
    /// Finds the keys in a text that is available as a whole.
    pub(super) fn find(text: &[u8]) -> Self {
        if memchr::memmem::find(text, BEGIN).is_none() {
            return Self { lines: Some(Vec::new()), encoding: None };
        }
        Self { lines: Some(Redactor::lines_of_keys(&String::from_utf8_lossy(text))), encoding: None }
    }

    /// Creates the ranges for a file that is read in chunks. They are determined once a line could belong to a key.
    pub(super) fn deferred(encoding: Option<&'static Encoding>) -> Self {
        Self { lines: None, encoding }
    }

    /// Returns whether the file contains keys, or has not been searched for them yet.
    pub(super) fn has_keys(&self) -> bool {
        self.lines.as_ref().is_none_or(|lines| !lines.is_empty())
    }

    /// Returns whether the file is known to contain keys, whose lines can be recognized only by their numbers.
    pub(super) fn wait_for_numbers(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| !lines.is_empty())
    }

    fn has(&mut self, path: &Path, number: u64, line: &str) -> bool {
        let found = match &mut self.lines {
            Some(found) => found,
            None if !may_belong_to_key(line) => return false,
            none => none.insert(find_keys(path, self.encoding)),
        };
        found.iter().any(|lines| lines.contains(&number))
    }
}

fn may_belong_to_key(line: &str) -> bool {
    let line = line.trim();
    line.len() >= MIN_KEY_BYTES && !line.contains(char::is_whitespace)
}

fn find_keys(path: &Path, encoding: Option<&'static Encoding>) -> Vec<RangeInclusive<u64>> {
    let Ok(file) = crate::sys::path::open_file(path) else { return Vec::new() };
    match encoding {
        None => key_lines(file),
        Some(encoding) => key_lines(DecodingReader::new(file, encoding)),
    }
}

fn key_lines(text: impl Read) -> Vec<RangeInclusive<u64>> {
    let mut reader = BufReader::with_capacity(1 << 16, text);
    // Only lines that open or close a key matter; all other lines can be left empty.
    let (mut text, mut line) = (String::new(), Vec::new());
    loop {
        line.clear();
        let read = Read::take(&mut reader, MAX_LINE_BYTES).read_until(b'\n', &mut line).unwrap_or(0);
        if read == 0 {
            return Redactor::lines_of_keys(&text);
        }
        if memchr::memmem::find(&line, b"-----").is_some() {
            text.push_str(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        }
        if line.ends_with(b"\n") {
            text.push('\n');
        }
    }
}

/// Determines what is shown of a file's lines.
pub(super) struct LineFilter<'a> {
    pub redactor: &'a Redactor,
    pub expression: &'a RegexMatcher,
    /// The file's encoding, if it is not UTF-8.
    pub encoding: Option<&'static Encoding>,
}

impl LineFilter<'_> {
    /// Returns the lines for display, without the final line break. `first` is the number of the first line.
    pub(super) fn redact_lines<'t>(
        &self,
        lines: &'t [u8],
        first: u64,
        path: &Path,
        keys: &mut PrivateKeyLines,
    ) -> RedactedText<'t> {
        let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
        let lines = lines.strip_suffix(b"\r").unwrap_or(lines);
        let text = String::from_utf8_lossy(lines);
        if self.encoding.is_some_and(|encoding| exposes_secret(&text, encoding, self.redactor)) {
            return RedactedText { text: Cow::Borrowed(HIDDEN_BY_ENCODING), changed: true };
        }
        let (text, keyed) = without_keys(text, first, path, keys);
        match self.redactor.hide(&text) {
            Cow::Borrowed(_) => RedactedText { text, changed: keyed },
            Cow::Owned(hidden) => RedactedText { text: Cow::Owned(hidden), changed: true },
        }
    }

    /// Returns whether the lines still match in the form in which they are shown.
    pub(super) fn still_matches(&self, shown: &RedactedText<'_>) -> bool {
        !shown.changed || self.expression.is_match(shown.text.as_bytes()).unwrap_or(false)
    }
}

pub(super) struct RedactedText<'a> {
    pub text: Cow<'a, str>,
    /// Whether any text was redacted.
    pub changed: bool,
}

fn without_keys<'a>(text: Cow<'a, str>, first: u64, path: &Path, keys: &mut PrivateKeyLines) -> (Cow<'a, str>, bool) {
    if !keys.has_keys() {
        return (text, false);
    }
    let numbered = || (first..).zip(text.split('\n'));
    if !numbered().any(|(number, line)| keys.has(path, number, line)) {
        return (text, false);
    }
    let lines: Vec<&str> =
        numbered().map(|(number, line)| if keys.has(path, number, line) { HIDDEN_KEY_LINE } else { line }).collect();
    (Cow::Owned(lines.join("\n")), true)
}
