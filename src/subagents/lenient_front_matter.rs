//! Lenient front matter parser. Other agents accept front matter that is invalid YAML because it contains `: ` in
//! unquoted text.

use crate::skills::{Fault, FrontMatterEntry, FrontMatterFile, FrontMatterValue, parse as parse_yaml, split_front_matter};

/// Front matter entries and body of a file.
pub(super) struct Parsed<'a> {
    pub entries: Vec<FrontMatterEntry>,
    /// Text after the front matter.
    pub body: &'a str,
    /// Error that makes the front matter invalid YAML, if any.
    pub warning: Option<Fault>,
}

/// Parses a file into its front matter entries and its body. If the front matter is not valid YAML, each line of the
/// form `key: text` becomes an entry, and any other line continues the preceding entry.
///
/// # Errors
/// Returns an error if the front matter is missing, unterminated, too long or has no entries.
pub(super) fn parse(text: &str) -> Result<Parsed<'_>, Fault> {
    let fault = match parse_yaml(text) {
        Ok(FrontMatterFile { entries, body }) => return Ok(Parsed { entries, body, warning: None }),
        Err(fault) => fault,
    };
    let Ok((header, body)) = split_front_matter(text) else { return Err(fault) };
    let entries = lines(header);
    if entries.is_empty() {
        return Err(fault);
    }
    let message = format!("{}; the lines are read as plain text", fault.message);
    Ok(Parsed { entries, body, warning: Some(Fault { message, ..fault }) })
}

fn lines(header: &str) -> Vec<FrontMatterEntry> {
    let mut entries: Vec<FrontMatterEntry> = Vec::new();
    for (index, line) in header.lines().enumerate() {
        match key(line) {
            Some((key, value)) if !entries.iter().any(|entry| entry.key == key) => {
                let value = FrontMatterValue::Text(unquoted(value.trim()).to_owned());
                entries.push(FrontMatterEntry { key: key.to_owned(), value, line: index + 2 });
            }
            // Otherwise, repeating a key could override its first value.
            Some(_) | None => continue_value(entries.last_mut(), line),
        }
    }
    entries
}

/// Splits a line into a key and its value, or returns `None` if the line does not begin with a key.
fn key(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let begins = key.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic());
    (begins && key.chars().all(is_key) && (value.is_empty() || value.starts_with([' ', '\t']))).then_some((key, value))
}

fn continue_value(entry: Option<&mut FrontMatterEntry>, line: &str) {
    let Some(entry) = entry else { return };
    let line = line.trim();
    match (&mut entry.value, line.strip_prefix("- ")) {
        (FrontMatterValue::List(items), Some(item)) => items.push(unquoted(item.trim()).to_owned()),
        (FrontMatterValue::Text(text), Some(item)) if text.is_empty() => {
            entry.value = FrontMatterValue::List(vec![unquoted(item.trim()).to_owned()]);
        }
        (FrontMatterValue::Text(text), _) if !line.is_empty() => {
            text.push(' ');
            text.push_str(line);
        }
        (FrontMatterValue::Text(_) | FrontMatterValue::List(_) | FrontMatterValue::Nested, _) => {}
    }
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}
