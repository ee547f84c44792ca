//! Formats one section of a plan as a title followed by indented lines.

use crate::text::reveal_line;
use std::fmt::Write;

/// Formats a section. Returns an empty string if there are no lines.
pub(super) fn list_section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}:\n");
    for line in lines {
        let _ = writeln!(text, "  {}", reveal_line(line));
    }
    text
}
