//! Passthrough items, which are stored as parts of a message and sent back unchanged.

use serde_json::{Map, Value};

const ITEM: &str = "responses_item";
/// Marker for an item that represents the call directly after it.
const CALL: &str = "call";

/// Converts an item to the content of an opaque part, in a format that no other API uses.
pub(crate) fn keep(item: Map<String, Value>) -> Value {
    Value::Object(Map::from_iter([(ITEM.to_owned(), Value::Object(item))]))
}

/// Converts the item of a call that the client runs.
pub(crate) fn keep_call(item: Map<String, Value>) -> Value {
    let mut kept = keep(item);
    kept[CALL] = Value::Bool(true);
    kept
}

/// Returns whether an opaque part contains the item of a call that the client runs.
pub(crate) fn is_of_call(opaque: &Value) -> bool {
    opaque.get(CALL) == Some(&Value::Bool(true))
}

/// Returns the item contained in an opaque part, or `None` if it contains none.
pub(crate) fn item_of_part(opaque: &Value) -> Option<&Map<String, Value>> {
    opaque.get(ITEM)?.as_object()
}

/// Returns the type of an item, or an empty string if it has none.
pub(crate) fn item_type(item: &Map<String, Value>) -> &str {
    text_field(item, "type")
}

/// Returns a text field, or an empty string if it is missing or is not text.
pub(crate) fn text_field<'a>(item: &'a Map<String, Value>, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}
