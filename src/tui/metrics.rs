//! Sizes that all parts of the screen share.

/// Width of the symbol column at the left of every section.
pub(crate) const GUTTER: u16 = 2;

/// Maximum width of running text, in cells, because longer lines are hard to read.
pub(crate) const MEASURE: u16 = 100;

/// Smallest usable screen (columns, rows). On a smaller screen, only a message is shown and no
/// dialog opens.
pub(crate) const SMALLEST: (u16, u16) = (40, 12);
