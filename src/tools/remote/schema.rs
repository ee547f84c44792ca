//! The schemas of a server's tool: what the model is told of them, and values held against them.

use super::bound::{too_much, unfit};
use crate::text::clean;
use crate::tools::custom::Schema;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// A schema that values can be held against; made when it is first needed.
#[derive(Default)]
pub(super) struct Checked {
    made: OnceLock<Result<Schema, String>>,
}

/// What came of holding a value against a schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// What is wrong with the value.
    Wrong(String),
    /// What is wrong with the schema: it says nothing of any value.
    Unknown(String),
}

impl Checked {
    pub(super) fn check(&self, schema: &Value, value: &Value) -> Fit {
        let made = self.made.get_or_init(|| match unfit(schema) {
            Some(why) => Err(why.to_owned()),
            None => Schema::new(schema.clone()),
        });
        match made {
            Err(why) => Fit::Unknown(clean(why).into_owned()),
            Ok(made) => match too_much(schema, value) {
                Some(why) => Fit::Unknown(why.to_owned()),
                None => made.check(value).map_or_else(|why| Fit::Wrong(clean(&why).into_owned()), |()| Fit::Fits),
            },
        }
    }
}

/// The schema as the model is told it: an object, without letters that nobody sees in what is said to people.
pub(super) fn told(schema: &Value) -> Value {
    let mut told = match schema {
        Value::Object(members) => members.clone(),
        _ => Map::new(),
    };
    told.entry("type").or_insert_with(|| json!("object"));
    told.remove("$schema");
    let mut told = Value::Object(told);
    clean_words(&mut told);
    told
}

fn clean_words(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, inner) in members.iter_mut() {
                match inner {
                    Value::String(words) if ["description", "title", "$comment"].contains(&name.as_str()) => {
                        if let std::borrow::Cow::Owned(cleaned) = clean(words) {
                            *words = cleaned;
                        }
                    }
                    _ => clean_words(inner),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(clean_words),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
