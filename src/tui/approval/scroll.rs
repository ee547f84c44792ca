//! Dialog scrolling, and a record of the rows that have been shown.

use super::Dialog;
use crate::tui::metrics::GUTTER;

/// Portion of the screen height that a dialog may use.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Height {
    #[default]
    Part,
    Full,
}

/// Scroll position of a dialog's body, and a record of the rows that have been shown.
#[derive(Debug, Default)]
pub(crate) struct ScrollState {
    pub height: Height,
    /// Whether the user has scrolled. On a low screen, the dialog then gets more rows.
    pub has_scrolled: bool,
    /// Index of the first visible body row.
    pub top: usize,
    /// Number of rows, counted from the top of the body, that have been shown at the panel width `width`.
    pub seen: usize,
    pub width: u16,
    /// Number of body rows visible in the last frame.
    pub shown: usize,
    /// Whether the whole body has been shown, regardless of the width or layout.
    pub saw_all: bool,
}

impl Dialog {
    /// Scrolls to the first unseen rows. If lines are truncated at the current width, wraps them first.
    pub(crate) fn show_unseen(&mut self) {
        if self.body.is_cut(self.view.width) && !self.view.saw_all {
            return self.turn_wrap(self.view.width + GUTTER);
        }
        self.view.has_scrolled = true;
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
        self.view.has_scrolled |= last > 0;
        self.view.top = self.view.top.saturating_add_signed(rows).min(last);
        self.select_visible_hunk();
    }

    /// Records that the last frame showed `rows` rows, starting at the scroll position, at the given panel width.
    pub(crate) fn note_shown(&mut self, width: u16, rows: usize) {
        if width != self.view.width {
            self.view.width = width;
            // Another width has other rows, so the body must be shown again unless all of it was shown.
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
