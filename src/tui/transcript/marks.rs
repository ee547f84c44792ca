//! Marks in the transcript: the focused entry, the selection and search matches.

use super::entry::DrawnRows;
use super::plain::{cells_between, join, without_bars};
use super::{FindQuery, RenderContext, Transcript};
use crate::text;
use crate::tui::metrics::GUTTER;
use crate::tui::styled_text::{Frame, Join, Row};
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use std::ops::Range;

/// Cell within an entry. `row` includes the gap above the entry, and `cell` is counted from the right of the gutter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct EntryCell {
    pub row: usize,
    pub cell: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelectionShape {
    /// Text from one cell to another, spanning rows.
    Text,
    /// Whole lines, each including all the rows into which it is wrapped.
    Lines,
    /// Rectangular block that covers the same columns in every row.
    Columns,
}

/// Selection within one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selection {
    pub entry: usize,
    pub from: EntryCell,
    pub to: EntryCell,
    pub shape: SelectionShape,
}

impl Selection {
    fn rows(&self) -> Range<usize> {
        self.from.row.min(self.to.row)..self.from.row.max(self.to.row) + 1
    }

    /// Returns the range of selected cells in a row, or `None` if no cell in the row is selected.
    fn cells(&self, row: usize) -> Option<Range<u16>> {
        let (first, last) = (self.from.min(self.to), self.from.max(self.to));
        if !self.rows().contains(&row) {
            return None;
        }
        Some(match self.shape {
            SelectionShape::Lines => 0..u16::MAX,
            SelectionShape::Columns => self.from.cell.min(self.to.cell)..self.from.cell.max(self.to.cell).saturating_add(1),
            SelectionShape::Text => {
                let start = if row == first.row { first.cell } else { 0 };
                let end = if row == last.row { last.cell.saturating_add(1) } else { u16::MAX };
                start..end
            }
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub chosen: Option<usize>,
    pub selection: Option<Selection>,
    pub query: Option<FindQuery>,
    /// Screen position of the focused entry's start in the last frame.
    cursor: Option<Position>,
}

/// Rows of an entry that were drawn, and the area in which they were drawn.
pub(super) struct VisibleEntry<'a> {
    pub entry: usize,
    pub area: Rect,
    /// Index of the first drawn row, counted from the gap above the entry.
    pub from: usize,
    pub drawn: &'a DrawnRows,
}

/// Part of a match that lies in one row: the row's index and the range of cells.
type Piece = (usize, Range<u16>);

impl Marks {
    /// Applies `shift` to every entry index after entries have moved.
    pub(super) fn shift(&mut self, mut shift: impl FnMut(&mut usize)) {
        self.chosen.iter_mut().for_each(&mut shift);
        self.selection.iter_mut().for_each(|selection| shift(&mut selection.entry));
    }

    /// Returns the screen position of the focused entry's start, if it was visible in the last frame.
    pub(crate) fn cursor(&self) -> Option<Position> {
        self.cursor
    }

    /// Clears the position of the focused entry at the start of a frame.
    pub(super) fn begin_frame(&mut self) {
        self.cursor = None;
    }

    pub(super) fn draw(&mut self, shown: VisibleEntry<'_>, buffer: &mut Buffer, look: RenderContext<'_>) {
        let VisibleEntry { entry, area, from, drawn } = shown;
        let top = area.y + drawn.skipped;
        let x = area.x + GUTTER;
        let paint = |buffer: &mut Buffer, row: usize, cells: Range<u16>, style: Style| {
            let end = cells.end.min(area.width.saturating_sub(GUTTER));
            let y = top + row as u16;
            if cells.start < end && y < area.bottom() {
                buffer.set_style(Rect { x: x + cells.start, y, width: end - cells.start, height: 1 }, style);
            }
        };
        if self.chosen == Some(entry) {
            let style = look.theme.style(Token::Accent);
            self.cursor = (top < area.bottom()).then_some(Position { x: area.x + 1, y: top });
            for y in (top..area.bottom()).take(drawn.rows.len()) {
                buffer.set_stringn(area.x + 1, y, look.glyphs.chosen, 1, style);
            }
        }
        if let Some(query) = &self.query {
            for pieces in find_matches(&drawn.rows, query) {
                for (row, cells) in pieces {
                    paint(buffer, row, cells, Style::new().add_modifier(Modifier::REVERSED));
                }
            }
        }
        if let Some(selection) = self.selection.filter(|selection| selection.entry == entry) {
            // The rows are relative to the area. Gap rows were not drawn.
            for (nth, row) in drawn.rows.iter().enumerate() {
                let Some(cells) = selection.cells(from + usize::from(drawn.skipped) + nth) else { continue };
                let end = (row.line.width() as u16).max(row.skip + 1);
                paint(buffer, nth, cells.start.max(row.skip)..cells.end.min(end), Style::new().add_modifier(Modifier::REVERSED));
            }
        }
    }
}

/// Returns all matches in the rows, including those that span wrapped rows. Each match is split into one piece per row.
fn find_matches(rows: &[Row], query: &FindQuery) -> Vec<Vec<Piece>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let end = rows[start + 1..].iter().position(|row| row.join == Join::Line).map_or(rows.len(), |at| start + 1 + at);
        let mut line = String::new();
        let mut begins = Vec::with_capacity(end - start);
        for (nth, row) in rows[start..end].iter().enumerate() {
            if nth > 0 && row.join == Join::Space {
                line.push(' ');
            }
            begins.push(line.len());
            line.push_str(&cells_between(row, row.skip, u16::MAX));
        }
        for place in query.find_matches(&line) {
            let mut pieces = Vec::new();
            for (nth, begin) in begins.iter().enumerate() {
                let until = begins.get(nth + 1).copied().unwrap_or(line.len());
                let (from, to) = (place.start.max(*begin), place.end.min(until));
                if from < to {
                    let skip = rows[start + nth].skip;
                    let cell = |at: usize| skip + text::width(&line[*begin..at]) as u16;
                    pieces.push((start + nth, cell(from)..cell(to)));
                }
            }
            found.push(pieces);
        }
        start = end;
    }
    found
}

impl Transcript {
    /// Returns the row in which the match with index `nth` of an entry starts, counted from the gap above the entry.
    pub(crate) fn match_row(&mut self, at: usize, nth: usize, query: &FindQuery, look: RenderContext<'_>) -> Option<usize> {
        let gap = self.entries.get(at)?.gap_rows();
        let rows = self.rows_of(at, look);
        let places = find_matches(&rows, query);
        let place = places.get(nth.min(places.len().checked_sub(1)?))?;
        place.first().map(|(row, _)| gap + row)
    }

    /// Returns the number of matches in the part of an entry that is not folded.
    pub(crate) fn count_shown(&mut self, at: usize, query: &FindQuery, look: RenderContext<'_>) -> usize {
        find_matches(&self.rows_of(at, look), query).len()
    }

    /// Returns all rows of an entry, excluding the gap above it.
    pub(crate) fn rows_of(&mut self, at: usize, look: RenderContext<'_>) -> Vec<Row> {
        let height = self.height_of(at, look);
        self.entries.get_mut(at).map(|entry| entry.rows(0..height - entry.gap_rows().min(height), look)).unwrap_or_default()
    }

    pub(crate) fn gap_rows(&self, at: usize) -> usize {
        self.entries.get(at).map_or(0, super::TranscriptEntry::gap_rows)
    }

    /// Returns the rows of the line that contains `row`, counted from the gap above the entry.
    pub(crate) fn line_at(&mut self, at: usize, row: usize, look: RenderContext<'_>) -> Range<usize> {
        let gap = self.gap_rows(at);
        let rows = self.rows_of(at, look);
        let row = row.saturating_sub(gap).min(rows.len().saturating_sub(1));
        let first = rows.iter().take(row + 1).rposition(|row| row.join == Join::Line).unwrap_or(0);
        let next = rows.iter().skip(row + 1).position(|row| row.join == Join::Line).map_or(rows.len(), |at| row + 1 + at);
        gap + first..gap + next
    }

    /// Returns the selected text without decoration, or `None` if nothing is selected. Wrapped rows are joined.
    pub(crate) fn selected_text(&mut self, look: RenderContext<'_>) -> Option<String> {
        let selection = self.marks.selection?;
        let gap = self.gap_rows(selection.entry);
        let rows = self.rows_of(selection.entry, look);
        let columns = selection.shape == SelectionShape::Columns;
        // Whether the row of the table was selected as a whole.
        let mut whole = false;
        let pieces = rows.iter().enumerate().filter_map(|(nth, row)| {
            let cells = selection.cells(gap + nth)?;
            let join = if columns { Join::Line } else { row.join };
            let all = !columns && cells.start <= row.skip && usize::from(cells.end) >= row.line.width();
            whole = match &row.frame {
                Frame::Bars { line, .. } => all && (whole || line.is_some()),
                Frame::Nothing | Frame::Rule => false,
            };
            let text = match &row.frame {
                Frame::Rule => return None,
                Frame::Bars { line, .. } if whole => line.clone().unwrap_or_default(),
                Frame::Bars { at, .. } => without_bars(row, at, &cells, if columns { "   " } else { "\t" }),
                Frame::Nothing => cells_between(row, cells.start, cells.end),
            };
            Some((text, join))
        });
        Some(join(pieces)).filter(|text| !text.is_empty())
    }
}
