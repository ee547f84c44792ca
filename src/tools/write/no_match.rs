//! Explains why an edit does not match, with the position that was probably meant and a hint.

use crate::tools::document::replacement::{line_number, with_lf};
use std::ops::Range;

/// Maximum numbers of matches to list, and of matches to show, if a text is ambiguous.
const MAX_NAMED_PLACES: usize = 10;
const MAX_SHOWN_PLACES: usize = 5;
/// Maximum number of characters of a line to show.
const LINE_CHARACTERS: usize = 160;

/// Formats the matches, for example as `3 times, at lines 1, 3, 4`, and shows the first few of them without any
/// `hidden` text.
pub(super) fn describe_places(text: &str, places: &[Range<usize>], hidden: &[Range<usize>]) -> (String, String) {
    let numbers: Vec<usize> = places.iter().take(MAX_NAMED_PLACES).map(|place| line_number(text, place.start)).collect();
    let named = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let rest = if places.len() > numbers.len() { " and more" } else { "" };
    let shown: Vec<String> = places
        .iter()
        .zip(&numbers)
        .take(MAX_SHOWN_PLACES)
        .map(|(place, number)| format!("line {number}:\n{}", lines_around(text, place, hidden)))
        .collect();
    (format!("{} times, at lines {named}{rest}", places.len()), shown.join("\n"))
}

/// Returns the line of a match together with the lines immediately before and after it.
pub(super) fn lines_around(text: &str, place: &Range<usize>, hidden: &[Range<usize>]) -> String {
    let start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let from = text[..start.saturating_sub(1)].rfind('\n').map_or(0, |at| at + 1);
    let mut at = from;
    let mut lines = Vec::new();
    for line in text[from..].split_inclusive('\n').take(if from < start { 3 } else { 2 }) {
        let (begin, end) = (at, at + line.len());
        at = end;
        // For a long line, show the text around the match.
        let near = if (begin..end).contains(&place.start) { place.start - begin } else { 0 };
        let secret = hidden.iter().any(|range| range.start < end && begin < range.end);
        lines.push(if secret {
            "(a line with a redacted secret)".to_owned()
        } else {
            shortened(line.trim_end_matches('\n'), near)
        });
    }
    lines.join("\n")
}

/// Shortens a line to the part around a position.
fn shortened(line: &str, near: usize) -> String {
    let letters = line.chars().count();
    if letters <= LINE_CHARACTERS {
        return line.to_owned();
    }
    let before = line[..near].chars().count();
    let from = before.saturating_sub(LINE_CHARACTERS / 4).min(letters - LINE_CHARACTERS);
    let part: String = line.chars().skip(from).take(LINE_CHARACTERS).collect();
    let (head, tail) = (if from > 0 { "…" } else { "" }, if from + LINE_CHARACTERS < letters { "…" } else { "" });
    format!("{head}{part}{tail}")
}

/// Describes the most similar passage.
pub(super) fn closest(text: &str, old: &str) -> String {
    /// Maximum number of lines to show.
    const MAX_SHOWN: usize = 8;
    if text.is_empty() {
        return "The file is empty; fill it with an empty `oldText`".to_owned();
    }
    let (plain, wanted) = (with_lf(text), with_lf(old));
    let Some(first) = wanted.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "`oldText` is only whitespace; include a line of text".to_owned();
    };
    let (index, why) = match plain.lines().position(|line| line.trim() == first) {
        Some(index) => (index, "the whitespace or a later line differs"),
        None => match most_similar_line(&plain, first) {
            Some(index) => (index, "the first line differs"),
            None => return "No similar text found; read the file again".to_owned(),
        },
    };
    let height = wanted.lines().count().clamp(1, MAX_SHOWN);
    let there: Vec<_> = plain.lines().skip(index).take(height).map(|line| shortened(line, 0)).collect();
    format!("Closest, from line {} ({why}):\n{}", index + 1, there.join("\n"))
}

/// Returns the index of the most similar line, or `None` if no line is similar.
fn most_similar_line(text: &str, wanted: &str) -> Option<usize> {
    /// Maximum number of lines to compare, maximum number of characters to compare in each, and minimum similarity.
    const COMPARED_LINES: usize = 5_000;
    const COMPARED_CHARACTERS: usize = 120;
    const ALIKE: f64 = 0.6;
    let short = |line: &str| line.trim().chars().take(COMPARED_CHARACTERS).collect::<String>();
    let wanted = short(wanted);
    text.lines()
        .take(COMPARED_LINES)
        .enumerate()
        .map(|(index, line)| (strsim::normalized_levenshtein(&short(line), &wanted), index))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(&left.1)))
        .map(|(_, index)| index)
}
