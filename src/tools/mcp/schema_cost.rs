//! Estimates the cost of validating a value against a schema. Even a schema of a few lines can take exponential time.

use serde_json::{Map, Value};
use std::collections::HashSet;

/// Maximum number of times that a subschema is checked against a value. Ordinary schemas stay far below that.
const MAX_LOOKS: usize = 200_000;
/// Maximum depth of nested references that do not descend into the value.
const MAX_DEEP: usize = 256;

/// Keywords whose subschemas apply to the value itself, grouped by form: a single subschema, a list, or a map.
const SAME_ONE: &[&str] = &["not", "if", "then", "else"];
const SAME_LIST: &[&str] = &["allOf", "anyOf", "oneOf"];
const SAME_TABLE: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords whose subschemas apply to a value's members or elements.
const PART_ONE: &[&str] =
    &["additionalProperties", "unevaluatedProperties", "items", "additionalItems", "unevaluatedItems", "contains"];
/// Keywords whose meaning depends on how the validator arrived at them.
const ELSEWHERE: &[&str] = &["$dynamicRef", "$recursiveRef", "$vocabulary"];
/// Maximum number of patterns, limited because each one is compiled.
const MAX_PATTERNS: usize = 32;
/// Prefixes of the built-in meta-schemas' URLs.
const OF_SCHEMAS: [&str; 2] = ["https://json-schema.org/draft", "http://json-schema.org/draft"];

/// Returns the reason why this schema cannot be used for validation, or `None` if it can.
pub(super) fn unsuitable_reason(schema: &Value) -> Option<&'static str> {
    let mut patterns = 0;
    if has_elsewhere(schema, true, &mut patterns) {
        return Some("the schema has references that aye does not follow");
    }
    (patterns > MAX_PATTERNS).then_some("the schema has too many patterns")
}

/// Returns the reason why this value cannot be validated, or `None` if it can.
pub(super) fn excess_reason(schema: &Value, value: &Value) -> Option<&'static str> {
    let mut count = CostCount { root: schema, left: MAX_LOOKS, refs: HashSet::new() };
    (!count.count(schema, value, 0)).then_some("the check would take too long")
}

/// Returns whether the schema contains unsupported references. A local reference can be relied on only if no subschema
/// has an `$id` of its own.
fn has_elsewhere(schema: &Value, is_root: bool, patterns: &mut usize) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, inner)| {
            let told = match (name.as_str(), inner.as_str()) {
                ("$id" | "id", Some(id)) => !is_root && (name == "$id" || id.contains(':')),
                ("$ref", Some(to)) => !(to == "#" || to.starts_with("#/") && !to.contains('%') || is_of_schemas(to)),
                (name, Some(_)) if ELSEWHERE.contains(&name) => true,
                ("pattern", Some(_)) => {
                    *patterns += 1;
                    false
                }
                _ => false,
            };
            if name == "patternProperties" {
                *patterns += inner.as_object().map_or(0, Map::len);
            }
            told || has_elsewhere(inner, false, patterns)
        }),
        Value::Array(elements) => elements.iter().any(|element| has_elsewhere(element, false, patterns)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_of_schemas(to: &str) -> bool {
    OF_SCHEMAS.iter().any(|start| to.starts_with(start))
}

struct CostCount<'a> {
    root: &'a Value,
    left: usize,
    /// References that are being followed for the same part of a value, recorded to detect cycles.
    refs: HashSet<(*const Value, *const Value)>,
}

impl<'a> CostCount<'a> {
    /// Counts the checks. Returns whether their number stays within the limit.
    fn count(&mut self, schema: &'a Value, value: &'a Value, deep: usize) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let Value::Object(schema) = schema else { return true };
        if deep > MAX_DEEP {
            return false;
        }
        self.follow(schema, value, deep) && self.same(schema, value, deep) && self.parts(schema, value, deep)
    }

    fn follow(&mut self, schema: &'a Map<String, Value>, value: &'a Value, deep: usize) -> bool {
        let Some(to) = schema.get("$ref").and_then(Value::as_str) else { return true };
        let Some(target) = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else { return true };
        let step = (std::ptr::from_ref(target), std::ptr::from_ref(value));
        if !self.refs.insert(step) {
            return true;
        }
        let within = self.count(target, value, deep + 1);
        self.refs.remove(&step);
        within
    }

    fn same(&mut self, schema: &'a Map<String, Value>, value: &'a Value, deep: usize) -> bool {
        let one = SAME_ONE.iter().filter_map(|name| schema.get(*name));
        let list = SAME_LIST.iter().filter_map(|name| schema.get(*name)?.as_array()).flatten();
        let table = SAME_TABLE.iter().filter_map(|name| schema.get(*name)?.as_object()).flat_map(Map::values);
        one.chain(list).chain(table).all(|inner| self.count(inner, value, deep + 1))
    }

    fn parts(&mut self, schema: &'a Map<String, Value>, value: &'a Value, deep: usize) -> bool {
        let parts: Vec<&'a Value> = match value {
            Value::Object(members) => members.values().collect(),
            Value::Array(elements) => elements.iter().collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return true,
        };
        let of_all = PART_ONE.iter().filter_map(|name| schema.get(*name));
        let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::values);
        let names = schema.get("propertyNames").into_iter();
        for inner in of_all.chain(patterns).chain(names) {
            if !parts.iter().all(|part| self.count(inner, part, deep + 1)) {
                return false;
            }
        }
        let by_name = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let named = by_name.filter_map(|(name, inner)| Some((inner, value.get(name)?)));
        let lists = ["prefixItems", "items"].iter().filter_map(|name| schema.get(*name)?.as_array());
        let placed = lists.flat_map(|list| list.iter().zip(parts.iter().copied()));
        let all: Vec<_> = named.chain(placed).collect();
        all.into_iter().all(|(inner, part)| self.count(inner, part, deep + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn realistic_schemas_are_validated_completely() {
        let tree = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
            "$defs": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}}
        });
        let leaf = json!({"name": "x", "children": []});
        let value = json!({"name": "x", "children": vec![json!({"name": "y", "children": vec![leaf; 100]}); 50]});
        assert_eq!(excess_reason(&tree, &value), None);
        assert_eq!(excess_reason(&json!({"$ref": "#"}), &value), None);
    }

    #[test]
    fn exponentially_growing_schemas_are_not_evaluated() {
        let mut parts = serde_json::Map::new();
        for level in 0..64 {
            let next = format!("#/$defs/a{}", level + 1);
            parts.insert(format!("a{level}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        }
        parts.insert("a64".to_owned(), json!({"type": "object"}));
        assert!(excess_reason(&json!({"$ref": "#/$defs/a0", "$defs": parts}), &json!({})).is_some());
        // The same with a deep value.
        let twice = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let mut deep = json!(1);
        for _ in 0..60 {
            deep = json!({"a": deep});
        }
        assert!(excess_reason(&twice, &deep).is_some());
        assert_eq!(excess_reason(&twice, &json!({"a": {"a": 1}})), None);
    }

    #[test]
    fn schemas_with_unsupported_references_are_not_evaluated() {
        for schema in [
            json!({"properties": {"a": {"$id": "other", "$ref": "#/x"}}}),
            json!({"items": {"$dynamicRef": "#node"}}),
            json!({"items": {"$ref": "https://example.org/schema"}}),
            json!({"items": {"$ref": "file:///etc/passwd"}}),
            json!({"anyOf": vec![json!({"pattern": "(a{1000}){1000}"}); 40]}),
        ] {
            assert!(unsuitable_reason(&schema).is_some(), "{schema}");
        }
        let plain = json!({
            "$id": "https://example.org/s",
            "properties": {"id": {"type": "string"}, "$ref": {"type": "string"}, "b": {"$ref": "#/properties/id"}}
        });
        assert_eq!(unsuitable_reason(&plain), None);
    }
}
