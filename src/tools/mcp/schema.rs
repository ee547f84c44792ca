//! Schemas of MCP tools: converts them to the form that the model receives, and validates values.

use super::schema_cost::{excess_reason, unsuitable_reason};
use crate::text::clean;
use crate::tools::custom::ToolSchema;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// A schema that is compiled when it is first used.
#[derive(Default)]
pub(super) struct CompiledSchema {
    made: OnceLock<Result<ToolSchema, String>>,
}

/// Result of validating a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// The value does not match, for this reason.
    Wrong(String),
    /// The schema cannot be used for validation, for this reason.
    Unknown(String),
}

impl CompiledSchema {
    pub(super) fn check(&self, schema: &Value, value: &Value) -> Fit {
        let made = self.made.get_or_init(|| match unsuitable_reason(schema) {
            Some(why) => Err(why.to_owned()),
            None => ToolSchema::new(schema.clone()),
        });
        match made {
            Err(why) => Fit::Unknown(clean(why).into_owned()),
            Ok(made) => match excess_reason(schema, value) {
                Some(why) => Fit::Unknown(why.to_owned()),
                None => made.check(value).map_or_else(|why| Fit::Wrong(clean(&why).into_owned()), |()| Fit::Fits),
            },
        }
    }
}

/// Returns the schema that the model receives: an object whose descriptions contain no invisible characters.
pub(super) fn for_model(schema: &Value) -> Value {
    let mut told = match schema {
        Value::Object(members) => members.clone(),
        _ => Map::new(),
    };
    told.entry("type").or_insert_with(|| json!("object"));
    told.remove("$schema");
    let mut told = Value::Object(told);
    clean_descriptions(&mut told);
    told
}

fn clean_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, inner) in members.iter_mut() {
                match inner {
                    Value::String(words) if ["description", "title", "$comment"].contains(&name.as_str()) => {
                        if let std::borrow::Cow::Owned(cleaned) = clean(words) {
                            *words = cleaned;
                        }
                    }
                    _ => clean_descriptions(inner),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(clean_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
