//! Which part of a question is on the screen, and what of it has been.

use super::{Dialog, Height};
use crate::tui::view::GUTTER;

impl Dialog {
    /// The first screen that has not been shown whole.
    pub fn show_unseen(&mut self) {
        if self.body.is_cut(self.seen_width) && !self.saw_all {
            return self.turn_wrap(self.seen_width + GUTTER);
        }
        self.scroll = self.seen;
    }

    /// All of the screen, or the part of it again.
    pub fn turn_height(&mut self) {
        self.height = match self.height {
            Height::Part => Height::Full,
            Height::Full => Height::Part,
        };
    }

    pub fn scroll_by(&mut self, rows: isize) {
        let last = self.body.rows(self.seen_width).saturating_sub(self.shown);
        self.scroll = self.scroll.saturating_add_signed(rows).min(last);
    }

    /// These rows are on the screen now, at this width.
    pub fn note_shown(&mut self, width: u16, rows: usize) {
        if width != self.seen_width {
            self.seen_width = width;
            // Rows of another width are other rows: what was seen in part is to be seen again.
            self.seen = if self.saw_all { self.body.rows(width) } else { 0 };
        }
        self.shown = rows;
        // What is cut was not seen.
        if self.scroll <= self.seen && !self.body.is_cut(width) {
            self.seen = self.seen.max(self.scroll + rows);
        }
        self.saw_all = self.unseen() == 0;
    }
}
