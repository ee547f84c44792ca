//! Passthrough items: returned unchanged, as parts of the thread.

use serde_json::{Map, Value};

const ITEM: &str = "responses_item";
/// Set where the item is of a call that stands right after it.
const CALL: &str = "call";

/// An item as a part of the thread holds it. Its shape is no other dialect's.
pub fn keep(item: Map<String, Value>) -> Value {
    Value::Object(Map::from_iter([(ITEM.to_owned(), Value::Object(item))]))
}

/// The same for the item of a call that is answered here.
pub fn keep_call(item: Map<String, Value>) -> Value {
    let mut kept = keep(item);
    kept[CALL] = Value::Bool(true);
    kept
}

/// Whether it is the item of a call that is answered here.
pub fn is_of_call(opaque: &Value) -> bool {
    opaque.get(CALL) == Some(&Value::Bool(true))
}

/// The item in a part of the thread.
pub fn kept(opaque: &Value) -> Option<&Map<String, Value>> {
    opaque.get(ITEM)?.as_object()
}

/// The type of an item; empty when it has none.
pub fn kind_of(item: &Map<String, Value>) -> &str {
    text_in(item, "type")
}

/// A field that is text; empty when it is not.
pub fn text_in<'a>(item: &'a Map<String, Value>, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}
