//! Conversion of argument schemas to the subset of JSON Schema that the API supports. An unsupported keyword would make
//! the API reject the request or would be silently ignored.

use serde_json::{Map, Value, json};

/// Maximum nesting depth of schemas. Beyond it, any value is allowed, because references may be recursive.
const MAX_DEPTH: usize = 16;
const MAX_SCHEMAS: usize = 2_000;

/// Keywords that are copied unchanged.
const PLAIN: [&str; 12] = [
    "title",
    "description",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "default",
];
const FORMATS: [&str; 7] = ["date-time", "date", "time", "int32", "int64", "float", "double"];

/// Converts the parameter schema of a function. The result always describes an object.
pub(super) fn convert_parameters(schema: &Value) -> Value {
    let mut writer = SchemaWriter { root: schema, left: MAX_SCHEMAS };
    let mut written = match writer.write(schema, 0) {
        Value::Object(written) if !written.contains_key("anyOf") || written.contains_key("properties") => written,
        // For a choice of objects, the tool itself reports the accepted objects.
        _ => Map::new(),
    };
    written.insert("type".to_owned(), json!("object"));
    written.entry("properties").or_insert_with(|| json!({}));
    Value::Object(written)
}

struct SchemaWriter<'a> {
    root: &'a Value,
    left: usize,
}

impl SchemaWriter<'_> {
    fn write(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH && self.left > 0) else { return json!({}) };
        self.left -= 1;
        let mut out = Map::new();
        for word in PLAIN {
            if let Some(value) = schema.get(word) {
                out.insert(word.to_owned(), value.clone());
            }
        }
        if let Some(format) = schema.get("format").filter(|format| format.as_str().is_some_and(|name| FORMATS.contains(&name))) {
            out.insert("format".to_owned(), format.clone());
        }
        self.children(schema, depth, &mut out);
        values(schema, &mut out);
        self.choices(schema, depth, &mut out);
        let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten().cloned();
        for whole in self.target(schema).into_iter().chain(all) {
            if let Value::Object(more) = self.write(&whole, depth + 1) {
                join(&mut out, more);
            }
        }
        drop_undeclared_required(&mut out);
        Value::Object(out)
    }

    fn children(&mut self, schema: &Map<String, Value>, depth: usize, out: &mut Map<String, Value>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let written = properties.iter().map(|(name, property)| (name.clone(), self.write(property, depth + 1))).collect();
            out.insert("properties".to_owned(), Value::Object(written));
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(any)) => drop(out.insert("additionalProperties".to_owned(), json!(any))),
            Some(each @ Value::Object(_)) => drop(out.insert("additionalProperties".to_owned(), self.write(each, depth + 1))),
            Some(_) | None => {}
        }
        match schema.get("items") {
            Some(Value::Array(each)) => {
                let each: Vec<Value> = each.iter().map(|item| self.write(item, depth + 1)).collect();
                out.insert("prefixItems".to_owned(), Value::Array(each));
            }
            Some(item) => drop(out.insert("items".to_owned(), self.write(item, depth + 1))),
            None => {}
        }
        if let Some(each) = schema.get("prefixItems").and_then(Value::as_array) {
            let each: Vec<Value> = each.iter().map(|item| self.write(item, depth + 1)).collect();
            out.insert("prefixItems".to_owned(), Value::Array(each));
        }
        if let Some(required) = schema.get("required").filter(|required| required.is_array()) {
            out.insert("required".to_owned(), required.clone());
        }
    }

    /// Converts `anyOf`, `oneOf`, and lists of types.
    fn choices(&mut self, schema: &Map<String, Value>, depth: usize, out: &mut Map<String, Value>) {
        if let Some(choices) = ["anyOf", "oneOf"].into_iter().find_map(|word| schema.get(word)).and_then(Value::as_array) {
            let written: Vec<Value> = choices.iter().map(|choice| self.write(choice, depth + 1)).collect();
            // The API does not support choices that only list which properties occur together.
            if written
                .iter()
                .any(|choice| choice.get("type").is_some() || choice.get("anyOf").is_some() || choice.get("enum").is_some())
            {
                out.insert("anyOf".to_owned(), Value::Array(written));
            }
        }
        match schema.get("type") {
            Some(Value::String(kind)) => drop(out.insert("type".to_owned(), json!(kind))),
            Some(Value::Array(kinds)) => several_types(kinds, out),
            Some(_) | None if out.contains_key("properties") => drop(out.insert("type".to_owned(), json!("object"))),
            Some(_) | None => {}
        }
    }

    /// Resolves a `$ref` that points into the same schema.
    fn target(&self, schema: &Map<String, Value>) -> Option<Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer).cloned()
    }
}

/// Converts `const` and `enum`. Values that are neither strings nor numbers are replaced with just their type.
fn values(schema: &Map<String, Value>, out: &mut Map<String, Value>) {
    let given = match (schema.get("enum"), schema.get("const")) {
        (_, Some(one)) => vec![one.clone()],
        (Some(Value::Array(several)), None) => several.clone(),
        _ => return,
    };
    let told: Vec<Value> =
        given.into_iter().filter(|value| value.is_number() || value.as_str().is_some_and(|text| !text.is_empty())).collect();
    let kind = match told.first() {
        Some(_) if told.iter().all(Value::is_string) => "string",
        Some(_) if told.iter().all(Value::is_number) => "number",
        // The API does not support mixed types.
        Some(_) | None => return,
    };
    if !schema.contains_key("type") {
        out.insert("type".to_owned(), json!(kind));
    }
    out.insert("enum".to_owned(), Value::Array(told));
}

/// Converts a list of types. A single type, possibly combined with null, is converted to that type. Several types are
/// converted to a choice.
fn several_types(kinds: &[Value], out: &mut Map<String, Value>) {
    let nothing = kinds.iter().any(|kind| kind == "null");
    let real: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
    match real.as_slice() {
        [] => {}
        [one] if nothing => drop(out.insert("type".to_owned(), json!([one, "null"]))),
        [one] => drop(out.insert("type".to_owned(), (*one).clone())),
        several => {
            let of = |kind: &Value| -> &[&str] {
                match kind.as_str() {
                    Some("array") => &["items", "prefixItems", "minItems", "maxItems"],
                    Some("object") => &["properties", "required", "additionalProperties", "minProperties", "maxProperties"],
                    Some("string") => &["pattern", "minLength", "maxLength", "format"],
                    Some("number" | "integer") => &["minimum", "maximum"],
                    _ => &[],
                }
            };
            let choices = several.iter().map(|kind| {
                let mut choice = Map::from_iter([("type".to_owned(), (*kind).clone())]);
                choice.extend(of(kind).iter().filter_map(|word| Some(((*word).to_owned(), out.get(*word)?.clone()))));
                Value::Object(choice)
            });
            let mut choices: Vec<Value> = choices.collect();
            if nothing {
                choices.push(json!({"type": "null"}));
            }
            for word in several.iter().flat_map(|kind| of(kind)) {
                out.remove(*word);
            }
            out.insert("anyOf".to_owned(), Value::Array(choices));
        }
    }
}

/// Merges a schema into another one. `properties` and `required` are combined; for any other keyword, the first value
/// is kept.
fn join(out: &mut Map<String, Value>, more: Map<String, Value>) {
    for (word, value) in more {
        match (out.get_mut(&word), value) {
            (Some(Value::Object(known)), Value::Object(new)) if word == "properties" => {
                for (name, property) in new {
                    known.entry(name).or_insert(property);
                }
            }
            (Some(Value::Array(known)), Value::Array(new)) if word == "required" => {
                known.extend(new.into_iter().filter(|name| !known.contains(name)).collect::<Vec<_>>());
            }
            (Some(_), _) => {}
            (None, value) => drop(out.insert(word, value)),
        }
    }
}

/// Removes properties that are not declared from `required`, because the API rejects them.
fn drop_undeclared_required(out: &mut Map<String, Value>) {
    let Some(Value::Array(mut required)) = out.remove("required") else { return };
    let properties = out.get("properties").and_then(Value::as_object);
    required.retain(|name| name.as_str().is_some_and(|name| properties.is_some_and(|known| known.contains_key(name))));
    if !required.is_empty() {
        out.insert("required".to_owned(), Value::Array(required));
    }
}
