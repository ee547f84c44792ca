//! Terminal output for changed cells.
//!
//! After a grapheme whose width differs between terminals, the cursor is moved explicitly, so that a wrong guess shifts
//! one cell instead of the rest of the line.

use super::sgr_state::{PLAIN, SgrState};
use crate::text::{self, WidthDoubt};
use ratatui::buffer::{Buffer, Cell};
use std::io::Write;

/// Maximum number of unchanged cells that are cheaper to rewrite than to skip.
const BRIDGE: u16 = 4;
/// Minimum number of trailing blank cells that are erased instead of written.
const ERASE: u16 = 4;

/// Appends the bytes that change a terminal from `shown` to `next`.
pub(crate) fn changes(shown: &Buffer, next: &Buffer, out: &mut Vec<u8>) {
    let mut painter = CellWriter { next, out, pen: PLAIN, at: None, written: WidthDoubt::None, word: 0 };
    let area = next.area;
    for y in area.top()..area.bottom() {
        painter.row(shown, y);
    }
    painter.pen.change(PLAIN, painter.out);
}

struct CellWriter<'a> {
    next: &'a Buffer,
    out: &'a mut Vec<u8>,
    pen: SgrState,
    /// Cursor position, if it is certain.
    at: Option<(u16, u16)>,
    /// Width uncertainty of the last grapheme.
    written: WidthDoubt,
    /// Starting column of the last written word.
    word: u16,
}

impl CellWriter<'_> {
    fn row(&mut self, shown: &Buffer, y: u16) {
        let (left, right) = (self.next.area.left(), self.next.area.right());
        let row = |buffer: &Buffer| buffer.index_of(left, y);
        let cells = usize::from(right - left);
        if shown.content[row(shown)..][..cells] == self.next.content[row(self.next)..][..cells] {
            return;
        }
        let blank_from = self.blank_from(y);
        // Up to this column, the terminal may differ from the cells.
        let mut stale = left;
        let mut x = left;
        while x < right {
            let cell = &self.next[(x, y)];
            let before = &shown[(x, y)];
            let cells = cells_of(cell).min(right - x);
            if cell == before && x >= stale {
                x += cells;
                continue;
            }
            // A narrower grapheme does not completely cover a wide one.
            stale = stale.max(x + cells_of(before));
            if x >= blank_from && right - x >= ERASE {
                return self.erase(x, y);
            }
            x += self.grapheme(x, y, cells, &mut stale);
        }
    }

    /// Writes the grapheme at a position. Returns the number of cells that it covers.
    fn grapheme(&mut self, x: u16, y: u16, cells: u16, stale: &mut u16) -> u16 {
        let cell = &self.next[(x, y)];
        let symbol = cell.symbol();
        let doubt = text::width_doubt(symbol);
        self.move_to(x, y, doubt);
        self.pen.change(SgrState::from_cell(cell), self.out);
        let after = x + cells;
        match doubt {
            WidthDoubt::None => self.write(symbol, after, y, doubt),
            WidthDoubt::Letter => {
                if self.written != WidthDoubt::Letter {
                    self.word = x;
                }
                self.write(symbol, after, y, doubt);
                // The whole word may be twice as wide.
                *stale = (*stale).max(after + (after - self.word));
            }
            WidthDoubt::Sign => {
                self.write(symbol, after, y, doubt);
                *stale = (*stale).max(self.grapheme_end(after, y));
            }
            WidthDoubt::Picture => {
                // Clear both cells first, because the emoji may fill one or both of them.
                let right = self.next.area.right();
                let is_narrow = cells == 1 && after < right && extends(cell, &self.next[(after, y)]);
                let covered = if is_narrow { 2 } else { cells };
                if covered > 1 {
                    self.out.extend(std::iter::repeat_n(b' ', covered.into()));
                    self.at = None;
                    self.move_to(x, y, doubt);
                }
                self.write(symbol, x + covered, y, doubt);
                if !is_narrow {
                    *stale = (*stale).max(self.grapheme_end(after, y));
                }
                return covered;
            }
        }
        cells
    }

    /// Returns the end of the grapheme at `x`, part of which may have been overwritten; `x` itself if that cell is
    /// blank.
    fn grapheme_end(&self, x: u16, y: u16) -> u16 {
        let next = (x < self.next.area.right()).then(|| &self.next[(x, y)]);
        x + next.filter(|cell| cell.symbol() != " ").map_or(0, cells_of)
    }

    fn write(&mut self, symbol: &str, after: u16, y: u16, doubt: WidthDoubt) {
        self.out.extend(symbol.as_bytes());
        // After the last column, the cursor position depends on the terminal.
        self.at = (after < self.next.area.right()).then_some((after, y));
        self.written = doubt;
    }

    /// Moves the cursor. Adjacent characters of a word need no move.
    fn move_to(&mut self, x: u16, y: u16, doubt: WidthDoubt) {
        let is_sure = match self.written {
            WidthDoubt::None => true,
            WidthDoubt::Letter => doubt == WidthDoubt::Letter,
            WidthDoubt::Sign | WidthDoubt::Picture => false,
        };
        match self.at {
            Some(at) if at == (x, y) && is_sure => return,
            Some((from, row)) if is_sure && row == y && from < x && x - from <= BRIDGE && self.is_plain(from..x, y) => {
                for x in from..x {
                    self.out.extend(self.next[(x, y)].symbol().as_bytes());
                }
            }
            Some((_, row)) if row == y => {
                let _ = write!(self.out, "\x1b[{}G", x + 1);
            }
            Some(_) | None => {
                let _ = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
            }
        }
        self.at = Some((x, y));
        self.written = WidthDoubt::None;
    }

    /// Returns whether these cells can be written with the current style.
    fn is_plain(&self, cells: std::ops::Range<u16>, y: u16) -> bool {
        cells.into_iter().all(|x| {
            let cell = &self.next[(x, y)];
            cell.symbol().len() == 1 && SgrState::from_cell(cell) == self.pen
        })
    }

    /// Returns the column from which the row is blank.
    fn blank_from(&self, y: u16) -> u16 {
        let (left, right) = (self.next.area.left(), self.next.area.right());
        let written = (left..right).rev().find(|x| !(is_blank(&self.next[(*x, y)])));
        written.map_or(left, |x| x + cells_of(&self.next[(x, y)]))
    }

    fn erase(&mut self, x: u16, y: u16) {
        self.move_to(x, y, WidthDoubt::None);
        if !self.pen.draws_blank() {
            self.pen.change(PLAIN, self.out);
        }
        self.out.extend(b"\x1b[K");
    }
}

fn cells_of(cell: &Cell) -> u16 {
    let symbol = cell.symbol();
    if symbol.len() == 1 { 1 } else { (text::width(symbol) as u16).max(1) }
}

/// Returns whether an overflowing grapheme may cover this blank cell.
fn extends(cell: &Cell, blank: &Cell) -> bool {
    blank.symbol() == " " && SgrState::from_cell(cell).has_ground_of(SgrState::from_cell(blank))
}

/// Returns whether a cell looks like an erased cell.
fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && SgrState::from_cell(cell).draws_blank()
}

#[cfg(test)]
mod tests;
