//! Templates: `{placeholders}` in command-line arguments and other strings, and the values that replace them.

use serde_json::Value;

/// Part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart<'a> {
    Text(&'a str),
    /// A placeholder, as the name between the braces: `{name}`, `{input.name}` or `{steps[0].output}`.
    Named(&'a str),
}

/// Splits a template into parts. Braces around anything but a name are literal text.
pub(super) fn pieces(text: &str) -> Vec<TemplatePart<'_>> {
    let named = |inner: &str| {
        !inner.is_empty()
            && inner.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && inner.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.[]".contains(letter))
    };
    let mut found = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(open) = rest[from..].find('{').map(|at| from + at) {
        let Some(inner) = rest[open + 1..].split_once('}').map(|(inner, _)| inner).filter(|inner| named(inner)) else {
            from = open + 1;
            continue;
        };
        if open > 0 {
            found.push(TemplatePart::Text(&rest[..open]));
        }
        found.push(TemplatePart::Named(inner));
        (rest, from) = (&rest[open + inner.len() + 2..], 0);
    }
    if !rest.is_empty() {
        found.push(TemplatePart::Text(rest));
    }
    found
}

/// Converts a scalar value to a command-line argument. Returns `None` for any other value.
pub(super) fn to_word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Fills in a command-line argument. Returns `Ok(None)` if it contains a placeholder for an argument that was not
/// given.
pub(super) fn fill_word(template: &str, arguments: &serde_json::Map<String, Value>) -> Result<Option<String>, String> {
    let mut whole = String::new();
    for piece in pieces(template) {
        let name = match piece {
            TemplatePart::Text(text) => {
                whole.push_str(text);
                continue;
            }
            TemplatePart::Named(name) => name,
        };
        let value = match arguments.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => {
                to_word(value).ok_or_else(|| format!("`{name}` is a list or an object and cannot be a command-line argument"))?
            }
        };
        if value.contains('\0') {
            return Err(format!("`{name}` contains a NUL byte and cannot be a command-line argument"));
        }
        // The program would interpret the value as an option.
        if whole.is_empty() && value.starts_with('-') {
            return Err(format!("`{name}` starts with `-`, so the program would read it as an option"));
        }
        whole.push_str(&value);
    }
    Ok(Some(whole))
}
