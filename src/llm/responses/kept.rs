//! Items that go back as they came: kept in the thread with where they came from, for nobody else can read them.

use serde_json::{Map, Value};

const ITEM: &str = "responses_item";
const FROM: &str = "from";

/// Where items come from: what one account sealed, at one address, no other can open.
pub fn origin(provider: &str, base_url: &str) -> String {
    format!("{provider} {base_url}")
}

/// An item as a part of the thread holds it. Its shape is no other dialect's.
pub fn keep(item: Map<String, Value>, from: &str) -> Value {
    let mut kept = Map::new();
    kept.insert(FROM.to_owned(), Value::String(from.to_owned()));
    kept.insert(ITEM.to_owned(), Value::Object(item));
    Value::Object(kept)
}

/// The item in a part of the thread, if it came from there.
pub fn kept<'a>(opaque: &'a Value, from: &str) -> Option<&'a Map<String, Value>> {
    (opaque.get(FROM)?.as_str()? == from).then(|| opaque.get(ITEM)?.as_object()).flatten()
}

/// The type of an item; empty when it has none.
pub fn kind_of(item: &Map<String, Value>) -> &str {
    text_in(item, "type")
}

/// A field that is text; empty when it is not.
pub fn text_in<'a>(item: &'a Map<String, Value>, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}
