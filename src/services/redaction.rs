//! Redaction of everything that is sent to a service.

use serde_json::Value;
use std::sync::Arc;

/// Replacement of the secrets in a text.
pub(crate) type RedactText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Redacts all strings of a value.
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
