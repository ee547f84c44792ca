//! How a model's arguments become a typed struct: the schema it was told, the names it may also use, the words for what is wrong.

use super::tool::invalid;
use crate::protocol::ToolError;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Names that models use out of habit, and the one they stand for. Taken where the schema knows the second and not the first.
const ALIASES: &[(&str, &[&str])] = &[
    ("path", &["file_path", "filepath", "file", "filename", "file_name", "directory", "dir", "target_file"]),
    ("content", &["contents", "text", "file_text"]),
    ("oldText", &["old_string", "old_str", "search", "old"]),
    ("newText", &["new_string", "new_str", "replace", "replacement", "new"]),
    ("replaceAll", &["replace_all_occurrences"]),
    ("createDirectories", &["create_parents", "mkdir"]),
    ("command", &["cmd", "script", "line"]),
    ("cwd", &["workdir", "working_directory", "directory"]),
    ("timeout", &["timeout_seconds", "timeout_s"]),
    ("stdin", &["input"]),
    ("pattern", &["query", "regex"]),
    ("ignoreCase", &["case_insensitive"]),
    ("glob", &["include", "file_pattern"]),
    ("limit", &["max_lines", "num_lines"]),
    ("offset", &["start_line", "start"]),
];

/// The JSON Schema of `T`, in the plain form that every provider takes.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut value);
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
                if object.get("type").is_some_and(|kind| kind == "object") {
                    object.insert("additionalProperties".to_owned(), Value::Bool(false));
                }
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(values) => values.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The arguments as `T`, or a sentence that names the one that is wrong.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    let mut value = Value::Object(arguments);
    rename(&mut value, &schema::<T>(), "")?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner().to_string();
        let at = if path == "." || path.is_empty() { String::new() } else { format!("`{path}`: ") };
        invalid(format!("{at}{reason}"))
    })
}

/// Puts every argument under its own name, and refuses one that has no meaning: it would be ignored, and the call not be what was meant.
fn rename(value: &mut Value, schema: &Value, at: &str) -> Result<(), ToolError> {
    match value {
        Value::Object(object) => {
            let Some(known) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
            let required: Vec<&str> =
                schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            for (name, given) in std::mem::take(object) {
                let own = own_name(&name, known).ok_or_else(|| unknown(&name, known, at))?;
                if given.is_null() && !required.contains(&own) {
                    continue;
                }
                if object.insert(own.to_owned(), given).is_some() {
                    return Err(invalid(format!("`{at}{own}` is given twice")));
                }
            }
            for (name, inner) in object.iter_mut() {
                rename(inner, &known[name], &format!("{at}{name}."))?;
            }
            Ok(())
        }
        Value::Array(values) => {
            let Some(items) = schema.get("items") else { return Ok(()) };
            let at = at.strip_suffix('.').unwrap_or(at);
            values.iter_mut().enumerate().try_for_each(|(index, inner)| rename(inner, items, &format!("{at}[{index}].")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn own_name<'a>(name: &'a str, known: &'a Map<String, Value>) -> Option<&'a str> {
    if let Some((own, _)) = known.get_key_value(name) {
        return Some(own);
    }
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    if let Some(own) = known.keys().find(|own| plain(own) == plain(name)) {
        return Some(own);
    }
    let habit = |other: &&str| plain(other) == plain(name);
    ALIASES.iter().find(|(own, others)| known.contains_key(*own) && others.iter().any(habit)).map(|(own, _)| *own)
}

fn unknown(name: &str, known: &Map<String, Value>, at: &str) -> ToolError {
    let closest = known.keys().map(|own| (strsim::jaro_winkler(own, name), own)).max_by(|left, right| left.0.total_cmp(&right.0));
    let hint = match closest {
        Some((score, own)) if score > 0.75 => format!("did you mean `{own}`?"),
        _ => format!("expected {}", known.keys().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ")),
    };
    invalid(format!("`{at}{name}` is not an argument of this tool; {hint}"))
}
