//! Access to values in a JSON object. Values that have an unexpected type are reported.

use super::sources::Sources;
use serde_json::{Map, Value};

/// Object in a JSON file.
pub(super) struct JsonEntry<'a> {
    /// Path of the file, as shown to the user.
    pub place: &'a str,
    /// Keys under which the object is found in the file, each followed by a dot.
    pub path: String,
    pub entries: &'a Map<String, Value>,
}

impl<'a> JsonEntry<'a> {
    pub(super) fn new(place: &'a str, entries: &'a Map<String, Value>) -> Self {
        Self { place, path: String::new(), entries }
    }

    fn report(&self, sources: &mut Sources, key: &str, expected: &str) {
        sources.report(self.place, format!("`{}{key}` must be {expected}; it is not imported", self.path));
    }

    /// Returns the object under a key, or `None` if there is none. A value of another type is reported.
    pub(super) fn object(&self, key: &str, sources: &mut Sources) -> Option<JsonEntry<'a>> {
        match self.entries.get(key)? {
            Value::Object(entries) => Some(JsonEntry { place: self.place, path: format!("{}{key}.", self.path), entries }),
            Value::Null => None,
            _ => {
                self.report(sources, key, "an object");
                None
            }
        }
    }

    pub(super) fn text(&self, key: &str, sources: &mut Sources) -> Option<&'a str> {
        match self.entries.get(key)? {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => {
                self.report(sources, key, "a string");
                None
            }
        }
    }

    /// Returns the strings in the array under a key. Elements of other types are reported.
    pub(super) fn texts(&self, key: &str, sources: &mut Sources) -> Vec<&'a str> {
        let values = match self.entries.get(key) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(values)) => values,
            Some(_) => {
                self.report(sources, key, "an array of strings");
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (at, value) in values.iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text.as_str()),
                _ => self.report(sources, &format!("{key}[{at}]"), "a string"),
            }
        }
        texts
    }

    /// Returns the names and values of the object under a key. Its values are strings, or numbers and booleans, which
    /// are converted to strings.
    pub(super) fn pairs(&self, key: &str, sources: &mut Sources) -> Vec<(String, String)> {
        let Some(object) = self.object(key, sources) else { return Vec::new() };
        let mut pairs = Vec::new();
        for (name, value) in object.entries {
            match value {
                Value::String(text) => pairs.push((name.clone(), text.clone())),
                Value::Number(_) | Value::Bool(_) => pairs.push((name.clone(), value.to_string())),
                Value::Null | Value::Array(_) | Value::Object(_) => object.report(sources, name, "a string"),
            }
        }
        pairs
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.entries.get(key).and_then(Value::as_bool)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.entries.get(key).and_then(Value::as_u64)
    }
}
