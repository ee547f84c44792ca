//! Explains why hunks do not match, so that the model can correct them.

use super::apply::HunkMismatch;
use super::choose::AmbiguousHunks;
use super::find::{HunkNotFound, MatchLevel};
use super::parse::{PatchHunk, PatchSection};
use crate::policy::redact::Redactor;
use crate::protocol::ToolError;
use crate::tools::document::line_breaks::{Breaks, has_lone_cr};
use crate::tools::document::replacement::with_lf;
use crate::tools::error::invalid;
use std::fmt::Write as _;

/// Maximum number of positions to list.
const MAX_NAMED: usize = 10;
/// Maximum numbers of lines to show, and of characters to show of each line.
const MAX_SHOWN_LINES: usize = 8;
const MAX_SHOWN_CHARACTERS: usize = 200;
/// Maximum number of comparisons to make in search of the closest position.
const COMPARED: usize = 4_000_000;

/// Builds the error for hunks that do not match. The lines in `hunks` are as the model wrote them, so no secret is
/// revealed.
pub(super) fn misfit(
    misfit: &HunkMismatch,
    hunks: &[PatchHunk],
    section: &PatchSection,
    text: &str,
    redactor: &Redactor,
) -> ToolError {
    let path = &section.path;
    let at = |hunk: usize| format!("line {} of the patch", hunks[hunk].line);
    let message = match misfit {
        HunkMismatch::Lost { hunk, why: HunkNotFound::Nowhere } => {
            let closest = closest(&redactor.redact(&comparable_text(text)).text, &hunks[*hunk]);
            format!(
                "{}: the context and removed lines of this hunk are not in `{path}`; nothing was changed. {closest}",
                at(*hunk)
            )
        }
        HunkMismatch::Lost { hunk, why: HunkNotFound::OnlyBefore { header, starts } } => format!(
            "{}: the lines of this hunk occur in `{path}` only before `{header}`, at line {}; nothing was changed. Remove the \
             header, or use lines below it",
            at(*hunk),
            format_line_numbers(starts)
        ),
        HunkMismatch::Lost { hunk, why: HunkNotFound::NothingToFind } => format!(
            "{}: this hunk only adds lines to `{path}` and does not say where; nothing was changed. Add the line before or after \
             them with a leading space, or `*** End of File` after the hunk to append them",
            at(*hunk)
        ),
        HunkMismatch::Unclear(AmbiguousHunks::Several { hunk, starts }) => format!(
            "{}: the lines of this hunk occur in `{path}` {} times, at lines {}; nothing was changed. Add lines around it, or `@@` with \
             the first line of its function or class, until it is unique",
            at(*hunk),
            starts.len(),
            format_line_numbers(starts)
        ),
        HunkMismatch::Unclear(AmbiguousHunks::Overlap { first, second }) => format!(
            "{}: this hunk changes lines of `{path}` that the hunk at {} also changes; nothing was changed. Merge the two hunks",
            at(*second),
            at(*first)
        ),
    };
    invalid(message)
}

/// Returns the text with LF endings, which is the form in which it is compared with the hunks.
fn comparable_text(text: &str) -> String {
    if has_lone_cr(text) {
        return Breaks::Cr.lines(text).into_iter().flat_map(|line| [Breaks::Cr.body(line), "\n"]).collect();
    }
    with_lf(text)
}

/// Formats line numbers (1-based).
fn format_line_numbers(starts: &[usize]) -> String {
    let named: Vec<_> = starts.iter().take(MAX_NAMED).map(|start| (start + 1).to_string()).collect();
    let rest = if starts.len() > MAX_NAMED { " and more" } else { "" };
    format!("{}{rest}", named.join(", "))
}

/// Describes the position at which the largest number of lines match, and the first difference there.
fn closest(text: &str, hunk: &PatchHunk) -> String {
    let of = |line: &str| MatchLevel::Typography.normalize(line).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return "the file is empty".to_owned();
    }
    let (there, wanted): (Vec<String>, Vec<String>) = (lines.iter().map(|line| of(line)).collect(), hunk.old().map(of).collect());
    let room = COMPARED / wanted.len().max(1);
    let alike = |start: usize| {
        let pairs = wanted.iter().zip(there.iter().skip(start));
        pairs.filter(|(wanted, there)| wanted == there && !wanted.is_empty()).count()
    };
    let best = (0..there.len().min(room))
        .map(|start| (alike(start), start))
        .max_by_key(|(count, start)| (*count, std::cmp::Reverse(*start)));
    let Some((count, start)) = best.filter(|(count, _)| *count > 0) else {
        return "No similar lines found; read the file again".to_owned();
    };
    let meant = wanted.iter().filter(|line| !line.is_empty()).count();
    let mut message = format!("Closest, from line {} ({count} of {meant} lines match):", start + 1);
    let differs = wanted.iter().enumerate().position(|(index, line)| there.get(start + index) != Some(line));
    if let Some(index) = differs {
        let given = hunk.old().nth(index).unwrap_or_default();
        let stands =
            lines.get(start + index).map_or_else(|| "the end of the file".to_owned(), |line| format!("`{}`", quote_short(line)));
        let _ = write!(message, " line {} is {stands}, not `{}`;", start + index + 1, quote_short(given));
    }
    let from = start + differs.unwrap_or(0).saturating_sub(MAX_SHOWN_LINES / 2);
    let height = wanted.len().clamp(1, MAX_SHOWN_LINES);
    let _ = write!(message, " current text from line {}:", from + 1);
    for line in lines.iter().skip(from).take(height) {
        let _ = write!(message, "\n{}", quote_short(line));
    }
    message
}

fn quote_short(line: &str) -> String {
    let shown: String = line.chars().take(MAX_SHOWN_CHARACTERS).collect();
    if shown.len() < line.len() { format!("{shown}…") } else { shown }
}
