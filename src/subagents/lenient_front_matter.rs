//! Lenient parser for front matter that other agents accept although it is not valid YAML: unquoted text with `: `.

use crate::skills::{Fault, FrontMatterEntry, FrontMatterFile, FrontMatterValue, parse as parse_yaml, split_front_matter};

/// The parts of a file.
pub(super) struct Parsed<'a> {
    pub entries: Vec<FrontMatterEntry>,
    /// Text after the front matter.
    pub body: &'a str,
    /// The error that made the front matter invalid.
    pub warning: Option<Fault>,
}

/// Splits a file into the entries of its front matter and its body. If the front matter is not valid YAML, each line of
/// the form `key: text` is an entry, and other lines continue the entry before them.
///
/// # Errors
/// Returns an error if the front matter is missing, not closed or too long, or has no entries.
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
            // A repeated key could override the first value.
            Some(_) | None => continue_value(entries.last_mut(), line),
        }
    }
    entries
}

/// Returns the key and the value of a line.
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
