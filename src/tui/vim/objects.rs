//! Ranges of the text objects at a position, as pure functions.

use super::motion::{Class, Lines, Place, class};
use std::ops::Range;

impl Lines {
    /// Returns the column range of the word or whitespace at a position. If `around` is set, the range includes
    /// adjacent whitespace.
    pub(crate) fn word(&self, at: Place, big: bool, around: bool) -> Range<usize> {
        let line = &self.0[at.row];
        if line.is_empty() {
            return 0..0;
        }
        let of = |column: usize| class(line[column], big);
        let here = at.column.min(line.len() - 1);
        let run = |from: usize| {
            let start = (0..from).rev().take_while(|column| of(*column) == of(from)).last().unwrap_or(from);
            let end = (from..line.len()).take_while(|column| of(*column) == of(from)).last().unwrap_or(from);
            start..end + 1
        };
        let inner = run(here);
        if !around {
            return inner;
        }
        let is_blank = |column: usize| of(column) == Class::Blank;
        match (inner.end < line.len(), inner.start > 0) {
            (true, _) if is_blank(inner.end) != is_blank(here) => inner.start..run(inner.end).end,
            (_, true) if is_blank(inner.start - 1) && !is_blank(here) => run(inner.start - 1).start..inner.end,
            (_, _) => inner,
        }
    }

    /// Returns the column range of the quoted text at or after a position. If `around` is set, the range includes the
    /// quotes and adjacent whitespace.
    pub(crate) fn quoted(&self, at: Place, quote: char, around: bool) -> Option<Range<usize>> {
        let quotes: Vec<usize> = (0..self.length(at.row)).filter(|column| self.0[at.row][*column] == quote).collect();
        let pair = quotes.chunks_exact(2).find(|pair| at.column <= pair[1])?;
        if !around {
            return Some(pair[0] + 1..pair[1]);
        }
        // The range includes the whitespace after the quotes or, if there is none, before them.
        let is_blank = |column: &usize| self.0[at.row][*column].is_whitespace();
        let behind = (pair[1] + 1..self.length(at.row)).take_while(is_blank).count();
        let before = if behind > 0 { 0 } else { (0..pair[0]).rev().take_while(is_blank).count() };
        Some(pair[0] - before..pair[1] + 1 + behind)
    }

    /// Returns the start and the exclusive end of the bracketed text around a position. If `around` is set, the
    /// brackets are included.
    pub(crate) fn bracket_range(&self, at: Place, (open, close): (char, char), around: bool) -> Option<(Place, Place)> {
        let here = self.0[at.row].get(at.column).copied();
        let start = if here == Some(open) { at } else { self.enclosing_bracket(at, (open, close))? };
        let end = self.partner(start, (open, close))?;
        let after = |place: Place| Place { column: place.column + 1, ..place };
        Some(if around { (start, after(end)) } else { (after(start), end) })
    }

    /// Returns the position of the innermost opening bracket that encloses a position, if there is one.
    fn enclosing_bracket(&self, at: Place, (open, close): (char, char)) -> Option<Place> {
        let (mut place, mut depth) = (at, 0_usize);
        loop {
            place = self.previous(place)?;
            match self.0[place.row].get(place.column) {
                Some(letter) if *letter == open && depth == 0 => return Some(place),
                Some(letter) if *letter == open => depth -= 1,
                Some(letter) if *letter == close => depth += 1,
                _ => {}
            }
        }
    }
}
