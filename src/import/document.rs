//! Parsing of other agents' files, which are TOML, or JSON that may contain comments and trailing commas.

use serde_json::Value;

/// Parses JSON, ignoring comments and trailing commas.
///
/// # Errors
/// Returns a message that contains the line number and describes the problem.
pub(super) fn json(text: &str) -> Result<Value, String> {
    let plain = without_comments(text);
    if plain.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&plain).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        format!("line {}: invalid JSON: {message}", error.line())
    })
}

/// Parses TOML.
///
/// # Errors
/// Returns a message that contains the line number and describes the problem.
pub(super) fn toml(text: &str) -> Result<toml::Table, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.as_bytes().iter().take(start).filter(|byte| **byte == b'\n').count();
        format!("line {line}: invalid TOML: {}", error.message().lines().next().unwrap_or_default())
    })
}

/// Replaces comments and trailing commas with spaces, which keeps line numbers the same.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    // Position of a comma that only spaces and comments have followed so far.
    let mut comma = None;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('"', _) => {
                comma = None;
                plain.push('"');
                let mut is_escaped = false;
                for inner in letters.by_ref() {
                    plain.push(inner);
                    match inner {
                        '\\' => is_escaped = !is_escaped,
                        '"' if !is_escaped => break,
                        _ => is_escaped = false,
                    }
                }
            }
            ('/', Some('/')) => while letters.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                letters.next();
                let mut last = ' ';
                for inner in letters.by_ref() {
                    if inner == '\n' {
                        plain.push('\n');
                    }
                    if last == '*' && inner == '/' {
                        break;
                    }
                    last = inner;
                }
                plain.push(' ');
            }
            (',', _) => {
                comma = Some(plain.len());
                plain.push(',');
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(letter);
            }
            _ => {
                if !letter.is_whitespace() {
                    comma = None;
                }
                plain.push(letter);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_and_trailing_commas_are_ignored_and_errors_name_the_line() {
        let text = "{ // one\n  \"a\": [1, 2, /* two\n */ ], \"b\": \"// no \\\" /* comment */ ,]\",\n}\n";
        assert_eq!(json(text), Ok(serde_json::json!({"a": [1, 2], "b": "// no \" /* comment */ ,]"})));
        for (text, line) in [("{\n\"a\": 1,\n\"b\" 2}", 3), ("{\n/*\n*/ x}", 3), ("[1,,]", 1), ("{\"a\": \"b", 1)] {
            let error = json(text).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: invalid JSON")), "{text}: {error}");
        }
        assert_eq!(json(" \n// nothing\n"), Ok(serde_json::json!({})));
        assert!(toml("a = 1\nb = \n").unwrap_err().starts_with("line 2: invalid TOML"));
    }

    proptest! {
        #[test]
        fn plain_json_is_parsed_unchanged(text in "[a-z /*,\"\\\\\\[\\]{}:0-9\n]{0,60}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(json(&text), Ok(value));
            }
            let _ = without_comments(&text);
        }
    }
}
