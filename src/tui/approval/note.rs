//! Paragraphs of a dialog, and the verb on its approval choice.

use crate::text;
use crate::tui::theme::Token;
use std::ops::Range;

/// Warning in the body of an updated proposal, at every screen size, and in the head of an outdated one.
pub(crate) const CHANGED: &str = "⚠ changed on disk since the model read it";

/// Shorter form for a head without more room.
pub(crate) const CHANGED_SHORT: &str = "⚠ changed on disk";

pub(crate) const CHANGED_SHORTEST: &str = "⚠ changed";

/// Paragraph above a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub text: String,
    pub token: Token,
    /// Cells of a table row, shown instead of the text.
    cells: Option<[String; 4]>,
}

/// Body width in cells from which a table row has columns; below it each cell has its own lines.
const COLUMNS: usize = 70;

/// Width of the first column, in cells.
const FIRST_COLUMN: usize = 10;

impl Note {
    pub(crate) fn new(text: String, token: Token) -> Self {
        Self { text, token, cells: None }
    }

    /// Creates a table row from the name of a preset and what it runs, asks about and never does. Without a name, it is
    /// the table head.
    pub(crate) fn row(cells: [&str; 4], token: Token) -> Self {
        let [name, runs, asks, never] = cells;
        let text = format!("{name}: runs: {runs}; asks: {asks}; never: {never}");
        Self { text, token, cells: Some(cells.map(str::to_owned)) }
    }

    pub(crate) fn rows(&self, width: u16) -> Vec<String> {
        let width = usize::from(width);
        let Some([name, others @ ..]) = &self.cells else {
            return text::wrap(&self.text, width).into_iter().map(|part| self.text[part].to_owned()).collect();
        };
        if width < COLUMNS {
            if name.is_empty() {
                return Vec::new();
            }
            let cells = ["runs: ", "asks: ", "never:"].iter().zip(others).map(|(head, cell)| format!("  {head} {cell}"));
            let lines = [name.clone()].into_iter().chain(cells);
            return lines.flat_map(|line| hung(&line, width as u16)).collect();
        }
        let column = (width - FIRST_COLUMN) / 3;
        let wrapped = |cell: &String| -> Vec<String> {
            text::wrap(cell, column.saturating_sub(2).max(1)).into_iter().map(|part| cell[part].trim_end().to_owned()).collect()
        };
        let columns: Vec<Vec<String>> = others.iter().map(wrapped).collect();
        let count = columns.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let padded = |words: &str, cells: usize| format!("{words}{}", " ".repeat(cells.saturating_sub(text::width(words))));
        let row = |at: usize| {
            let first = padded(if at == 0 { name } else { "" }, FIRST_COLUMN);
            let cells = columns.iter().map(|cell| padded(cell.get(at).map_or("", String::as_str), column));
            [first].into_iter().chain(cells).collect::<String>().trim_end().to_owned()
        };
        (0..count).map(row).collect()
    }
}

/// Verb on the approval choice of a dialog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub long: &'static str,
    pub short: &'static str,
}

/// Wraps a line into rows with a hanging indent.
pub(crate) fn hung(line: &str, width: u16) -> Vec<String> {
    let (indent, ranges) = hanging(line, width);
    let rows = ranges.into_iter().enumerate();
    rows.map(|(at, part)| format!("{}{}", if at == 0 { "" } else { indent }, &line[part])).collect()
}

/// Returns the indent of continuation rows and the byte range of each row; an indented line continues a little deeper.
pub(crate) fn hanging(line: &str, width: u16) -> (&'static str, Vec<Range<usize>>) {
    const DEEPER: &str = "      ";
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let indent = if blanks == 0 { "" } else { &DEEPER[..(blanks + 2).min(DEEPER.len())] };
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
