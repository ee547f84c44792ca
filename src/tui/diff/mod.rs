//! File changes laid out for review. Every line has a number, a sign and a tint, and no line is omitted.

mod entries;
mod layout;
mod shape;
mod spoken;
mod words;

pub(crate) use layout::BETWEEN_SIGN;
pub(crate) use shape::Shape;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::path::Path;

use ratatui::text::Line;

use super::theme::Theme;
use crate::protocol::{DiffSide, FileDiff};
use entries::{DiffEntry, HunkEntries};
use layout::{HunkHighlights, Layout, halves};
use shape::{Unit, units};

/// Diff of one or more files.
pub(crate) struct Diff {
    entries: Vec<DiffEntry>,
    hunks: Vec<HunkEntries>,
    /// Layout for the width that was last requested.
    layout: RefCell<Layout>,
    shape: Cell<Shape>,
    painter: RefCell<HunkHighlights>,
}

impl Diff {
    /// Creates the diff of one or more files. `path` is the path of the file, for diffs that do not contain file names.
    /// Remarks are displayed as they are.
    pub(crate) fn new(files: &[FileDiff], path: Option<&Path>) -> Self {
        let (mut entries, hunks) = entries::entries(files, path);
        words::pair(&mut entries);
        let painter = HunkHighlights::new(&hunks, entries::number_width(&entries));
        Self { entries, hunks, layout: RefCell::default(), shape: Cell::default(), painter: RefCell::new(painter) }
    }

    /// Sets the layout options. If they changed, the current layout is discarded.
    pub(crate) fn set_shape(&self, shape: Shape) {
        if self.shape.replace(shape) != shape {
            *self.layout.borrow_mut() = Layout::default();
        }
    }

    /// Sets which hunks the user has left out, as one flag per hunk.
    pub(crate) fn set_left(&self, left: Vec<bool>) {
        self.painter.borrow_mut().left = left;
    }

    /// Returns whether any line is truncated at this width.
    pub(crate) fn is_cut(&self, width: u16) -> bool {
        self.with_layout(width, |layout| layout.cut)
    }

    /// Returns the index of the first row of a hunk.
    pub(crate) fn row_of(&self, width: u16, hunk: usize) -> usize {
        let is_of = |entry: usize| matches!(&self.entries[entry], DiffEntry::Line(line) if line.hunk == hunk);
        self.with_layout(width, |layout| {
            let unit = layout.units.iter().position(|unit| unit.entries().any(is_of)).unwrap_or(0);
            unit.checked_sub(1).map_or(0, |before| layout.ends[before])
        })
    }

    /// Returns the index of the first row that shows a line of the new file, given its 1-based line number. Returns
    /// `None` if the diff does not contain the line.
    pub(crate) fn row_of_line(&self, width: u16, number: usize) -> Option<usize> {
        let is_it = |entry: usize| match &self.entries[entry] {
            DiffEntry::Line(line) => line.side != DiffSide::Removed && line.number == number,
            DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_) => false,
        };
        self.with_layout(width, |layout| {
            let unit = layout.units.iter().position(|unit| unit.entries().any(is_it))?;
            Some(unit.checked_sub(1).map_or(0, |before| layout.ends[before]))
        })
    }

    /// Returns the index of the hunk at a row or, if there is none, of the closest hunk before it.
    pub(crate) fn hunk_at(&self, width: u16, row: usize) -> Option<usize> {
        self.with_layout(width, |layout| {
            let unit = layout.ends.partition_point(|end| *end <= row);
            let upto = layout.units.iter().take(unit + 1).rev();
            upto.flat_map(|unit| unit.entries()).find_map(|entry| match &self.entries[entry] {
                DiffEntry::Line(line) => Some(line.hunk),
                DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_) => None,
            })
        })
    }

    pub(crate) fn added(&self) -> usize {
        self.count(DiffSide::Added)
    }

    pub(crate) fn removed(&self) -> usize {
        self.count(DiffSide::Removed)
    }

    pub(crate) fn hunks(&self) -> usize {
        self.hunks.len()
    }

    /// Returns the number of lines in all hunks, including context lines.
    pub(crate) fn lines(&self) -> usize {
        self.entries.iter().filter(|entry| entry.side().is_some()).count()
    }

    /// Returns the path of each file and its numbers of added and removed lines, in order.
    pub(crate) fn files(&self) -> Vec<(Option<&Path>, usize, usize)> {
        let mut files: Vec<(Option<&Path>, usize, usize)> = Vec::new();
        for entry in &self.entries {
            let DiffEntry::Line(line) = entry else { continue };
            let path = self.hunks.get(line.hunk).and_then(|hunk| hunk.path.as_deref());
            if files.last().is_none_or(|(last, _, _)| *last != path) {
                files.push((path, 0, 0));
            }
            if let Some((_, added, removed)) = files.last_mut() {
                *added += usize::from(line.side == DiffSide::Added);
                *removed += usize::from(line.side == DiffSide::Removed);
            }
        }
        files
    }

    pub(crate) fn height(&self, width: u16) -> usize {
        self.with_layout(width, |layout| layout.ends.last().copied().unwrap_or(0))
    }

    /// Returns the range of rows from the first to the last changed line, or an empty range if there are none.
    pub(crate) fn changed_rows(&self, width: u16) -> Range<usize> {
        let is_changed = |entry: usize| matches!(self.entries[entry].side(), Some(DiffSide::Added | DiffSide::Removed));
        self.with_layout(width, |layout| {
            let changed = |unit: &Unit| unit.entries().any(is_changed);
            let Some(first) = layout.units.iter().position(changed) else { return 0..0 };
            let last = layout.units.iter().rposition(changed).unwrap_or(first);
            first.checked_sub(1).map_or(0, |before| layout.ends[before])..layout.ends[last]
        })
    }

    /// Returns the number of removed lines of which at least one row is in `range`.
    pub(crate) fn count_removed(&self, width: u16, range: Range<usize>) -> usize {
        self.with_layout(width, |layout| {
            let first = layout.ends.partition_point(|end| *end <= range.start);
            let last = layout.ends.partition_point(|end| *end < range.end);
            let visible = layout.units.iter().take((last + 1).min(layout.units.len())).skip(first);
            let entries = visible.flat_map(|unit| unit.entries());
            entries.filter(|entry| self.entries[*entry].side() == Some(DiffSide::Removed)).count()
        })
    }

    /// Returns the column of the separator, or `None` if the layout is not side by side.
    pub(crate) fn separator_column(&self, width: u16) -> Option<u16> {
        self.shape.get().beside.then(|| halves(usize::from(width)).0 as u16)
    }

    /// Returns the combined width, in cells, of the columns for line number and sign.
    pub(crate) fn gutter(&self) -> usize {
        self.painter.borrow().number_width + 2
    }

    pub(crate) fn rows(&self, width: u16, range: Range<usize>, theme: &Theme) -> Vec<Line<'static>> {
        let (units, begin) = self.with_layout(width, |layout| {
            let first = layout.ends.partition_point(|end| *end <= range.start);
            let last = layout.ends.partition_point(|end| *end < range.end);
            let begin = first.checked_sub(1).map_or(0, |before| layout.ends[before]);
            (layout.units.iter().take(last + 1).skip(first).copied().collect::<Vec<_>>(), begin)
        });
        let mut painter = self.painter.borrow_mut();
        let mut lines = Vec::new();
        let mut at = begin;
        for unit in units {
            if at >= range.end {
                break;
            }
            for row in painter.unit_rows(&self.entries, &self.hunks, unit, usize::from(width), self.shape.get().wraps) {
                if range.contains(&at) {
                    lines.push(row.fit_line(usize::from(width), theme));
                }
                at += 1;
            }
        }
        lines
    }

    fn count(&self, side: DiffSide) -> usize {
        self.entries.iter().filter(|entry| entry.side() == Some(side)).count()
    }

    fn with_layout<T>(&self, width: u16, read: impl FnOnce(&Layout) -> T) -> T {
        let mut layout = self.layout.borrow_mut();
        let number_width = self.painter.borrow().number_width;
        let shape = self.shape.get();
        layout.update(&self.entries, usize::from(width), number_width, shape, || units(&self.entries, shape.beside));
        read(&layout)
    }
}

#[cfg(test)]
mod tests;
