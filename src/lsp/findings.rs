//! Errors among a server's diagnostics, which are validated, sanitized and compared.

use super::limits::{ERRORS, LISTED_ERRORS, MESSAGE_CELLS, MESSAGE_START_BYTES};
use crate::protocol::{Diagnostic, FileDiagnostics};
use crate::text;
use serde_json::Value;
use std::collections::HashMap;

/// Value that the protocol uses for the severity of errors. A diagnostic without a severity is treated as an error.
const ERROR: u64 = 1;

/// Errors found in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Findings {
    errors: Vec<Diagnostic>,
}

impl Findings {
    /// Parses the errors that a server reports for a text. Diagnostics that have no message or are outside the text are
    /// ignored.
    pub(super) fn read(items: &[Value], text: &str) -> Self {
        let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let error = |item: &Value| {
            if item.get("severity").and_then(Value::as_u64).is_some_and(|severity| severity != ERROR) {
                return None;
            }
            let line = item.pointer("/range/start/line")?.as_u64().and_then(|line| usize::try_from(line).ok())?;
            let message = item.get("message")?;
            let message = message.as_str().or_else(|| message.get("value")?.as_str())?;
            let message = clean(message);
            (line < lines && !message.is_empty()).then(|| Diagnostic { line: line + 1, message })
        };
        let mut errors: Vec<Diagnostic> = items.iter().filter_map(error).take(ERRORS).collect();
        errors.sort_by_key(|error| error.line);
        Self { errors }
    }

    /// Compares the errors before and after a change. An error is new if no error in the old text had the same message.
    /// Positions are not compared, because changes move lines.
    pub(super) fn compare(before: &Self, after: &Self, path: String, server: &str) -> FileDiagnostics {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for error in &before.errors {
            *known.entry(&error.message).or_default() += 1;
        }
        let mut new: Vec<Diagnostic> = Vec::new();
        for error in &after.errors {
            match known.get_mut(error.message.as_str()).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => new.push(error.clone()),
            }
        }
        let unlisted = new.len().saturating_sub(LISTED_ERRORS);
        new.truncate(LISTED_ERRORS);
        FileDiagnostics {
            path,
            server: server.to_owned(),
            errors_before: before.errors.len(),
            errors_after: after.errors.len(),
            new_errors: new,
            unlisted,
        }
    }
}

/// Returns the first line of a message as plain text.
fn clean(message: &str) -> String {
    let mut end = message.len().min(MESSAGE_START_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let line = message[..end].lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = text::clean_line(line);
    text::truncate(line.trim(), MESSAGE_CELLS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(line: Value, message: &str) -> Value {
        json!({"range": {"start": {"line": line, "character": 0}}, "severity": 1, "message": message})
    }

    #[test]
    fn invalid_positions_and_control_characters_are_ignored() {
        let items = [
            item(json!(0), "\u{1b}[31mred\u{1b}[0m\u{7} text\nsecond line"),
            item(json!(-1), "negative"),
            item(json!(3), "beyond the end"),
            item(json!(u64::MAX), "huge"),
            item(json!(1e300), "float"),
            item(json!("1"), "string"),
            item(json!(1), ""),
            json!({"range": {"start": {"line": 1}}, "severity": 2, "message": "a warning"}),
            json!({"range": {"start": {"line": 2}}, "message": {"kind": "markdown", "value": "without severity"}}),
            json!(null),
            json!([]),
        ];
        let found = Findings::read(&items, "one\ntwo\n");
        let shown: Vec<_> = found.errors.iter().map(|error| (error.line, error.message.as_str())).collect();
        assert_eq!(shown, [(1, "red␇ text"), (3, "without severity")]);
        let long = Findings::read(&[item(json!(0), &"ä".repeat(100_000))], "x");
        assert!(long.errors[0].message.chars().count() <= MESSAGE_CELLS);
    }

    #[test]
    fn errors_that_only_moved_do_not_count_as_new() {
        let before = Findings::read(&[item(json!(0), "old"), item(json!(1), "twice")], "a\nb");
        let after = [item(json!(5), "old"), item(json!(2), "twice"), item(json!(3), "twice"), item(json!(1), "new")];
        let after = Findings::read(&after, &"x\n".repeat(9));
        let told = Findings::compare(&before, &after, "src/a.rs".to_owned(), "server");
        assert_eq!((told.errors_before, told.errors_after, told.unlisted), (2, 4, 0));
        assert_eq!(told.rows(), ["2 → 4 errors, src/a.rs:2: new (server)", "  src/a.rs:4: twice"]);
        let fixed = Findings::compare(&after, &before, "src/a.rs".to_owned(), "server");
        assert_eq!(fixed.rows(), ["4 → 2 errors in src/a.rs (server)"]);
        assert!(!fixed.has_new_errors() && fixed.is_worth_showing());
    }

    #[test]
    fn only_the_first_new_errors_are_listed() {
        let items: Vec<Value> = (0..5000).map(|line| item(json!(line), &format!("error {line}"))).collect();
        let found = Findings::read(&items, &"\n".repeat(6000));
        let told = Findings::compare(&Findings::default(), &found, "a".to_owned(), "s");
        assert_eq!((told.errors_after, told.new_errors.len(), told.unlisted), (ERRORS, LISTED_ERRORS, ERRORS - LISTED_ERRORS));
        assert_eq!(told.rows().len(), LISTED_ERRORS + 1);
    }
}
