//! Terminal output that updates only the cells that changed.
//!
//! Terminals disagree about the width of some graphemes. After writing one, the cursor is moved explicitly, so that a
//! wrong width shifts only one cell instead of the rest of the line.

use super::sgr_state::{PLAIN, SgrState};
use crate::text::{self, WidthDoubt};
use ratatui::buffer::{Buffer, Cell};
use std::io::Write;

/// Maximum number of consecutive unchanged cells that are rewritten instead of moving the cursor past them.
const BRIDGE: u16 = 4;
/// Minimum number of blank cells at the end of a row that are erased instead of written.
const ERASE: u16 = 4;

/// Appends the bytes that change the content of the terminal from `shown` to `next`.
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
    /// Position of the terminal's cursor, if it is known.
    at: Option<(u16, u16)>,
    /// Reason why the width of the grapheme written last is uncertain, if it is.
    written: WidthDoubt,
    /// Column at which the word written last starts.
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
        // The terminal content before this column may differ from `shown`.
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

    /// Writes the grapheme at a position, which takes up `cells` cells. If the terminal may use more cells for it,
    /// extends `stale` accordingly.
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
                // The terminal may draw the whole word at twice the width.
                *stale = (*stale).max(after + (after - self.word));
            }
            WidthDoubt::Sign => {
                self.write(symbol, after, y, doubt);
                *stale = (*stale).max(self.grapheme_end(after, y));
            }
            WidthDoubt::Picture => {
                // Both cells are cleared first, because the emoji may fill one or both of them.
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

    /// Returns the end column of the grapheme at `x`, which may have been partly overwritten. Returns `x` itself if the
    /// cell is blank.
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

    /// Moves the cursor to a position unless it is already there. Adjacent characters of a word need no move between
    /// them.
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

    /// Returns whether these cells can be written without changing the terminal's colours and attributes.
    fn is_plain(&self, cells: std::ops::Range<u16>, y: u16) -> bool {
        cells.into_iter().all(|x| {
            let cell = &self.next[(x, y)];
            cell.symbol().len() == 1 && SgrState::from_cell(cell) == self.pen
        })
    }

    /// Returns the column after which the row is blank.
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

/// Returns whether a grapheme that overflows its cell may extend over the given blank cell.
fn extends(cell: &Cell, blank: &Cell) -> bool {
    blank.symbol() == " " && SgrState::from_cell(cell).has_ground_of(SgrState::from_cell(blank))
}

/// Returns whether a cell looks the same as an erased cell.
fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && SgrState::from_cell(cell).draws_blank()
}

#[cfg(test)]
mod tests;
