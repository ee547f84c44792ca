//! Selections and text objects.

use super::motion::{Lines, Place};
use super::{Extent, KeyOutcome, Mode, Operator, Vim, go, here};
use tui_textarea::TextArea;

impl Vim {
    /// Returns the selection as start and exclusive end, each a row and a column.
    pub(crate) fn selection(&self, area: &TextArea<'_>) -> Option<((usize, usize), (usize, usize))> {
        let Mode::Visual { by_lines } = self.mode else { return None };
        let lines = Lines::new(area.lines());
        let (from, to) = self.ends(area, &lines);
        Some(if by_lines {
            ((from.row, 0), (to.row, lines.length(to.row)))
        } else {
            ((from.row, from.column), (to.row, lines.behind(to)))
        })
    }

    /// Returns both ends in order. Other keys may have changed the text since the selection began.
    fn ends(&self, area: &TextArea<'_>, lines: &Lines) -> (Place, Place) {
        let row = self.anchor.row.min(lines.count() - 1);
        let anchor = Place { row, column: self.anchor.column.min(lines.length(row)) };
        (anchor.min(here(area)), anchor.max(here(area)))
    }

    pub(super) fn select(&mut self, area: &mut TextArea<'_>, by_lines: bool) {
        if self.mode == (Mode::Visual { by_lines }) {
            self.mode = Mode::Normal;
            return;
        }
        if self.mode == Mode::Normal {
            self.anchor = here(area);
        }
        self.mode = Mode::Visual { by_lines };
    }

    /// Moves the cursor to the other end of the selection.
    pub(super) fn swap_ends(&mut self, area: &mut TextArea<'_>) {
        let at = here(area);
        go(area, std::mem::replace(&mut self.anchor, at));
    }

    pub(super) fn on_selection(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        let operator = match letter {
            'd' | 'x' | 'D' | 'X' => Operator::Delete,
            'c' | 's' | 'C' | 'S' => Operator::Change,
            'u' => Operator::Lower,
            'U' => Operator::Upper,
            '~' => Operator::TurnCase,
            '>' => Operator::Indent,
            '<' => Operator::Outdent,
            _ => Operator::Yank,
        };
        let extent = self.taken(area, matches!(letter, 'D' | 'X' | 'C' | 'S' | 'Y'));
        self.apply(area, operator, &extent)
    }

    /// Replaces every selected character.
    pub(super) fn fill(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        let extent = self.taken(area, false);
        self.write_over(area, &extent, &|_| letter.to_string())
    }

    /// Joins the selected rows.
    pub(super) fn join_selection(&mut self, area: &mut TextArea<'_>) -> KeyOutcome {
        let (from, to) = self.ends(area, &Lines::new(area.lines()));
        let (first, last) = (from.row, to.row);
        self.mode = Mode::Normal;
        go(area, Place { row: first, column: 0 });
        self.count = Some(last - first + 1);
        self.join(area)
    }

    /// Returns the selected range and ends the selection.
    fn taken(&mut self, area: &TextArea<'_>, whole_rows: bool) -> Extent {
        let by_lines = self.mode == Mode::Visual { by_lines: true } || whole_rows;
        let lines = Lines::new(area.lines());
        let (from, mut to) = self.ends(area, &lines);
        self.mode = Mode::Normal;
        if by_lines {
            return Extent::Rows(from.row, to.row);
        }
        to.column = lines.behind(to);
        Extent::Letters(from, to)
    }

    /// Selects a text object, or applies the pending operator to it.
    pub(super) fn object(&mut self, area: &mut TextArea<'_>, letter: char, around: bool) -> KeyOutcome {
        let at = here(area);
        let lines = Lines::new(area.lines());
        let in_row = |found: std::ops::Range<usize>| {
            Extent::Letters(Place { column: found.start, ..at }, Place { column: found.end, ..at })
        };
        let found = match letter {
            'w' | 'W' => Some(in_row(lines.word(at, letter == 'W', around))),
            '"' | '\'' | '`' => lines.quoted(at, letter, around).map(in_row),
            '(' | ')' | 'b' => lines.enclosed(at, ('(', ')'), around).map(|(from, to)| Extent::Letters(from, to)),
            '{' | '}' | 'B' => lines.enclosed(at, ('{', '}'), around).map(|(from, to)| Extent::Letters(from, to)),
            '[' | ']' => lines.enclosed(at, ('[', ']'), around).map(|(from, to)| Extent::Letters(from, to)),
            '<' | '>' => lines.enclosed(at, ('<', '>'), around).map(|(from, to)| Extent::Letters(from, to)),
            'p' => Some(lines.paragraph(at.row, around)).map(|rows| Extent::Rows(*rows.start(), *rows.end())),
            _ => None,
        };
        let Some(found) = found else { return self.done(KeyOutcome::Moved) };
        if let Some((operator, _)) = self.operator {
            return self.apply(area, operator, &found);
        }
        let to = match found {
            // An empty object cannot be selected.
            Extent::Letters(from, to) if from == to => return self.done(KeyOutcome::Moved),
            Extent::Letters(from, to) => {
                self.anchor = from;
                lines.place_before(to)
            }
            Extent::Rows(first, last) => {
                (self.anchor, self.mode) = (Place { row: first, column: 0 }, Mode::Visual { by_lines: true });
                Place { row: last, column: 0 }
            }
        };
        go(area, to);
        self.done(KeyOutcome::Moved)
    }
}
