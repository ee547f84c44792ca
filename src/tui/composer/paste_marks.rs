//! Fingerprints of long pastes in one of the user's files, so that a restored draft and a prompt from the history show
//! them as chips after a restart. The file contains no text.

use crate::tui::line_file;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of lines in a paste that is inserted as plain text.
const LONG: usize = 10;
/// Maximum number of fingerprints. Older ones are removed from the file once it has twice as many.
const MARKS: usize = 128;
/// Maximum size of a recorded paste, and of a text that is searched for pastes, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum number of bytes read from the file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Number of bytes at the start of a paste by which it is found. Shorter pastes are not recorded.
const WINDOW: usize = 64;
/// Factor of the rolling hash: an odd number, so that no byte is lost.
const FACTOR: u64 = 0x0100_0000_01b3;

/// Fingerprints of earlier pastes.
#[derive(Debug, Default)]
pub(super) struct PasteMarks {
    file: Option<PathBuf>,
    /// Fingerprints, oldest first; `None` until they are needed.
    marks: Option<Vec<Mark>>,
}

/// Fingerprint of a paste.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    bytes: usize,
    /// Hash of the first bytes, which finds the places where the paste may begin.
    start: u64,
    /// Hash of all bytes, which excludes nearly all other places.
    whole: u64,
    /// Digest that confirms a place, as hexadecimal digits.
    digest: String,
}

impl Mark {
    /// Returns the fingerprint of a text, or `None` if the text is too short or too long to be recorded.
    fn new(text: &str) -> Option<Self> {
        let start = text.as_bytes().get(..WINDOW)?;
        let hash = |bytes: &[u8]| bytes.iter().fold(0, |hash, byte| push(hash, *byte));
        let is_recorded = text.len() <= MAX_TEXT_BYTES && is_long(text);
        is_recorded.then(|| Self { bytes: text.len(), start: hash(start), whole: hash(text.as_bytes()), digest: digest(text) })
    }
}

fn push(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(FACTOR).wrapping_add(u64::from(byte))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Hashes of the starts of a text, from which the hash of any part is computed.
struct PrefixHashes(Vec<u64>);

impl PrefixHashes {
    fn new(text: &str) -> Self {
        let mut hashes = Vec::with_capacity(text.len() + 1);
        hashes.push(0);
        let mut hash = 0;
        for byte in text.bytes() {
            hash = push(hash, byte);
            hashes.push(hash);
        }
        Self(hashes)
    }

    /// Returns the hash of a part. `power`: the power of the factor for the length of the part.
    fn hash_of(&self, part: &Range<usize>, power: u64) -> u64 {
        self.0[part.end].wrapping_sub(self.0[part.start].wrapping_mul(power))
    }
}

/// Returns the power of the factor for a part of this length.
fn power(bytes: usize) -> u64 {
    u32::try_from(bytes).map_or(0, |bytes| FACTOR.wrapping_pow(bytes))
}

impl PasteMarks {
    /// Creates the list; its file is read when it is first needed.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file, marks: None }
    }

    /// Records a paste. `saved`: the forms in which it may be saved. Only their fingerprints are written to the file,
    /// because those of the paste itself could reveal a secret that the saved forms do not contain.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The paste is then shown as text after a restart.
    pub(super) fn add(&mut self, pasted: &str, saved: &[&str]) -> io::Result<()> {
        let new = marks_of(saved);
        let mut all = marks_of(&[pasted]);
        all.retain(|mark| !new.contains(mark));
        all.extend(new.iter().cloned());
        let marks = self.loaded();
        marks.retain(|known| !all.contains(known));
        marks.extend(all);
        let excess = marks.len().saturating_sub(MARKS);
        marks.drain(..excess);
        match &self.file {
            Some(path) if !new.is_empty() => line_file::append(path, &to_lines(&new)?),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the ranges of recorded pastes in a text, in order and without overlaps.
    pub(super) fn find(&mut self, text: &str) -> Vec<Range<usize>> {
        if !(WINDOW..=MAX_TEXT_BYTES).contains(&text.len()) {
            return Vec::new();
        }
        // The fingerprints that were not found yet, by the hash of their first bytes.
        let mut left: HashMap<u64, Vec<(&Mark, u64)>> = HashMap::new();
        for mark in self.loaded().iter().filter(|mark| (WINDOW..=text.len()).contains(&mark.bytes)) {
            left.entry(mark.start).or_default().push((mark, power(mark.bytes)));
        }
        if left.is_empty() {
            return Vec::new();
        }
        let (hashes, window_power) = (PrefixHashes::new(text), power(WINDOW));
        let mut found = Vec::new();
        for at in 0..=text.len() - WINDOW {
            let Some(marks) = left.get_mut(&hashes.hash_of(&(at..at + WINDOW), window_power)) else { continue };
            marks.retain(|(mark, power)| {
                let range = at..at + mark.bytes;
                let is_here = range.end <= text.len()
                    && hashes.hash_of(&range, *power) == mark.whole
                    && text.get(range.clone()).is_some_and(|part| is_long(part) && digest(part) == mark.digest);
                found.extend(is_here.then_some(range));
                !is_here
            });
        }
        without_overlaps(found)
    }

    fn loaded(&mut self) -> &mut Vec<Mark> {
        let file = self.file.as_deref();
        self.marks.get_or_insert_with(|| file.map(load).unwrap_or_default())
    }
}

/// Returns the different fingerprints of these forms of a paste, also without spaces at their ends, as prompts are
/// saved.
fn marks_of(forms: &[&str]) -> Vec<Mark> {
    let mut texts: Vec<&str> = Vec::new();
    for text in forms.iter().flat_map(|form| [*form, form.trim_end(), form.trim()]) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.into_iter().filter_map(Mark::new).collect()
}

/// Returns whether a text is long enough for a chip.
pub(super) fn is_long(text: &str) -> bool {
    text.trim().lines().nth(LONG).is_some()
}

/// Orders the ranges, and removes those that overlap an earlier one.
pub(super) fn without_overlaps(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    // A paste that contains another one takes precedence.
    found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut end = 0;
    found.retain(|range| {
        let is_after = range.start >= end;
        end = if is_after { range.end } else { end };
        is_after
    });
    found
}

fn to_lines(marks: &[Mark]) -> io::Result<String> {
    let lines = marks.iter().map(|mark| Ok(serde_json::to_string(mark)? + "\n"));
    lines.collect()
}

/// Reads the newest fingerprints. Lines that are damaged are skipped, because two processes may write at the same time.
fn load(path: &Path) -> Vec<Mark> {
    let text = line_file::read_end(path, MAX_FILE_BYTES).unwrap_or_default();
    let mut marks: Vec<Mark> = Vec::new();
    let lines: Vec<Mark> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for mark in lines.iter().rev() {
        if marks.len() < MARKS && !marks.contains(mark) {
            marks.push(mark.clone());
        }
    }
    marks.reverse();
    if lines.len() > 2 * MARKS {
        // On failure the old file remains valid, but longer than necessary.
        let _ = to_lines(&marks).and_then(|lines| line_file::replace(path, &lines));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns a text of 11 lines.
    fn pasted(word: &str) -> String {
        let lines: Vec<String> = (1..=11).map(|line| format!("{word}, line {line}\n")).collect();
        lines.concat()
    }

    #[test]
    fn a_recorded_paste_is_found_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/pastes.jsonl");
        let (one, other) = ("first line é\nsecond\n".repeat(20), "x\ny\n".repeat(20));
        let mut marks = PasteMarks::new(Some(file.clone()));
        for pasted in [&one, &other] {
            marks.add(pasted, &[pasted]).unwrap();
        }
        let saved = fs::read_to_string(&file).unwrap();
        assert!(saved.lines().count() == 4 && !saved.contains("second"), "{saved}");
        let text = format!("why? 你好 {one}and {other}end");
        let found = PasteMarks::new(Some(file)).find(&text);
        let parts: Vec<&str> = found.into_iter().map(|range| &text[range]).collect();
        assert_eq!(parts, [&one, &other]);
    }

    #[test]
    fn pastes_with_the_same_first_bytes_are_all_found() {
        let (one, other) = (format!("{}1", "-\n".repeat(50)), format!("{}2", "-\n".repeat(50)));
        let mut marks = PasteMarks::default();
        for pasted in [&one, &other] {
            marks.add(pasted, &[]).unwrap();
        }
        let text = format!("{}{other} {one}", "-\n".repeat(70));
        let found = marks.find(&text);
        let parts: Vec<&str> = found.into_iter().map(|range| &text[range]).collect();
        assert_eq!(parts, [&other, &one]);
    }

    #[test]
    fn only_the_saved_forms_are_written_to_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pastes.jsonl");
        let (secret, hidden) = (pasted("secret"), pasted("[hidden]"));
        let mut marks = PasteMarks::new(Some(file.clone()));
        marks.add(&secret, &[&hidden]).unwrap();
        assert_eq!((marks.find(&secret).len(), marks.find(&hidden).len()), (1, 1));
        let mut restarted = PasteMarks::new(Some(file));
        assert_eq!((restarted.find(&secret).len(), restarted.find(&hidden).len()), (0, 1));
    }

    #[test]
    fn changed_text_and_damaged_lines_are_no_recorded_paste() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pastes.jsonl");
        let pasted = "a\nb\n".repeat(20);
        PasteMarks::new(Some(file.clone())).add(&pasted, &[&pasted]).unwrap();
        let line = fs::read_to_string(&file).unwrap();
        let empty = "{\"bytes\":0,\"start\":0,\"whole\":0,\"digest\":\"\"}";
        fs::write(&file, format!("{empty}\n{}\n\u{fffd}\n{line}", &line[..20])).unwrap();
        let mut marks = PasteMarks::new(Some(file));
        assert!(marks.find(&pasted.replacen('b', "c", 1)).is_empty());
        assert!(marks.find("").is_empty());
        assert_eq!(marks.find(&pasted), std::slice::from_ref(&(0..pasted.len())));
    }

    #[test]
    fn text_that_is_too_short_for_a_chip_or_too_long_to_search_is_not_recorded() {
        let mut marks = PasteMarks::default();
        let (short, long) = ("x".repeat(200), "a line\n".repeat(MAX_TEXT_BYTES / 7 + 1));
        for text in [&short, &long] {
            marks.add(text, &[]).unwrap();
        }
        assert_eq!(marks.loaded().len(), 0);
        // A line of another program.
        let mark = Mark { bytes: short.len(), digest: digest(&short), ..Mark::new(&"x\n".repeat(100)).unwrap() };
        let hash = |text: &str| text.bytes().fold(0, push);
        marks.loaded().push(Mark { start: hash(&short[..WINDOW]), whole: hash(&short), ..mark });
        assert!(marks.find(&short).is_empty());
    }

    #[test]
    fn the_file_is_truncated_to_the_newest_fingerprints() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pastes.jsonl");
        let mut marks = PasteMarks::new(Some(file.clone()));
        for number in 0..300 {
            let text = pasted(&format!("paste {number}"));
            marks.add(&text, &[text.trim()]).unwrap();
        }
        assert_eq!(marks.loaded().len(), MARKS);
        let mut marks = PasteMarks::new(Some(file.clone()));
        let mut count = |number| marks.find(&format!("see {}", pasted(&format!("paste {number}")))).len();
        assert_eq!((count(7), count(299)), (0, 1));
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), MARKS);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
    }
}
