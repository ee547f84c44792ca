//! Quotes lines of a bundle in messages.

/// Maximum number of lines quoted from one entry.
const MAX_LINES: usize = 6;
/// Maximum number of characters in a quoted line; longer lines are truncated.
const MAX_CHARACTERS: usize = 300;

/// Returns the text of a line. If the line is a table header, also returns the first lines of the table.
pub fn quote_entry(text: &str, line: usize) -> Vec<String> {
    let cut = |line: &str| -> String { line.chars().take(MAX_CHARACTERS).collect() };
    let mut lines = text.lines().skip(line.saturating_sub(1));
    let Some(first) = lines.next() else { return Vec::new() };
    let mut quoted = vec![cut(first.trim_end())];
    if first.trim_start().starts_with('[') {
        let rest = lines.take_while(|line| !line.trim().is_empty() && !line.starts_with('['));
        quoted.extend(rest.take(MAX_LINES - 1).map(|line| cut(line.trim_end())));
    }
    quoted
}
