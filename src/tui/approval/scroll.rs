//! Scrolling of a dialog, and a record of the rows that were shown.

use super::{Dialog, Height};
use crate::tui::metrics::GUTTER;

impl Dialog {
    /// Scrolls to the first screen that has not been shown completely.
    pub(crate) fn show_unseen(&mut self) {
        if self.body.is_cut(self.seen_width) && !self.saw_all {
            return self.turn_wrap(self.seen_width + GUTTER);
        }
        self.scroll = self.seen;
    }

    /// Switches between full-screen and partial height.
    pub(crate) fn turn_height(&mut self) {
        self.height = match self.height {
            Height::Part => Height::Full,
            Height::Full => Height::Part,
        };
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let last = self.body.rows(self.seen_width).saturating_sub(self.shown);
        self.scroll = self.scroll.saturating_add_signed(rows).min(last);
    }

    /// Records that these rows are on the screen at this width.
    pub(crate) fn note_shown(&mut self, width: u16, rows: usize) {
        if width != self.seen_width {
            self.seen_width = width;
            // Another width has other rows, so rows that were partly shown must be shown again.
            self.seen = if self.saw_all { self.body.rows(width) } else { 0 };
        }
        self.shown = rows;
        // Truncated rows do not count as shown.
        if self.scroll <= self.seen && !self.body.is_cut(width) {
            self.seen = self.seen.max(self.scroll + rows);
        }
        self.saw_all = self.unseen() == 0;
    }
}
