//! Diff layout chosen by the user.

use crate::tui::diff::Shape;

/// Minimum panel width, in cells, at which diffs are side by side by default.
pub(crate) const BESIDE: u16 = 110;
/// Number of diff lines above which a change counts as too long to review, so it can be approved (with two keys) before
/// all its lines have been shown.
pub(super) const LARGE_LINES: usize = 2000;
/// Minimum panel width, in cells, at which a side-by-side diff is possible.
pub(crate) const MIN_BESIDE: u16 = 80;

#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffLayout {
    /// Whether the user chose side-by-side layout, or `None` to choose it by the panel width.
    pub beside: Option<bool>,
    /// Whether long lines are wrapped instead of truncated.
    pub wraps: bool,
}

impl Default for DiffLayout {
    fn default() -> Self {
        Self { beside: None, wraps: true }
    }
}

impl DiffLayout {
    /// Returns the layout to use at this panel width, in cells.
    pub(crate) fn shape(self, width: u16) -> Shape {
        Shape { beside: self.beside.unwrap_or(width >= BESIDE) && width >= MIN_BESIDE, wraps: self.wraps }
    }
}
