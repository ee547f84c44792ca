//! Widths, wrapping, truncation, diff hunks, neutralised escape sequences.
