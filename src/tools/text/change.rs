//! How lines are put in the place of others, with the line endings that are used there.

use super::outline::Part;
use crate::tools::write::replacement::{ending_near, relined};

/// Lines from 0, the last not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub first: usize,
    pub end: usize,
}

/// New lines for a span; nothing is taken away where that is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Which operation it comes from.
    pub index: usize,
    pub span: Span,
    /// With LF endings.
    pub content: String,
}

/// The text after all changes; of two that meet, their numbers.
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
        // What is put behind a last line without a line break stands on a line of its own.
        if !result.is_empty() && !result.ends_with('\n') {
            result.push_str(near);
        }
        let whole = if content.ends_with('\n') { content } else { content + "\n" };
        result.push_str(&relined(&old, &whole, near));
    }
    result.push_str(&lines[done..].concat());
    // The end of the file is as it was: with a line break or without one.
    if !ended && result.ends_with('\n') && done == lines.len() {
        result.truncate(result.len() - if result.ends_with("\r\n") { 2 } else { 1 });
    }
    Ok(result)
}

/// What an operation on a section comes to in lines. The empty lines that part it from what follows stay.
pub(super) fn in_section(lines: &[&str], part: &Part, kind: Kind, content: &str, markdown: bool) -> (Span, String) {
    let blank = |line: &&str| line.trim().is_empty();
    let (first, end) = (part.first - 1, part.last.min(lines.len()));
    let filled = end - lines[first..end].iter().rev().take_while(|line| blank(line)).count();
    let content = content.trim_end_matches('\n');
    // Parts of Markdown are parted by empty lines; in other files by what parts them now.
    let gap = |wanted: bool| if wanted && markdown { "\n" } else { "" };
    match kind {
        Kind::Delete if end == lines.len() => {
            let before = lines[..first].iter().rev().take_while(|line| blank(line)).count();
            (Span { first: first - before, end }, String::new())
        }
        Kind::Delete => (Span { first, end }, String::new()),
        Kind::Before => {
            let above = gap(first > 0 && !blank(&lines[first - 1]));
            (Span { first, end: first }, format!("{above}{content}\n{}", gap(true)))
        }
        Kind::After => {
            let below = gap(filled == end && end < lines.len());
            (Span { first: filled, end: filled }, format!("{}{content}\n{below}", gap(true)))
        }
        Kind::Replace if brings_heading(content, part, markdown) => (Span { first, end: filled }, format!("{content}\n")),
        Kind::Replace => {
            let body = part.heading.min(filled);
            let empty = lines[body..filled].iter().take_while(|line| blank(line)).count();
            let content = content.trim_start_matches('\n');
            match (content.is_empty(), body == filled) {
                (true, _) => (Span { first: body, end: filled }, String::new()),
                // A heading without a text below it gets one, apart from it.
                (false, true) => (Span { first: body, end: body }, format!("{}{content}\n", gap(true))),
                (false, false) => (Span { first: body + empty, end: filled }, format!("{content}\n")),
            }
        }
    }
}

/// Whether new content stands for the heading too, and not only for what is below it.
fn brings_heading(content: &str, part: &Part, markdown: bool) -> bool {
    let mut lines = content.trim_start_matches('\n').lines();
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default().trim());
    if !markdown {
        // A key has nothing below it; a table has a header.
        return !part.title.starts_with('[') || first.trim_start().starts_with('[');
    }
    let marks = first.bytes().take_while(|byte| *byte == b'#').count();
    let atx = (1..=6).contains(&marks) && (first.len() == marks || first[marks..].starts_with([' ', '\t']));
    let line_of = |letter: char| second.len() >= 2 && second.chars().all(|other| other == letter);
    atx || (!first.trim().is_empty() && (line_of('=') || line_of('-')))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Replace,
    Delete,
    Before,
    After,
}
