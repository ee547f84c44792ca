//! Recognizes common deviations from a schema in models' calls, and corrects them if the intended meaning is clear.

use super::argument_shapes::{normalize_name, reshape, unwrap};
use super::error::invalid;
use crate::protocol::ToolError;
use serde_json::{Map, Value};

/// Argument names that models use out of habit. An alias applies only if the schema contains the real name and not the
/// alias.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "path",
        &[
            "file_path",
            "filepath",
            "file",
            "filename",
            "file_name",
            "directory",
            "dir",
            "target_file",
            "absolute_path",
            "dir_path",
            "directory_path",
            "notebook_path",
        ],
    ),
    ("source", &["src", "from", "old_path", "source_path", "source_file", "origin", "path", "file_path"]),
    ("destination", &["dest", "dst", "to", "new_path", "target", "destination_path", "destination_file", "target_path"]),
    ("recursive", &["recurse", "-r"]),
    ("agent", &["subagent_type", "agent_type", "agent_name", "name"]),
    ("prompt", &["message", "task", "instructions"]),
    ("content", &["contents", "text", "file_text", "new_content", "new_text", "replacement"]),
    ("oldText", &["old_string", "old_str", "search", "old"]),
    ("newText", &["new_string", "new_str", "replace", "replacement", "new"]),
    ("replaceAll", &["replace_all_occurrences"]),
    ("patch", &["input", "diff", "patch_text", "content", "text"]),
    ("createDirectories", &["create_parents", "mkdir"]),
    ("command", &["cmd", "script", "line"]),
    ("cwd", &["workdir", "working_directory", "directory"]),
    ("timeout", &["timeout_seconds", "timeout_s"]),
    ("stdin", &["input"]),
    ("pattern", &["query", "regex", "glob"]),
    ("ignoreCase", &["case_insensitive", "-i"]),
    ("context", &["context_lines", "-C"]),
    ("before", &["before_context", "context_before", "-B"]),
    ("after", &["after_context", "context_after", "-A"]),
    ("lineNumbers", &["-n", "line_number", "show_line_numbers"]),
    ("output", &["output_mode", "mode"]),
    ("maxResults", &["head_limit", "max_count", "max_matches", "limit", "-m"]),
    ("word", &["whole_word", "match_whole_word", "-w"]),
    ("literal", &["fixed_strings", "-F"]),
    ("type", &["file_type", "types", "-t"]),
    ("hidden", &["include_hidden", "show_hidden"]),
    ("noIgnore", &["include_ignored"]),
    ("depth", &["max_depth"]),
    ("details", &["long", "-l"]),
    ("url", &["uri", "link"]),
    ("body", &["data"]),
    ("glob", &["include", "file_pattern", "include_pattern", "globs", "-g", "pattern"]),
    ("id", &["session_id", "session", "command_id", "shell_id", "bash_id", "process_id", "pid"]),
    ("text", &["input", "chars", "keys_text", "data", "line", "command"]),
    ("waitSeconds", &["wait", "timeout", "timeout_seconds", "yield_time"]),
    ("background", &["run_in_background", "is_background"]),
    ("columns", &["cols", "width"]),
    ("rows", &["lines", "height"]),
    ("limit", &["max_lines", "num_lines"]),
    ("offset", &["start_line", "start"]),
    ("filePath", &["path", "file", "filename", "file_name", "target_file"]),
    ("start_line", &["offset", "start"]),
    ("end_line", &["end"]),
    ("section", &["heading", "target", "target_section", "header"]),
    ("startLine", &["offset", "line", "from_line", "start", "line_start", "first_line"]),
    ("endLine", &["to_line", "end", "line_end", "last_line"]),
    ("operation", &["op", "action", "kind", "type"]),
    ("operations", &["patches", "changes"]),
    ("expected", &["expected_text", "old_content", "old_text", "old_string"]),
    ("query", &["pattern", "search", "search_text"]),
    ("algorithm", &["hash", "algo", "hash_type", "type"]),
    ("depth", &["max_depth", "levels"]),
    ("workingDirectory", &["cwd", "workdir", "directory"]),
    ("working_directory", &["cwd", "workdir", "directory"]),
    ("captureStderr", &["stderr"]),
    ("name", &["skill", "skill_name", "command"]),
    ("arguments", &["args", "input"]),
];

/// Names of arguments in which models explain a call. They do not affect the tool and are ignored.
const REMARKS: &[&str] = &["description", "explanation", "justification", "instruction", "prompt", "reason"];

/// Arguments of other agents' tools that have no counterpart and do not change what the call does, with two arguments
/// by which the tool is recognized.
const IGNORED: &[(&str, &str, &[&str])] = &[
    ("agent", "prompt", &["model", "run_in_background", "isolation", "reasoning_effort", "max_turns"]),
    ("question", "options", &["header", "multiSelect", "id"]),
    ("content", "status", &["activeForm", "id", "priority"]),
];

/// Maximum number of characters of an invalid value to quote in an error.
const MAX_SHOWN_CHARACTERS: usize = 80;

/// Converts the names and types in `value` to those in `schema`. Unknown or ambiguous arguments are errors, because if
/// they were ignored, the call that runs would differ from the intended one.
pub(super) fn normalize(value: &mut Value, schema: &Value, at: &str) -> Result<(), ToolError> {
    list(value, schema);
    retype(value, kind(schema), at)?;
    expect_kind(value, schema, at)?;
    match value {
        Value::Object(object) => {
            let Some(known) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
            if at.is_empty() {
                unwrap(object, known);
                reshape(object, known)?;
            }
            rename(object, schema, known, at)?;
            for (name, inner) in object.iter_mut() {
                normalize(inner, &known[name], &join_path(at, name))?;
            }
            Ok(())
        }
        Value::Array(values) => {
            let Some(items) = schema.get("items") else { return Ok(()) };
            values.iter_mut().enumerate().try_for_each(|(index, inner)| normalize(inner, items, &format!("{at}[{index}]")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn kind(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn join_path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// Converts a string to a list if `schema` expects a list of strings. The string contains either a JSON array or a
/// single element.
fn list(value: &mut Value, schema: &Value) {
    let texts = kind(schema) == "array" && schema.get("items").is_some_and(|items| kind(items) == "string");
    if let Value::String(text) = value
        && texts
    {
        let several = serde_json::from_str::<Vec<String>>(text).ok();
        *value = several.unwrap_or_else(|| vec![std::mem::take(text)]).into();
    }
}

/// Converts a value to the expected type if that preserves its meaning. Any other value is left for the parser to
/// reject.
fn retype(value: &mut Value, kind: &str, at: &str) -> Result<(), ToolError> {
    let meant =
        match (kind, &*value) {
            ("integer", Value::String(text)) => text.trim().parse::<f64>().ok().and_then(whole_number),
            ("integer", Value::Number(number)) if number.is_f64() => number.as_f64().and_then(whole_number),
            ("boolean", Value::String(text)) => text.trim().to_lowercase().parse().ok().map(Value::Bool),
            ("string", Value::Array(values)) => match values.as_slice() {
                [Value::String(only)] => Some(only.as_str().into()),
                _ => None,
            },
            ("array" | "object", Value::String(text)) => {
                let read = serde_json::from_str(text);
                Some(read.map_err(|error| {
                    invalid(format!("`{at}` is a string that is not valid JSON ({error}); send it as an {kind}"))
                })?)
            }
            _ => None,
        };
    if let Some(meant) = meant {
        *value = meant;
    }
    if kind == "array" && value.is_object() {
        *value = Value::Array(vec![value.take()]);
    }
    Ok(())
}

/// Checks the type of a value. The error states the expected type as the schema does.
fn expect_kind(value: &Value, schema: &Value, at: &str) -> Result<(), ToolError> {
    let (fits, expected) = match kind(schema) {
        "integer" => (value.is_u64(), "a whole number, 0 or more"),
        "boolean" => (value.is_boolean(), "`true` or `false`"),
        "string" => (value.is_string(), "a string"),
        "array" => (value.is_array(), "an array"),
        "object" => (value.is_object(), "an object"),
        _ => return Ok(()),
    };
    if fits {
        return Ok(());
    }
    let given = value.to_string();
    let shown: String = given.chars().take(MAX_SHOWN_CHARACTERS).collect();
    let rest = if shown.len() < given.len() { "…" } else { "" };
    Err(invalid(format!("`{at}` is {shown}{rest}; expected {expected}")))
}

/// Converts a number without a fraction, such as `10.0`, to an integer. Returns `None` for other numbers. From 2^53 on,
/// an `f64` is not exact, and no argument is that large.
fn whole_number(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() < EXACT).then(|| Value::from(number as i64))
}

/// Gives arguments the names used in the schema, and moves arguments that belong to a single list item into that item.
fn rename(object: &mut Map<String, Value>, schema: &Value, known: &Map<String, Value>, at: &str) -> Result<(), ToolError> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let list = known.iter().find_map(|(name, schema)| Some((name, schema.get("items")?.get("properties")?.as_object()?)));
    let mut item = Map::new();
    for (name, given) in std::mem::take(object) {
        if REMARKS.contains(&name.as_str()) && !known.contains_key(&name) {
            continue;
        }
        if own_name(&name, known).is_none() && is_ignored(&name, known) {
            continue;
        }
        let (own, into) = match (own_name(&name, known), list) {
            (Some(own), _) => (own, &mut *object),
            (None, Some((_, of_item))) => {
                (own_name(&name, of_item).ok_or_else(|| unknown_argument(&name, known, at))?, &mut item)
            }
            (None, None) => return Err(unknown_argument(&name, known, at)),
        };
        if given.is_null() && !required.contains(&own) {
            continue;
        }
        if into.insert(own.to_owned(), given).is_some() {
            return Err(invalid(format!("`{}` is set twice; remove one", join_path(at, own))));
        }
    }
    let Some((list, _)) = list.filter(|_| !item.is_empty()) else { return Ok(()) };
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if object.get(list).is_none_or(empty) {
        object.insert(list.clone(), Value::Array(vec![item.into()]));
        return Ok(());
    }
    let names: Vec<_> = item.keys().map(|name| format!("`{name}`")).collect();
    Err(invalid(format!("{} next to `{list}`: move it into the matching item of `{list}`", names.join(" and "))))
}

/// Returns whether the call does the same without this argument.
fn is_ignored(name: &str, known: &Map<String, Value>) -> bool {
    let is_name = |other: &&str| normalize_name(other) == normalize_name(name);
    IGNORED.iter().any(|(one, other, names)| known.contains_key(*one) && known.contains_key(*other) && names.iter().any(is_name))
}

fn own_name<'a>(name: &'a str, known: &'a Map<String, Value>) -> Option<&'a str> {
    if let Some((own, _)) = known.get_key_value(name) {
        return Some(own);
    }
    if let Some(own) = known.keys().find(|own| normalize_name(own) == normalize_name(name)) {
        return Some(own);
    }
    let habit = |other: &&str| normalize_name(other) == normalize_name(name);
    ALIASES.iter().find(|(own, others)| known.contains_key(*own) && others.iter().any(habit)).map(|(own, _)| *own)
}

fn unknown_argument(name: &str, known: &Map<String, Value>, at: &str) -> ToolError {
    let closest = known.keys().map(|own| (strsim::jaro_winkler(own, name), own)).max_by(|left, right| left.0.total_cmp(&right.0));
    let hint = match closest {
        Some((score, own)) if score > 0.75 => format!("did you mean `{own}`?"),
        _ => format!("expected {}", known.keys().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ")),
    };
    invalid(format!("`{}` is not an argument of this tool; {hint}", join_path(at, name)))
}
