//! Dimensions common to all parts of the screen.

/// Width, in cells, of the column for symbols on the left of each section.
pub(crate) const GUTTER: u16 = 2;

/// Maximum width of running text, in cells. Longer lines would be hard to read.
pub(crate) const MEASURE: u16 = 100;

/// Size of the smallest usable screen, in columns and rows. On a smaller screen, only a message is shown and no dialog
/// opens.
pub(crate) const SMALLEST: (u16, u16) = (40, 12);
