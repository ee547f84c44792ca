//! Markdown code fences for text that must not be interpreted as Markdown.

/// Returns a code fence that is longer than any fence in the text.
pub(crate) fn fence(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
