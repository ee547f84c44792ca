//! Access to the changed lines of a hunk, and their replacement.

use crate::protocol::{DiffHunk, DiffLine, DiffSide};
use std::ops::Range;

/// Returns the index range from the first to the last changed line of the hunk, including context lines between them.
fn changed_range(hunk: &DiffHunk) -> Range<usize> {
    let is_change = |line: &DiffLine| line.side != DiffSide::Context;
    let first = hunk.lines.iter().position(is_change).unwrap_or(0);
    first..hunk.lines.iter().rposition(is_change).map_or(first, |last| last + 1)
}

/// Returns the text of one side of a hunk's changed lines, omitting lines of side `without`. The last line has a line
/// ending only if it has one in the file.
fn side(hunk: &DiffHunk, without: DiffSide) -> String {
    let mut text = String::new();
    for line in hunk.lines[changed_range(hunk)].iter().filter(|line| line.side != without) {
        text.push_str(&line.text);
        text.push_str(if line.has_newline { "\n" } else { "" });
    }
    text
}

pub(crate) fn old_text(hunk: &DiffHunk) -> String {
    side(hunk, DiffSide::Added)
}

pub(crate) fn new_text(hunk: &DiffHunk) -> String {
    side(hunk, DiffSide::Removed)
}

/// Returns the hunk with the new side of its changed lines replaced by `text`.
pub(crate) fn with_new_text(hunk: &DiffHunk, text: &str) -> DiffHunk {
    let changed = changed_range(hunk);
    let (above, below) = (&hunk.lines[..changed.start], &hunk.lines[changed.end..]);
    let old_text = old_text(hunk);
    let (old, new) = (lines(&old_text, DiffSide::Removed), lines(text, DiffSide::Added));
    let lines: Vec<DiffLine> = above.iter().cloned().chain(old).chain(new).chain(below.iter().cloned()).collect();
    let count = |without: DiffSide| lines.iter().filter(|line| line.side != without).count();
    let (old_count, new_count) = (count(DiffSide::Added), count(DiffSide::Removed));
    DiffHunk {
        old_start: start(hunk.old_start, hunk.old_count, old_count),
        new_start: start(hunk.new_start, hunk.new_count, new_count),
        old_count,
        new_count,
        lines,
        ..hunk.clone()
    }
}

/// Returns the starting line number for a hunk side whose line count has changed from `before` to `now`. By convention,
/// a side without lines starts at the preceding line.
fn start(start: usize, before: usize, now: usize) -> usize {
    match (before, now) {
        (0, 0) => start,
        (0, _) => start + 1,
        (_, 0) => start.saturating_sub(1),
        _ => start,
    }
}

fn lines(text: &str, side: DiffSide) -> impl Iterator<Item = DiffLine> {
    text.split_inclusive('\n').map(move |line| {
        let (text, has_newline) = line.strip_suffix('\n').map_or((line, false), |text| (text, true));
        DiffLine { side, text: text.to_owned(), has_newline }
    })
}
