//! Redaction of all data that is sent to services.

use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Function that redacts the secrets in a text.
pub(crate) type RedactText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Returns a value as redacted JSON. Strings are redacted before they are encoded, because JSON would escape quotation
/// marks and line breaks inside a secret.
pub(super) fn redacted_json(value: &impl Serialize, redact: &RedactText) -> String {
    let Ok(mut value) = serde_json::to_value(value) else { return String::new() };
    redact_value(&mut value, redact);
    value.to_string()
}

/// Redacts every string in a value.
pub(super) fn redact_value(value: &mut Value, redact: &RedactText) {
    match value {
        Value::String(text) => {
            let redacted = redact(text);
            if redacted != *text {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, redact)),
        Value::Object(members) => members.values_mut().for_each(|member| redact_value(member, redact)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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
