//! Replaces passages while preserving all line endings except those that must change.

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit for comparing lines. Once it is exceeded, all remaining lines are treated as new.
const COMPARISON_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Occurrences {
    TheOnly,
    All,
}

/// Replaces ranges of `text`, which must be in ascending order. The ranges and the new texts assume LF endings. The
/// rest of `text` keeps its own endings, which the new texts adopt.
pub(in crate::tools) fn replace_ranges<'a>(text: &str, places: impl Iterator<Item = (Range<usize>, &'a str)>) -> String {
    let shortened = LfOffsets::from_text(text);
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (place, new) in places {
        let (start, end) = (shortened.original(place.start), shortened.original(place.end));
        result.push_str(&text[done..start]);
        // Determined only if needed: with many matches on one long line, each search is slow.
        let near = if shortened.0.is_empty() || !new.contains('\n') { "\n" } else { ending_near(text, start) };
        result.push_str(&adapt_endings(&text[start..end], new, near));
        done = end;
    }
    result.push_str(&text[done..]);
    result
}

/// Replaces a whole text. `new` receives the line endings of `old`, unless it contains CRLF itself.
pub(in crate::tools) fn replace_all(old: &str, new: &str) -> String {
    // Unchanged text keeps all its line endings.
    if with_lf(old) == new {
        return old.to_owned();
    }
    let crlf = old.matches("\r\n").count();
    if crlf == 0 || new.contains("\r\n") {
        return new.to_owned();
    }
    if crlf == old.matches('\n').count() {
        return new.replace('\n', "\r\n");
    }
    adapt_endings(old, new, ending_near(old, 0))
}

/// Returns the line number of a position (1-based).
pub(in crate::tools) fn line_number(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns the name of the line endings that a text uses, or `None` if it has none.
pub(in crate::tools) fn endings(text: &str) -> Option<&'static str> {
    let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    match (all, crlf) {
        (0, _) => text.contains('\r').then_some("CR"),
        (_, 0) => Some("LF"),
        (all, crlf) if all == crlf => Some("CRLF"),
        _ => Some("mixed"),
    }
}

pub(in crate::tools) fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Maps positions in a text with LF endings to the original text, by means of the positions at which LF replaces CRLF.
struct LfOffsets(Vec<usize>);

impl LfOffsets {
    fn from_text(text: &str) -> Self {
        Self(text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect())
    }

    /// Maps a position to the original text. Never returns a position between a CR and its LF.
    fn original(&self, at: usize) -> usize {
        at + self.0.partition_point(|lf| *lf < at)
    }
}

/// Returns the ending of the last line that ends before `at` or, if there is none, of the first line that ends after
/// it.
pub(in crate::tools) fn ending_near(text: &str, at: usize) -> &'static str {
    let before = text[..at].rfind('\n').map(|lf| text[..lf].ends_with('\r'));
    let after = || text[at..].find('\n').map(|lf| text[..at + lf].ends_with('\r'));
    if before.or_else(after).unwrap_or(false) { "\r\n" } else { "\n" }
}

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord, Clone, Copy)]
struct Line<'a> {
    body: &'a str,
    ended: bool,
}

fn lines(text: &str) -> (Vec<Line<'_>>, Vec<&str>) {
    let whole: Vec<&str> = text.split_inclusive('\n').collect();
    let line = |line: &&'_ str| -> (usize, bool) {
        let body = line.strip_suffix('\n').map(|body| body.strip_suffix('\r').unwrap_or(body));
        (body.map_or(line.len(), str::len), body.is_some())
    };
    let compared = whole
        .iter()
        .map(|text| {
            let (length, ended) = line(text);
            Line { body: &text[..length], ended }
        })
        .collect();
    (compared, whole)
}

/// Converts the line endings of `new`, which replaces `old`. Lines that both have in common are unchanged. A new line
/// receives the ending of the line that it replaces or follows.
pub(in crate::tools) fn adapt_endings(old: &str, new: &str, near: &'static str) -> String {
    let ((old_lines, old_whole), (new_lines, _)) = (lines(old), lines(new));
    let mut result = String::with_capacity(new.len());
    let mut ending = near;
    let deadline = Some(Instant::now() + COMPARISON_LIMIT);
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, deadline) {
        let (old_range, new_range) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            for text in &old_whole[old_range] {
                ending = line_ending(text).unwrap_or(ending);
                result.push_str(text);
            }
            continue;
        }
        for (index, line) in new_lines[new_range].iter().enumerate() {
            let replaced = old_whole[old_range.clone()].get(index);
            ending = replaced.and_then(|text| line_ending(text)).unwrap_or(ending);
            result.push_str(line.body);
            result.push_str(if line.ended { ending } else { "" });
        }
    }
    result
}

/// Returns the ending of a line, or `None` if it does not end with LF.
pub(in crate::tools) fn line_ending(line: &str) -> Option<&'static str> {
    if line.ends_with("\r\n") {
        Some("\r\n")
    } else if line.ends_with('\n') {
        Some("\n")
    } else {
        None
    }
}
