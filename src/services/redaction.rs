//! Redaction of all data that is sent to services.

use crate::text::rewrite_strings;
use serde::Serialize;
use std::sync::Arc;

/// Function that redacts the secrets in a text.
pub(crate) type RedactText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Returns a value as redacted JSON. Strings are redacted before they are encoded, because JSON would escape quotation
/// marks and line breaks inside a secret.
pub(super) fn redacted_json(value: &impl Serialize, redact: &RedactText) -> String {
    let Ok(mut value) = serde_json::to_value(value) else { return String::new() };
    rewrite_strings(&mut value, &**redact);
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_with_characters_that_json_escapes_are_redacted() {
        let redact: RedactText = Arc::new(|text| text.replace("a\"b\nc", "[redacted]"));
        let value = serde_json::json!({"command": ["echo a\"b\nc"]});
        assert_eq!(redacted_json(&value, &redact), r#"{"command":["echo [redacted]"]}"#);
    }
}
