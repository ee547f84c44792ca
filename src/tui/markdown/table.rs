//! Layout of tables: in aligned columns if they fit, or else as one record per row.

use pulldown_cmark::Alignment;
use ratatui::style::Modifier;

use crate::text;
use crate::tui::styled_text::{Frame, Join, SpanStyle, StyledText};
use crate::tui::theme::Token;

const SEPARATOR: &str = " │ ";
/// Width of the separator between columns, in cells.
pub(crate) const BAR: u16 = 3;
/// Minimum width of a column whose cells are wrapped, in cells.
const NARROWEST: usize = 8;
/// Length, in cells, above which a word may be broken across rows within a column.
const LONG_WORD: usize = 20;
/// Indentation of a record's continuation rows, in cells.
const INDENT: usize = 2;

#[derive(Default)]
pub(super) struct Table {
    pub alignments: Vec<Alignment>,
    /// Rows of the table. The first is the head.
    pub rows: Vec<Vec<StyledText>>,
}

impl Table {
    /// Lays out the table at a width of `width` cells. `with_head` is `false` if an earlier block already shows the
    /// table's head.
    pub(crate) fn paint(&self, width: usize, with_head: bool) -> Vec<StyledText> {
        match self.column_widths(width) {
            Some(widths) => self.columns(&widths, with_head),
            None => self.records(width, with_head),
        }
    }

    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = cell.width().max(*widest);
            }
        }
        let least = self.least_widths();
        let room = width.checked_sub(count.saturating_sub(1) * SEPARATOR.chars().count())?;
        let mut over = widths.iter().sum::<usize>().saturating_sub(room);
        while over > 0 {
            let may_shrink = |(column, width): &(usize, &mut usize)| **width > least[*column];
            let (_, widest) = widths.iter_mut().enumerate().filter(may_shrink).max_by_key(|(_, width)| **width)?;
            *widest -= 1;
            over -= 1;
        }
        Some(widths)
    }

    /// Returns the minimum width of each column, in cells. A narrower column would have to break words.
    fn least_widths(&self) -> Vec<usize> {
        let longest = |cell: &StyledText| cell.text.split_whitespace().map(text::width).max().unwrap_or(0);
        let of_column = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(longest).max().unwrap_or(0);
        (0..self.alignments.len()).map(|column| of_column(column).clamp(NARROWEST, LONG_WORD)).collect()
    }

    fn columns(&self, widths: &[usize], with_head: bool) -> Vec<StyledText> {
        let mut out = Vec::new();
        for (index, row) in self.rows.iter().enumerate().skip(usize::from(!with_head)) {
            let is_head = index == 0;
            self.row(row, widths, is_head, &mut out);
            if is_head {
                let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                out.push(StyledText::new(&rule.join("─┼─"), SpanStyle::from_token(Token::Faint)).with_frame(Frame::Rule));
            }
        }
        out
    }

    fn row(&self, row: &[StyledText], widths: &[usize], is_head: bool, out: &mut Vec<StyledText>) {
        let empty = StyledText::default();
        let cells: Vec<Vec<StyledText>> =
            widths.iter().enumerate().map(|(column, width)| row.get(column).unwrap_or(&empty).wrap(*width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let whole: Vec<&str> = (0..widths.len()).map(|column| row.get(column).map_or("", |cell| cell.text.trim())).collect();
        for nth in 0..height {
            let mut line = StyledText::default().joined(if nth == 0 { Join::Line } else { Join::Space });
            let mut bars = Vec::new();
            for (column, cell) in cells.iter().enumerate() {
                if column > 0 {
                    bars.push(line.text.len());
                    line.push(SEPARATOR, SpanStyle::from_token(Token::Faint));
                }
                let cell = cell.get(nth).unwrap_or(&empty).clone();
                let cell = if is_head { cell.with_modifier(Modifier::BOLD) } else { cell };
                let is_last = column + 1 == widths.len();
                self.align(&cell, column, widths[column], is_last, &mut line);
            }
            line.frame = Frame::Bars { at: bars, line: (nth == 0).then(|| whole.join("\t")) };
            out.push(line);
        }
    }

    fn align(&self, cell: &StyledText, column: usize, width: usize, is_last: bool, line: &mut StyledText) {
        let blank = width.saturating_sub(cell.width());
        let before = match self.alignments.get(column) {
            Some(Alignment::Right) => blank,
            Some(Alignment::Center) => blank / 2,
            Some(Alignment::Left | Alignment::None) | None => 0,
        };
        line.push(&" ".repeat(before), SpanStyle::from_token(Token::Text));
        line.append(cell);
        if !is_last {
            line.push(&" ".repeat(blank - before), SpanStyle::from_token(Token::Text));
        }
    }

    /// Lays out each row as a record that consists of `Head: cell` lines. Records are separated by an empty row.
    fn records(&self, width: usize, with_head: bool) -> Vec<StyledText> {
        let mut out = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return out };
        if rows.is_empty() && with_head {
            return head.iter().flat_map(|cell| cell.clone().with_modifier(Modifier::BOLD).wrap(width)).collect();
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 || !with_head {
                out.push(StyledText::default());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut line = head.get(column).cloned().unwrap_or_default().with_modifier(Modifier::BOLD);
                line.push(": ", SpanStyle::from_token(Token::Muted));
                line.append(cell);
                record_rows(&line, width, &mut out);
            }
        }
        out
    }
}

fn record_rows(line: &StyledText, width: usize, out: &mut Vec<StyledText>) {
    if width <= INDENT * 4 || line.width() <= width {
        return out.extend(line.wrap(width));
    }
    for (nth, row) in line.wrap(width - INDENT).iter().enumerate() {
        let mut indented = StyledText::default();
        if nth > 0 {
            indented.push(&" ".repeat(INDENT), SpanStyle::from_token(Token::Text));
            indented.skip = INDENT;
        }
        indented.join = row.join;
        indented.append(row);
        out.push(indented);
    }
}
