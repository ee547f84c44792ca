//! Fingerprints of long pastes in one of the user's files, so that a restored draft and a prompt from the history show
//! them as chips after a restart. The file contains no text.

use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of fingerprints. Older ones are removed from the file once it has twice as many.
const MARKS: usize = 128;
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
    /// Hash that finds the places where the paste may begin.
    rolling: u64,
    /// Digest that confirms such a place, as hexadecimal digits.
    digest: String,
}

impl Mark {
    fn new(text: &str) -> Self {
        let rolling = text.bytes().fold(0, |hash, byte| push(hash, byte));
        Self { bytes: text.len(), rolling, digest: digest(text) }
    }

    /// Returns the first range of a text with this fingerprint.
    fn find(&self, text: &str) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        if self.bytes == 0 || bytes.len() < self.bytes {
            return None;
        }
        let highest = (1..self.bytes).fold(1_u64, |power, _| power.wrapping_mul(FACTOR));
        let mut hash = bytes[..self.bytes].iter().fold(0, |hash, byte| push(hash, *byte));
        let mut start = 0;
        loop {
            let range = start..start + self.bytes;
            if hash == self.rolling && text.get(range.clone()).is_some_and(|part| digest(part) == self.digest) {
                return Some(range);
            }
            let next = *bytes.get(range.end)?;
            hash = push(hash.wrapping_sub(highest.wrapping_mul(u64::from(bytes[start]))), next);
            start += 1;
        }
    }
}

fn push(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(FACTOR).wrapping_add(u64::from(byte))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl PasteMarks {
    /// Creates the list; its file is read when the first text is searched.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file, marks: None }
    }

    /// Records the fingerprints of a paste in all forms in which it may be saved.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The paste is then shown as text after a restart.
    pub(super) fn add(&mut self, forms: &[&str]) -> io::Result<()> {
        let mut new: Vec<Mark> = Vec::new();
        // Prompts are saved without spaces at their ends.
        for mark in forms.iter().flat_map(|form| [*form, form.trim_end(), form.trim()]).map(Mark::new) {
            if !new.contains(&mark) {
                new.push(mark);
            }
        }
        if let Some(marks) = &mut self.marks {
            marks.retain(|known| !new.contains(known));
            marks.extend(new.iter().cloned());
        }
        let Some(path) = &self.file else { return Ok(()) };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?.write_all(to_lines(&new)?.as_bytes())
    }

    /// Returns the ranges of recorded pastes in a text, in order and without overlaps.
    pub(super) fn find(&mut self, text: &str) -> Vec<Range<usize>> {
        let file = self.file.as_deref();
        let marks = self.marks.get_or_insert_with(|| file.map(load).unwrap_or_default());
        without_overlaps(marks.iter().filter_map(|mark| mark.find(text)).collect())
    }
}

/// Orders the ranges, and removes those that overlap an earlier one.
pub(super) fn without_overlaps(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    // A paste that contains another one hides it.
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
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let mut marks: Vec<Mark> = Vec::new();
    let lines: Vec<Mark> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for mark in lines.iter().rev() {
        if marks.len() < MARKS && !marks.contains(mark) {
            marks.push(mark.clone());
        }
    }
    marks.reverse();
    if lines.len() > 2 * MARKS {
        let beside = path.with_extension("new");
        // On failure the old file remains valid, but longer than necessary.
        let _ = to_lines(&marks).and_then(|lines| fs::write(&beside, lines)).and_then(|()| fs::rename(&beside, path));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_paste_is_found_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/pastes.jsonl");
        let (one, other) = ("first line é\nsecond\n".repeat(20), "x\ny\n".repeat(9));
        let mut marks = PasteMarks::new(Some(file.clone()));
        for pasted in [&one, &other] {
            marks.add(&[pasted, pasted]).unwrap();
        }
        let saved = fs::read_to_string(&file).unwrap();
        assert!(saved.lines().count() == 4 && !saved.contains("second"), "{saved}");
        let text = format!("why? 你好 {one}and {other}end");
        let found = PasteMarks::new(Some(file)).find(&text);
        let parts: Vec<&str> = found.into_iter().map(|range| &text[range]).collect();
        assert_eq!(parts, [&one, &other]);
    }

    #[test]
    fn changed_text_and_damaged_lines_are_no_recorded_paste() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pastes.jsonl");
        let pasted = "a\nb\n".repeat(10);
        PasteMarks::new(Some(file.clone())).add(&[&pasted]).unwrap();
        let line = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{{\"bytes\":0,\"rolling\":0,\"digest\":\"\"}}\n{}\n\u{fffd}\n{line}", &line[..20])).unwrap();
        let mut marks = PasteMarks::new(Some(file));
        assert!(marks.find(&pasted.replacen('b', "c", 1)).is_empty());
        assert!(marks.find("").is_empty());
        assert_eq!(marks.find(&pasted), std::slice::from_ref(&(0..pasted.len())));
    }

    #[test]
    fn the_file_is_truncated_to_the_newest_fingerprints() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pastes.jsonl");
        let mut marks = PasteMarks::new(Some(file.clone()));
        for number in 0..300 {
            marks.add(&[&format!("paste {number}")]).unwrap();
        }
        let mut marks = PasteMarks::new(Some(file.clone()));
        assert_eq!((marks.find("paste 7").len(), marks.find("see paste 299").len()), (0, 1));
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), MARKS);
    }
}
