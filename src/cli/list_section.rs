//! List section of a plan: a title followed by indented lines.

use crate::text::reveal_line;
use std::fmt::Write;

/// Returns the section; empty if there are no lines.
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
