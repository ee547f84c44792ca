//! Converts the arguments that a model sends to typed structs, and provides the matching JSON Schema and error
//! messages.

use super::argument_names::normalize;
use super::error::invalid;
use crate::protocol::{CallArguments, ToolError};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the JSON Schema of `T` in a simple form that every provider accepts.
pub(super) fn schema<T: JsonSchema>() -> Value {
    Value::clone(&schema_for::<T>())
}

/// Returns the JSON Schema of `T`. It is cached, because every call is checked against it.
fn schema_for<T: JsonSchema>() -> Arc<Value> {
    static MADE: Mutex<BTreeMap<Cow<'static, str>, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(made.entry(T::schema_id()).or_insert_with(|| Arc::new(make::<T>())))
}

fn make<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut value);
    // The doc comment of the struct is meant for readers of the code.
    if let Some(object) = value.as_object_mut() {
        object.remove("description");
    }
    value
}

/// Removes titles, number formats, and the `null` type of optional values.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let is_schema = object.contains_key("type");
            if is_schema {
                object.remove("title");
                object.remove("format");
                if let Some(Value::Array(types)) = object.get("type") {
                    let first = types.iter().find(|kind| *kind != "null").cloned();
                    object.insert("type".to_owned(), first.unwrap_or_else(|| "string".into()));
                }
                if let Some(Value::Array(choices)) = object.get_mut("enum") {
                    choices.retain(|choice| !choice.is_null());
                }
                // A map declares the type of its values itself.
                if object.get("type").is_some_and(|kind| kind == "object") && !object.contains_key("additionalProperties") {
                    object.insert("additionalProperties".to_owned(), Value::Bool(false));
                }
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(values) => values.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes limits that a request need not contain, because a call that exceeds one fails with an error that states the
/// limit.
pub(super) fn without_bounds(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.contains_key("type") {
                for name in ["minimum", "maximum"] {
                    object.remove(name);
                }
                if object.get("additionalProperties") == Some(&Value::Bool(false)) && object.contains_key("properties") {
                    object.remove("additionalProperties");
                }
            }
            object.values_mut().for_each(without_bounds);
        }
        Value::Array(values) => values.iter_mut().for_each(without_bounds),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Parses the arguments as `T`.
///
/// # Errors
///
/// Returns an error that identifies the invalid argument.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    let mut value = Value::Object(arguments);
    normalize(&mut value, &schema_for::<T>(), "")?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner().to_string();
        let at = if path == "." || path.is_empty() { String::new() } else { format!("`{path}`: ") };
        invalid(format!("{at}{reason}; fix that and call again"))
    })
}

/// Returns a call's arguments as an object, or an error that quotes them if they are malformed.
pub(super) fn object(arguments: &CallArguments) -> Result<Map<String, Value>, ToolError> {
    match arguments {
        CallArguments::Object(object) => Ok(object.clone()),
        CallArguments::Malformed(text) => {
            let shown: String = text.chars().take(200).collect();
            let reason =
                serde_json::from_str::<Map<String, Value>>(text).err().map(|error| format!(" ({error})")).unwrap_or_default();
            Err(invalid(format!(
                "the arguments are not a JSON object{reason}: `{shown}`; send the call again with a JSON object"
            )))
        }
    }
}
