//! Paragraphs in a dialog's body, and the verb on its approval choice.

use crate::text;
use crate::tui::theme::Token;
use std::ops::Range;

/// Warning shown in the body of an updated proposal, and in the head of an outdated one if there is room.
pub(crate) const CHANGED: &str = "⚠ changed on disk since it was proposed";

/// Shorter form of [`CHANGED`] for a narrow head.
pub(crate) const CHANGED_SHORT: &str = "⚠ changed on disk";

pub(crate) const CHANGED_SHORTEST: &str = "⚠ changed";

/// Paragraph shown above or below a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub text: String,
    pub token: Token,
    /// Whether the paragraph is truncated to one row rather than wrapped.
    is_on_one_row: bool,
    /// Ending of a one-row paragraph, which is kept when the text before it is truncated.
    ending: &'static str,
}

impl Note {
    pub(crate) fn new(text: String, token: Token) -> Self {
        Self { text, token, is_on_one_row: false, ending: "" }
    }

    /// Creates a paragraph that is truncated to one row. The user can press `?` to see the full text.
    pub(crate) fn on_one_row(text: String, token: Token) -> Self {
        Self { text, token, is_on_one_row: true, ending: "" }
    }

    /// Adds an ending that is kept when the one-row paragraph is truncated.
    pub(crate) fn with_ending(self, ending: &'static str) -> Self {
        Self { ending, ..self }
    }

    pub(crate) fn rows(&self, width: u16) -> Vec<String> {
        if self.is_on_one_row {
            let room = usize::from(width).saturating_sub(text::width(self.ending));
            return vec![format!("{}{}", text::truncate(&self.text, room), self.ending)];
        }
        self.text.split('\n').flat_map(|line| hanging_indent(line, width)).collect()
    }
}

/// Verb shown on a dialog's approval choice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub long: &'static str,
    pub short: &'static str,
}

/// Wraps a line into rows, with a hanging indent if the line is indented.
pub(crate) fn hanging_indent(line: &str, width: u16) -> Vec<String> {
    let (indent, ranges) = hanging(line, width);
    let rows = ranges.into_iter().enumerate();
    rows.map(|(at, part)| format!("{}{}", if at == 0 { "" } else { indent }, &line[part])).collect()
}

/// Returns the indent of continuation rows and the byte range of each row. An indented line continues with a slightly
/// larger indent, and a line with a label continues below its value.
pub(crate) fn hanging(line: &str, width: u16) -> (&'static str, Vec<Range<usize>>) {
    const DEEPER: &str = "      ";
    const VALUE: &str = "                ";
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let indent = match value_column(line) {
        _ if blanks > 0 => &DEEPER[..(blanks + 2).min(DEEPER.len())],
        // Beside a narrow column, a value would be hard to read.
        Some(column) if column <= VALUE.len() && column * 3 <= usize::from(width) => &VALUE[..column],
        Some(_) | None => "",
    };
    let width = usize::from(width);
    let Some(first) = text::wrap(line, width).into_iter().next() else { return (indent, Vec::new()) };
    let mut rows = vec![first.clone()];
    let rest = line[first.end..].trim_start_matches(' ');
    let start = line.len() - rest.len();
    if !rest.is_empty() {
        let room = width.saturating_sub(indent.len()).max(1);
        rows.extend(text::wrap(rest, room).into_iter().map(|part| start + part.start..start + part.end));
    }
    (indent, rows)
}

/// Returns the byte at which the value begins in a line with an ASCII label, such as `result       exit 0`.
fn value_column(line: &str) -> Option<usize> {
    let (label, rest) = line.split_once("  ")?;
    let is_label = !label.is_empty() && label.is_ascii() && label.split(' ').count() <= 2;
    is_label.then(|| line.len() - rest.trim_start_matches(' ').len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_note_is_a_row_with_its_own_indent() {
        let note = |text: &str| Note::new(text.to_owned(), Token::Text);
        let arguments = note("arguments:\n{\n  \"a\": 1\n}");
        assert_eq!(arguments.rows(40), ["arguments:", "{", "  \"a\": 1", "}"]);
        assert_eq!(note("one\n\n  two three").rows(10), ["one", "", "  two", "    three"]);
    }
}
