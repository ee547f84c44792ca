use super::super::schema::convert_parameters;
use serde_json::{Value, json};

#[track_caller]
fn check(given: Value, expected: Value) {
    let property = json!({"type": "object", "$defs": given.get("$defs"), "properties": {"p": given}});
    assert_eq!(convert_parameters(&property)["properties"]["p"], expected, "{property}");
}

/// Collects all keywords used in a schema and its subschemas.
fn words(schema: &Value, found: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else { return };
    for (word, value) in schema {
        found.push(word.clone());
        match (word.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values().for_each(|property| words(property, found)),
            ("anyOf" | "prefixItems", Value::Array(several)) => several.iter().for_each(|one| words(one, found)),
            ("items" | "additionalProperties", one) => words(one, found),
            _ => {}
        }
    }
}

#[test]
fn supported_schema_keywords_are_unchanged() {
    let schema = json!({
        "type": "object",
        "description": "d",
        "properties": {
            "path": {"type": "string", "description": "where", "minLength": 1},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
            "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "maybe": {"type": ["string", "null"]},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    assert_eq!(convert_parameters(&schema), schema);
}

#[test]
fn unsupported_schema_keywords_are_converted_or_omitted() {
    check(json!({"const": "a"}), json!({"type": "string", "enum": ["a"]}));
    check(json!({"type": "boolean", "const": true}), json!({"type": "boolean"}));
    check(json!({"enum": ["a", null, ""], "type": "string"}), json!({"type": "string", "enum": ["a"]}));
    check(json!({"enum": [1, "a"]}), json!({}));
    check(json!({"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2, "format": "uint32"}), json!({"type": "integer"}));
    check(json!({"type": "string", "format": "uri", "contentEncoding": "x"}), json!({"type": "string"}));
    check(json!({"type": "object", "patternProperties": {"a": {}}, "propertyNames": {}}), json!({"type": "object"}));
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
    );
    check(json!({"type": "object", "required": ["b"]}), json!({"type": "object"}));
    check(json!(true), json!({}));
}

#[test]
fn alternatives_are_converted_to_any_of() {
    let choice = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    check(json!({"oneOf": [{"type": "string"}, {"type": "integer", "$comment": "c"}]}), choice);
    check(json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({}));
    check(
        json!({"type": ["array", "string", "null"], "items": {"type": "string"}, "description": "d", "minLength": 1}),
        json!({"description": "d", "anyOf": [
            {"type": "array", "items": {"type": "string"}}, {"type": "string", "minLength": 1}, {"type": "null"}]}),
    );
}

#[test]
fn all_of_schemas_are_merged() {
    check(
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"], "description": "d"}]}),
        json!({"type": "object", "description": "d",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
    );
}

#[test]
fn references_are_inlined_and_recursive_ones_are_cut_off() {
    let schema = json!({
        "type": "object",
        "$defs": {"id": {"type": "string", "minLength": 3}, "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}}},
        "properties": {
            "id": {"$ref": "#/$defs/id", "description": "whose"},
            "gone": {"$ref": "#/$defs/none"},
            "far": {"$ref": "https://example.com/x.json"},
            "tree": {"$ref": "#/$defs/tree"},
            "all": {"$ref": "#"},
        },
    });
    let written = convert_parameters(&schema);
    assert_eq!(written["properties"]["id"], json!({"type": "string", "minLength": 3, "description": "whose"}));
    assert_eq!((&written["properties"]["gone"], &written["properties"]["far"]), (&json!({}), &json!({})));
    assert_eq!(written["properties"]["tree"]["properties"]["next"]["type"], "object");
    let size = written.to_string().len();
    assert!(size < 200_000, "{size}");
    let mut found = Vec::new();
    words(&written, &mut found);
    assert!(found.iter().all(|word| !word.starts_with('$')), "{found:?}");
}

#[test]
fn parameters_are_always_an_object_schema() {
    let nothing = json!({"type": "object", "properties": {}});
    for given in [json!({}), json!(null), json!(true), json!({"type": "object"}), json!({"oneOf": [{"type": "string"}]})] {
        assert_eq!(convert_parameters(&given), nothing, "{given}");
    }
}
