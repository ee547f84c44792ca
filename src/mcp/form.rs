//! Forms that a server asks the user to fill in (elicitation): conversion of the schema to fields, and validation of
//! the answers.

use super::failure::truncate;
use super::limits::{DESCRIPTION_BYTES, FORM_CHOICES, FORM_FIELDS, NAME_BYTES};
use crate::protocol::{FieldKind, FormField};
use serde_json::{Map, Value};

/// Returns the form's fields in the server's order. Returns an error if the schema contains anything other than simple
/// fields.
pub(super) fn fields(schema: &Value, order: Option<&[String]>) -> Result<Vec<FormField>, String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Err("the form has no fields".to_owned());
    };
    if properties.len() > FORM_FIELDS {
        return Err(format!("the form has more than {FORM_FIELDS} fields"));
    }
    let required = texts(schema.get("required"));
    let mut named: Vec<(&String, &Value)> = properties.iter().collect();
    if let Some(order) = order {
        named.sort_by_key(|(name, _)| order.iter().position(|other| other == *name).unwrap_or(usize::MAX));
    }
    named.into_iter().map(|(name, field)| parse_field(name, field, required.contains(name))).collect()
}

fn parse_field(name: &str, field: &Value, required: bool) -> Result<FormField, String> {
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err("a form field has no valid name".to_owned());
    }
    let text = |key: &str| field.get(key).and_then(Value::as_str).map(|text| truncate(text, DESCRIPTION_BYTES).into_owned());
    let takes = kind(field).ok_or_else(|| format!("the form field `{}` has an unsupported type", truncate(name, 64)))?;
    let mut asked = FormField {
        name: name.to_owned(),
        title: text("title"),
        description: text("description"),
        required,
        default: field.get("default").filter(|default| !default.is_null()).cloned(),
        takes,
    };
    // Ignore an invalid default.
    if asked.default.as_ref().is_some_and(|default| mismatch(&asked, default).is_some()) {
        asked.default = None;
    }
    Ok(asked)
}

fn kind(field: &Value) -> Option<FieldKind> {
    let whole_number = |key: &str| field.get(key).and_then(Value::as_u64);
    let number = |key: &str| field.get(key).and_then(Value::as_f64);
    match field.get("type").and_then(Value::as_str)? {
        "string" => Some(match choices(field, "oneOf").ok()? {
            Some(choices) => FieldKind::Choice { choices },
            None => FieldKind::Text {
                min_length: whole_number("minLength"),
                max_length: whole_number("maxLength"),
                format: field.get("format").and_then(Value::as_str).map(str::to_owned),
            },
        }),
        "number" => Some(FieldKind::Number { whole: false, minimum: number("minimum"), maximum: number("maximum") }),
        "integer" => Some(FieldKind::Number { whole: true, minimum: number("minimum"), maximum: number("maximum") }),
        "boolean" => Some(FieldKind::Flag),
        "array" => {
            let choices = choices(field.get("items")?, "anyOf").ok()??;
            Some(FieldKind::Choices { choices, min: whole_number("minItems"), max: whole_number("maxItems") })
        }
        _ => None,
    }
}

/// Marker for choices that a form cannot present, because of their type or number.
struct UnsupportedChoices;

/// Returns the choices with their labels, or `None` if the field is not restricted to certain values.
fn choices(field: &Value, titled: &str) -> Result<Option<Vec<(String, String)>>, UnsupportedChoices> {
    let called = |value: &str, title: Option<&str>| (value.to_owned(), truncate(title.unwrap_or(value), NAME_BYTES).into_owned());
    let titles = field.get(titled).or_else(|| field.get("oneOf")).and_then(Value::as_array);
    let found: Vec<_> = if let Some(titles) = titles {
        let one = |choice: &Value| Some(called(choice.get("const")?.as_str()?, choice.get("title").and_then(Value::as_str)));
        titles.iter().map(one).collect::<Option<_>>().ok_or(UnsupportedChoices)?
    } else if let Some(values) = field.get("enum").and_then(Value::as_array) {
        let names = field.get("enumNames").and_then(Value::as_array);
        let name = |at: usize| names.and_then(|names| names.get(at)).and_then(Value::as_str);
        values
            .iter()
            .enumerate()
            .map(|(at, value)| Some(called(value.as_str()?, name(at))))
            .collect::<Option<_>>()
            .ok_or(UnsupportedChoices)?
    } else {
        return Ok(None);
    };
    if found.is_empty() || found.len() > FORM_CHOICES { Err(UnsupportedChoices) } else { Ok(Some(found)) }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Validates an answer, and fills in defaults. Returns an error if a value is invalid or missing, or if it belongs to
/// no field.
pub(super) fn answer(fields: &[FormField], mut content: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut answer = Map::new();
    for field in fields {
        let given = content.remove(&field.name).filter(|value| !value.is_null());
        match given.or_else(|| field.default.clone()) {
            Some(value) => match mismatch(field, &value) {
                Some(reason) => return Err(format!("`{}` {reason}", field.name)),
                None => {
                    answer.insert(field.name.clone(), value);
                }
            },
            None if field.required => return Err(format!("`{}` is missing", field.name)),
            None => {}
        }
    }
    match content.keys().next() {
        Some(name) => Err(format!("`{}` is not a field of the form", truncate(name, 64))),
        None => Ok(answer),
    }
}

/// Returns the reason why a value is not valid for a field, or `None` if it is.
fn mismatch(field: &FormField, value: &Value) -> Option<String> {
    let chosen = |choices: &[(String, String)], value: &Value| choices.iter().any(|(choice, _)| value.as_str() == Some(choice));
    match &field.takes {
        FieldKind::Text { min_length, max_length, format } => {
            let Some(text) = value.as_str() else { return Some("must be text".to_owned()) };
            let length = text.chars().count() as u64;
            if min_length.is_some_and(|least| length < least) {
                return Some(format!("must have at least {} characters", min_length.unwrap_or_default()));
            }
            if max_length.is_some_and(|most| length > most) {
                return Some(format!("must have at most {} characters", max_length.unwrap_or_default()));
            }
            let format = format.as_deref()?;
            (!is_of(format, text)).then(|| format!("is not a valid {format}"))
        }
        FieldKind::Number { whole, minimum, maximum } => {
            let Some(number) = value.as_f64() else { return Some("must be a number".to_owned()) };
            if *whole && number.fract() != 0.0 {
                return Some("must be a whole number".to_owned());
            }
            match (minimum, maximum) {
                (Some(least), _) if number < *least => Some(format!("must be at least {least}")),
                (_, Some(most)) if number > *most => Some(format!("must be at most {most}")),
                _ => None,
            }
        }
        FieldKind::Flag => (!value.is_boolean()).then(|| "must be true or false".to_owned()),
        FieldKind::Choice { choices } => (!chosen(choices, value)).then(|| "is not one of the choices".to_owned()),
        FieldKind::Choices { choices, min, max } => {
            let Some(values) = value.as_array() else { return Some("must be a list".to_owned()) };
            let count = values.len() as u64;
            if !values.iter().all(|value| chosen(choices, value)) {
                return Some("contains a value that is not one of the choices".to_owned());
            }
            match (min, max) {
                (Some(least), _) if count < *least => Some(format!("needs at least {least} choices")),
                (_, Some(most)) if count > *most => Some(format!("allows at most {most} choices")),
                _ => None,
            }
        }
    }
}

/// Returns whether a text has this format. An unknown format accepts any text.
fn is_of(format: &str, text: &str) -> bool {
    match format {
        "email" => {
            let parts = text.rsplit_once('@');
            parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace))
        }
        "uri" => url::Url::parse(text).is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    }
}
