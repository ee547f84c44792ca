//! Scrolling of a dialog, and a record of the rows that were shown.

use super::Dialog;
use crate::tui::metrics::GUTTER;

/// Share of the screen that a dialog takes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Height {
    #[default]
    Part,
    Full,
}

/// Visible rows of the body of a dialog, and the rows that were shown.
#[derive(Debug, Default)]
pub(crate) struct ScrollState {
    pub height: Height,
    /// Index of the first row on the screen.
    pub top: usize,
    /// Number of leading rows that were shown, and the width at which they were.
    pub seen: usize,
    pub width: u16,
    /// Rows of the body in the last frame.
    pub shown: usize,
    /// Whether the whole content was shown, in any layout.
    pub saw_all: bool,
}

impl Dialog {
    /// Scrolls to the first screen that has not been shown completely.
    pub(crate) fn show_unseen(&mut self) {
        if self.body.is_cut(self.view.width) && !self.view.saw_all {
            return self.turn_wrap(self.view.width + GUTTER);
        }
        self.view.top = self.view.seen;
        self.select_visible_hunk();
    }

    /// Switches between full-screen and partial height.
    pub(crate) fn turn_height(&mut self) {
        self.view.height = match self.view.height {
            Height::Part => Height::Full,
            Height::Full => Height::Part,
        };
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let last = self.body.rows(self.view.width).saturating_sub(self.view.shown);
        self.view.top = self.view.top.saturating_add_signed(rows).min(last);
        self.select_visible_hunk();
    }

    /// Records that these rows are on the screen at this width.
    pub(crate) fn note_shown(&mut self, width: u16, rows: usize) {
        if width != self.view.width {
            self.view.width = width;
            // Another width has other rows, so rows that were partly shown must be shown again.
            self.view.seen = if self.view.saw_all { self.body.rows(width) } else { 0 };
        }
        self.view.shown = rows;
        // Truncated rows do not count as shown.
        if self.view.top <= self.view.seen && !self.body.is_cut(width) {
            self.view.seen = self.view.seen.max(self.view.top + rows);
        }
        self.view.saw_all = self.unseen() == 0;
    }
}
