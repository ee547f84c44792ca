//! Passthrough items, which are stored as parts of the thread and returned unchanged.

use serde_json::{Map, Value};

const ITEM: &str = "responses_item";
/// Marker of an item that belongs to the call directly after it.
const CALL: &str = "call";

/// Wraps an item as a part of the thread, in a format that no other API uses.
pub(crate) fn keep(item: Map<String, Value>) -> Value {
    Value::Object(Map::from_iter([(ITEM.to_owned(), Value::Object(item))]))
}

/// Wraps the item of a call that the client answers.
pub(crate) fn keep_call(item: Map<String, Value>) -> Value {
    let mut kept = keep(item);
    kept[CALL] = Value::Bool(true);
    kept
}

/// Returns whether a part contains the item of a call that the client answers.
pub(crate) fn is_of_call(opaque: &Value) -> bool {
    opaque.get(CALL) == Some(&Value::Bool(true))
}

/// Returns the item in a part of the thread.
pub(crate) fn item_of_part(opaque: &Value) -> Option<&Map<String, Value>> {
    opaque.get(ITEM)?.as_object()
}

/// Returns the type of an item; empty if it has none.
pub(crate) fn item_type(item: &Map<String, Value>) -> &str {
    text_field(item, "type")
}

/// Returns a text field; empty if it is missing or not text.
pub(crate) fn text_field<'a>(item: &'a Map<String, Value>, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}
