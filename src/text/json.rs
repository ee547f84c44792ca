//! Texts in JSON values.

use serde_json::Value;

/// Rewrites every string in a value, but not the names of members. Returns whether anything has changed.
pub(crate) fn rewrite_strings(value: &mut Value, rewrite: &dyn Fn(&str) -> String) -> bool {
    match value {
        Value::String(text) => {
            let rewritten = rewrite(text);
            let has_changed = rewritten != *text;
            *text = rewritten;
            has_changed
        }
        Value::Array(items) => rewrite_all(items.iter_mut(), rewrite),
        Value::Object(members) => rewrite_all(members.values_mut(), rewrite),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn rewrite_all<'a>(values: impl Iterator<Item = &'a mut Value>, rewrite: &dyn Fn(&str) -> String) -> bool {
    let mut has_changed = false;
    for value in values {
        has_changed |= rewrite_strings(value, rewrite);
    }
    has_changed
}
