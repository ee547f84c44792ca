//! Computes file diffs for display, redacted and with file names in git's format.

pub(in crate::tools) mod cuts;
mod long_lines;

use super::document::content::Document;
use super::document::line_breaks::display_lines;
use super::settings::ToolSettings;
use crate::ports::StoredState;
use crate::protocol::{DiffHunk, DiffLine, DiffSide, FileDiff};
use cuts::HunkLines;
use long_lines::shorten;
use similar::{DiffOp, DiffTag, TextDiff};
use std::time::Duration;

/// Time limit for finding the smallest diff. Once it is exceeded, the diff is longer than necessary but still correct.
const DIFF_LIMIT: Duration = Duration::from_millis(500);

/// Number of context lines.
const AROUND: usize = 3;

/// Prepares text for a diff: converts line endings, including lone CRs, to LF, and redacts the text as a whole, so not
/// even a single line of a multi-line key is shown.
pub(in crate::tools) fn prepare_text(text: &str, settings: &ToolSettings) -> String {
    settings.redactor.hide(&display_lines(text)).into_owned()
}

/// Prepares file content for a diff. Returns `None` if it is not text.
pub(in crate::tools) fn prepare_content(content: &[u8], settings: &ToolSettings) -> Option<String> {
    Document::decode(content).ok().map(|document| prepare_text(&document.text, settings))
}

/// The lines that differ between two versions.
#[derive(Debug, Default)]
pub(in crate::tools) struct LineDiff {
    /// Hunks of the diff; empty if there are no changes.
    pub hunks: Vec<DiffHunk>,
    pub added: usize,
    pub removed: usize,
    /// Ranges of the changed lines in each hunk.
    pub cuts: Vec<HunkLines>,
}

/// Returns the lines that differ between two versions, without shortening them.
pub(crate) fn line_hunks(old: &str, new: &str) -> Vec<DiffHunk> {
    compare_lines(old, new).hunks
}

/// Compares two versions line by line. Very long lines are shortened to the part that changed.
pub(in crate::tools) fn compare(old: &str, new: &str) -> LineDiff {
    let mut diff = compare_lines(old, new);
    for hunk in &mut diff.hunks {
        shorten(&mut hunk.lines);
    }
    diff
}

fn compare_lines(old: &str, new: &str) -> LineDiff {
    if old == new {
        return LineDiff::default();
    }
    // Only LF ends a line; a lone CR is an ordinary character.
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure().newline_terminated(true).timeout(DIFF_LIMIT).diff_slices(&old_lines, &new_lines);
    let groups = diff.grouped_ops(AROUND);
    let cuts = cuts::cuts(&groups, &old_lines, &new_lines);
    let hunks: Vec<DiffHunk> = groups.iter().filter_map(|group| hunk(group, &old_lines, &new_lines)).collect();
    let count = |side| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.side == side).count();
    LineDiff { added: count(DiffSide::Added), removed: count(DiffSide::Removed), hunks, cuts }
}

/// Converts a group of adjacent changes and the context around them to a hunk.
fn hunk(group: &[DiffOp], old: &[&str], new: &[&str]) -> Option<DiffHunk> {
    let (first, last) = (group.first()?, group.last()?);
    let range = |start: usize, end: usize| (start + usize::from(end > start), end - start);
    let (old_start, old_count) = range(first.old_range().start, last.old_range().end);
    let (new_start, new_count) = range(first.new_range().start, last.new_range().end);
    let mut lines = Vec::new();
    for op in group {
        let mut add = |side, of_side: &[&str]| lines.extend(of_side.iter().map(|line| diff_line(side, line)));
        match op.tag() {
            DiffTag::Equal => add(DiffSide::Context, &old[op.old_range()]),
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                add(DiffSide::Removed, &old[op.old_range()]);
                add(DiffSide::Added, &new[op.new_range()]);
            }
        }
    }
    Some(DiffHunk { old_start, new_start, old_count, new_count, lines, ..DiffHunk::default() })
}

fn diff_line(side: DiffSide, line: &str) -> DiffLine {
    let (text, has_newline) = line.strip_suffix('\n').map_or((line, false), |text| (text, true));
    DiffLine { side, text: text.to_owned(), has_newline }
}

/// Returns the diff between the earlier and the current content of a path, including the mode if it changed, and the
/// numbers of added and removed lines.
pub(in crate::tools) fn path_diff(
    name: &str,
    (before, old): (&StoredState, &str),
    (now, new): (&StoredState, &str),
) -> (FileDiff, usize, usize) {
    let side = |stood: &StoredState, side| {
        if *stood == StoredState::Missing { "/dev/null".to_owned() } else { format!("{side}/{name}") }
    };
    let LineDiff { hunks, added, removed, .. } = compare(old, new);
    (head(name, before, now).with_hunks(&side(before, 'a'), &side(now, 'b'), hunks), added, removed)
}

/// Returns the head of a diff: the file name and, if it changed, the mode.
pub(in crate::tools) fn head(name: &str, before: &StoredState, now: &StoredState) -> FileDiff {
    let file = FileDiff::with_title(name, name);
    match (before, now) {
        (StoredState::File { mode: old, .. }, StoredState::File { mode: new, .. }) if old != new => {
            let mode = |mode: &u32| format!("{:06o}", 0o100_000 | mode);
            file.with_modes(&mode(old), &mode(new))
        }
        _ => file,
    }
}
