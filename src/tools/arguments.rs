//! How a model's arguments become a typed struct: the schema it was told, the words for what is wrong.

use super::habits::settle;
use super::tool::invalid;
use crate::protocol::ToolError;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The JSON Schema of `T`, in the plain form that every provider takes.
pub(super) fn schema<T: JsonSchema>() -> Value {
    Value::clone(&made::<T>())
}

/// The same, made once: every call is checked against it.
fn made<T: JsonSchema>() -> Arc<Value> {
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
    // What the struct is for is said to who reads its code.
    if let Some(object) = value.as_object_mut() {
        object.remove("description");
    }
    value
}

/// Without titles and number formats; what may be absent need not be called nullable as well.
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
                // A map says itself what its values are.
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

/// Takes out of a schema what a model needs in no request: the error of a call that breaks a bound names it.
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

/// The arguments as `T`, or a sentence that names the one that is wrong.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    let mut value = Value::Object(arguments);
    settle(&mut value, &made::<T>(), "")?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner().to_string();
        let at = if path == "." || path.is_empty() { String::new() } else { format!("`{path}`: ") };
        invalid(format!("{at}{reason}; fix that and call again"))
    })
}
