//! A change to files as rows to judge it by: every line numbered, signed, tinted and shown whole.

mod layout;
mod parse;
mod words;

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use ratatui::text::Line;

use super::theme::Theme;
use layout::{Layout, Painter};
use parse::{Entry, Hunk, Side};

/// A parsed unified diff of one or more files.
pub struct Diff {
    entries: Vec<Entry>,
    hunks: Vec<Hunk>,
    /// Row after each entry, at the width that was asked for last.
    layout: RefCell<Layout>,
    painter: RefCell<Painter>,
}

impl Diff {
    /// Reads the text of a unified diff; `path` names the file where the text does not. Lines that belong to no hunk are shown as they are.
    pub fn parse(unified: &str, path: Option<&Path>) -> Self {
        let (mut entries, hunks) = parse::parse(unified, path);
        words::pair(&mut entries);
        let painter = Painter::new(&hunks, parse::number_width(&entries));
        Self { entries, hunks, layout: RefCell::default(), painter: RefCell::new(painter) }
    }

    pub fn added(&self) -> usize {
        self.count(Side::Added)
    }

    pub fn removed(&self) -> usize {
        self.count(Side::Removed)
    }

    pub fn hunks(&self) -> usize {
        self.hunks.len()
    }

    /// Lines of all hunks.
    pub fn lines(&self) -> usize {
        self.entries.iter().filter(|entry| entry.side().is_some()).count()
    }

    /// Added and removed lines by file, in the order of the text.
    pub fn files(&self) -> Vec<(Option<&Path>, usize, usize)> {
        let mut files: Vec<(Option<&Path>, usize, usize)> = Vec::new();
        for entry in &self.entries {
            let Entry::Line(line) = entry else { continue };
            let path = self.hunks.get(line.hunk).and_then(|hunk| hunk.path.as_deref());
            if files.last().is_none_or(|(last, _, _)| *last != path) {
                files.push((path, 0, 0));
            }
            if let Some((_, added, removed)) = files.last_mut() {
                *added += usize::from(line.side == Side::Added);
                *removed += usize::from(line.side == Side::Removed);
            }
        }
        files
    }

    pub fn height(&self, width: u16) -> usize {
        self.laid_out(width, |layout| layout.ends.last().copied().unwrap_or(0))
    }

    /// How many removed lines have a row in `range`.
    pub fn removed_in(&self, width: u16, range: Range<usize>) -> usize {
        self.laid_out(width, |layout| {
            let first = layout.ends.partition_point(|end| *end <= range.start);
            let last = layout.ends.partition_point(|end| *end < range.end);
            let visible = self.entries.iter().take((last + 1).min(self.entries.len())).skip(first);
            visible.filter(|entry| entry.side() == Some(Side::Removed)).count()
        })
    }

    pub fn rows(&self, width: u16, range: Range<usize>, theme: &Theme) -> Vec<Line<'static>> {
        let (first, begin) = self.laid_out(width, |layout| {
            let first = layout.ends.partition_point(|end| *end <= range.start);
            (first, first.checked_sub(1).map_or(0, |before| layout.ends[before]))
        });
        let mut painter = self.painter.borrow_mut();
        let mut lines = Vec::new();
        let mut at = begin;
        for index in first..self.entries.len() {
            if at >= range.end {
                break;
            }
            for row in painter.rows(&self.entries, &self.hunks, index, usize::from(width)) {
                if range.contains(&at) {
                    lines.push(row.fitted_line(usize::from(width), theme));
                }
                at += 1;
            }
        }
        lines
    }

    fn count(&self, side: Side) -> usize {
        self.entries.iter().filter(|entry| entry.side() == Some(side)).count()
    }

    fn laid_out<T>(&self, width: u16, read: impl FnOnce(&Layout) -> T) -> T {
        let mut layout = self.layout.borrow_mut();
        let number_width = self.painter.borrow().number_width;
        layout.update(&self.entries, usize::from(width), number_width);
        read(&layout)
    }
}

#[cfg(test)]
mod tests;
