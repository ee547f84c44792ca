//! Replaces lines in a text, using the line endings that the text already has.

use super::outline::Part;
use crate::tools::document::replacement::{adapt_endings, ending_near};

/// Range of lines (0-based), whose end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineSpan {
    pub first: usize,
    pub end: usize,
}

/// New lines for a span. If the span is empty, they are inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Index of the operation that this change belongs to.
    pub index: usize,
    pub span: LineSpan,
    /// New content, with LF endings.
    pub content: String,
}

/// Applies all changes.
///
/// # Errors
///
/// If two changes overlap, returns the indexes of their operations.
pub(super) fn apply(text: &str, mut changes: Vec<Change>) -> Result<String, (usize, usize)> {
    changes.sort_by_key(|change| (change.span.first, change.span.end, change.index));
    for pair in changes.windows(2) {
        if pair[1].span.first < pair[0].span.end {
            return Err((pair[0].index.min(pair[1].index), pair[0].index.max(pair[1].index)));
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ended = text.is_empty() || text.ends_with('\n');
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for Change { span, content, .. } in changes {
        result.push_str(&lines[done..span.first].concat());
        done = span.end;
        if content.is_empty() {
            continue;
        }
        let old = lines[span.first..span.end].concat();
        let at: usize = lines[..span.first].iter().map(|line| line.len()).sum();
        let near = ending_near(text, at);
        // Text appended after a last line without a line break starts on a new line.
        if !result.is_empty() && !result.ends_with('\n') {
            result.push_str(near);
        }
        let whole = if content.ends_with('\n') { content } else { content + "\n" };
        result.push_str(&adapt_endings(&old, &whole, near));
    }
    result.push_str(&lines[done..].concat());
    // The end of the file still has its line break, or still has none.
    if !ended && result.ends_with('\n') && done == lines.len() {
        result.truncate(result.len() - if result.ends_with("\r\n") { 2 } else { 1 });
    }
    Ok(result)
}

/// Converts an operation on a section to one on lines. Empty lines that precede the next section are preserved.
pub(super) fn in_section(lines: &[&str], part: &Part, kind: SpliceKind, content: &str, markdown: bool) -> (LineSpan, String) {
    let blank = |line: &&str| line.trim().is_empty();
    let (first, end) = (part.first - 1, part.last.min(lines.len()));
    let filled = end - lines[first..end].iter().rev().take_while(|line| blank(line)).count();
    let content = content.trim_end_matches('\n');
    // Empty lines separate Markdown sections. Other formats have no required separation.
    let gap = |wanted: bool| if wanted && markdown { "\n" } else { "" };
    match kind {
        SpliceKind::Delete if end == lines.len() => {
            let before = lines[..first].iter().rev().take_while(|line| blank(line)).count();
            (LineSpan { first: first - before, end }, String::new())
        }
        SpliceKind::Delete => (LineSpan { first, end }, String::new()),
        SpliceKind::Before => {
            let above = gap(first > 0 && !blank(&lines[first - 1]));
            (LineSpan { first, end: first }, format!("{above}{content}\n{}", gap(true)))
        }
        SpliceKind::After => {
            let below = gap(filled == end && end < lines.len());
            (LineSpan { first: filled, end: filled }, format!("{}{content}\n{below}", gap(true)))
        }
        SpliceKind::Replace if replaces_heading(content, part, markdown) => {
            (LineSpan { first, end: filled }, format!("{content}\n"))
        }
        SpliceKind::Replace => {
            let body = part.heading.min(filled);
            let empty = lines[body..filled].iter().take_while(|line| blank(line)).count();
            let content = content.trim_start_matches('\n');
            match (content.is_empty(), body == filled) {
                (true, _) => (LineSpan { first: body, end: filled }, String::new()),
                // A heading without text receives text, separated by an empty line.
                (false, true) => (LineSpan { first: body, end: body }, format!("{}{content}\n", gap(true))),
                (false, false) => (LineSpan { first: body + empty, end: filled }, format!("{content}\n")),
            }
        }
    }
}

/// Returns whether the new content also replaces the heading.
fn replaces_heading(content: &str, part: &Part, markdown: bool) -> bool {
    let mut lines = content.trim_start_matches('\n').lines();
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default().trim());
    if !markdown {
        // A key is replaced as a whole. The header of a table is replaced only by another header.
        return !part.title.starts_with('[') || first.trim_start().starts_with('[');
    }
    let marks = first.bytes().take_while(|byte| *byte == b'#').count();
    let atx = (1..=6).contains(&marks) && (first.len() == marks || first[marks..].starts_with([' ', '\t']));
    let line_of = |letter: char| second.len() >= 2 && second.chars().all(|other| other == letter);
    atx || (!first.trim().is_empty() && (line_of('=') || line_of('-')))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpliceKind {
    Replace,
    Delete,
    Before,
    After,
}
