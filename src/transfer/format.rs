//! Formats numbers and lines of text for exports and lists.

use crate::text::clean;

/// Returns text as a single line, so it cannot imitate another line.
pub(crate) fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Formats a size, such as `12.3 MB`, `812 KB` or `0 bytes`.
pub(crate) fn format_size(bytes: u64) -> String {
    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    match bytes {
        0..KB => format!("{bytes} bytes"),
        KB..MB => format!("{} KB", bytes.div_ceil(KB)),
        _ => format!("{:.1} MB", bytes as f64 / MB as f64),
    }
}

/// Formats a number with its noun, such as `1 prompt` or `2 prompts`.
pub(crate) fn format_count(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// Formats an amount in US dollars. Small amounts have more decimal places.
pub(crate) fn dollars(cost: f64, estimated: bool) -> String {
    let about = if estimated { "~" } else { "" };
    if cost > 0.0 && cost < 0.01 { format!("{about}${cost:.4}") } else { format!("{about}${cost:.2}") }
}
