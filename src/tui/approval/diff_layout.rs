//! Layout of a diff that the user chose.

use crate::tui::diff::Shape;

/// Panel width in cells from which before and after are shown side by side.
pub(crate) const BESIDE: u16 = 110;
/// Number of diff lines above which a change can be applied (with two keys) before all of it was shown.
pub(super) const LARGE_LINES: usize = 2000;
/// Panel width in cells below which they are never side by side.
pub(crate) const MIN_BESIDE: u16 = 80;

#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffLayout {
    /// Side-by-side or unified layout, if the user chose one.
    pub beside: Option<bool>,
    /// Whether long lines are wrapped, not truncated.
    pub wraps: bool,
}

impl Default for DiffLayout {
    fn default() -> Self {
        Self { beside: None, wraps: true }
    }
}

impl DiffLayout {
    /// Returns the layout at this panel width.
    pub(crate) fn shape(self, width: u16) -> Shape {
        Shape { beside: self.beside.unwrap_or(width >= BESIDE) && width >= MIN_BESIDE, wraps: self.wraps }
    }
}
