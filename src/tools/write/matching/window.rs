//! Whole lines that are those of a text but for the white space around each.

use crate::tools::write::sequence::occurrences;
use std::ops::Range;

/// The ranges of `text` whose lines, as `folded` has them, are those of `needle`. White space at the end of the last line is not
/// part of one where the needle does not end its line.
pub(super) fn find(text: &str, folded: &str, needle: &str) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = needle.lines().map(str::trim).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let lines: Vec<&str> = folded.lines().map(str::trim).collect();
    let mut starts = Vec::with_capacity(lines.len() + 1);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        starts.push(at);
        at += line.len();
    }
    starts.push(text.len());
    let ended = needle.ends_with('\n');
    let mut found = Vec::new();
    for first in occurrences(&lines, &wanted) {
        let (Some(start), Some(end)) = (starts.get(first), starts.get(first + wanted.len())) else { continue };
        let whole = &text[*start..*end];
        let end = match (ended, whole.ends_with('\n')) {
            (true, true) => *end,
            // The last line of the file, without an end.
            (true, false) => continue,
            (false, _) => start + whole.trim_end_matches([' ', '\t', '\n']).len(),
        };
        found.push(*start..end);
    }
    found
}
