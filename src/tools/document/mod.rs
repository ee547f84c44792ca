//! The text of a file: its encoding, its line endings, and replacements that preserve both.

pub(in crate::tools) mod charset;
pub(in crate::tools) mod content;
pub(in crate::tools) mod line_breaks;
pub(in crate::tools) mod replacement;
