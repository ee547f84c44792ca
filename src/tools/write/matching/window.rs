//! Matches whole lines, ignoring the whitespace around each of them.

use crate::tools::write::find_lines::occurrences;
use std::ops::Range;

/// Returns the ranges of `text` whose normalized lines equal those of `needle`. If the needle does not end with a line
/// break, whitespace at the end of the last line is excluded.
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
            // The unterminated last line of the file.
            (true, false) => continue,
            (false, _) => start + whole.trim_end_matches([' ', '\t', '\n']).len(),
        };
        found.push(*start..end);
    }
    found
}
