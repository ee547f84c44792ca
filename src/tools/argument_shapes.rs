//! Converts the argument shapes of other agents' tools to those of aye's tools.

use super::error::invalid;
use crate::policy::line;
use crate::protocol::ToolError;
use serde_json::{Map, Value};

/// Names under which models nest all other arguments.
const WRAPPERS: &[&str] = &["arguments", "args", "input", "parameters", "params"];
/// Arguments of aye's tools, each with the arguments of other agents' tools that have the opposite meaning.
const OPPOSITES: &[(&[&str], &[&str])] = &[
    (&["ignoreCase", "ignore_case"], &["casesensitive", "matchcase"]),
    (&["literal"], &["isregex", "isregexp", "useregex"]),
    (&["noIgnore"], &["respectgitignore"]),
];
const EXCLUDED: &[&str] = &["ignore", "exclude", "excludes", "excludepattern", "excludepatterns"];
const SEVERAL_PATHS: &[&str] = &["paths", "filepaths", "files", "filenames"];
const SHELLS: &[&str] = &["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/env bash"];

/// Normalizes a name by converting it to lower case and removing `_` and `-`, so `case_sensitive` equals
/// `caseSensitive`.
pub(super) fn normalize_name(name: &str) -> String {
    name.replace(['_', '-'], "").to_lowercase()
}

/// If a single wrapper argument contains all other arguments, replaces it with them.
pub(super) fn unwrap(object: &mut Map<String, Value>, known: &Map<String, Value>) {
    let wrapper = match object.iter().next() {
        Some((name, Value::Object(_))) if object.len() == 1 && WRAPPERS.contains(&normalize_name(name).as_str()) => name.clone(),
        _ => return,
    };
    if !known.contains_key(&wrapper)
        && let Some(Value::Object(inner)) = object.remove(&wrapper)
    {
        *object = inner;
    }
}

/// Converts arguments that are not in the schema but can be expressed in it.
pub(super) fn reshape(object: &mut Map<String, Value>, known: &Map<String, Value>) -> Result<(), ToolError> {
    let names: Vec<String> = object.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
    for name in names {
        let meant = match object.get(&name) {
            Some(given) => other_shape(&name, given, known)?,
            None => None,
        };
        let Some(meant) = meant else { continue };
        object.remove(&name);
        for (own, value) in meant {
            match (object.get_mut(own), value) {
                (None | Some(Value::Null), value) => _ = object.insert(own.to_owned(), value),
                (Some(Value::Array(there)), Value::Array(more)) => there.extend(more),
                (Some(Value::String(there)), Value::Array(more)) => {
                    let all: Vec<Value> = std::iter::once(Value::from(there.as_str())).chain(more).collect();
                    object.insert(own.to_owned(), all.into());
                }
                (Some(_), _) => return Err(invalid(format!("`{name}` and `{own}` mean the same; remove one"))),
            }
        }
    }
    for name in ["command", "cmd"] {
        if let Some(Value::Array(words)) = object.get(name)
            && known.get("command").is_some_and(|schema| schema["type"] == "string")
        {
            let line = words_to_line(words)?;
            object.insert(name.to_owned(), line.into());
        }
    }
    Ok(())
}

/// Returns the equivalent arguments in the schema, or `None` if the shape is unknown.
fn other_shape(name: &str, given: &Value, known: &Map<String, Value>) -> Result<Option<Vec<(&'static str, Value)>>, ToolError> {
    let plain = normalize_name(name);
    let has = |own: &str| known.contains_key(own);
    let is = |own: &str, kind: &str| known.get(own).is_some_and(|schema| schema["type"] == kind);
    if let Some((own, _)) = OPPOSITES.iter().find(|(_, others)| others.contains(&plain.as_str()))
        && let Some(own) = own.iter().copied().find(|own| has(own))
    {
        return Ok(flag(given).map(|flag| vec![(own, Value::Bool(!flag))]));
    }
    if plain == "timeoutms" && has("timeout") {
        return Ok(milliseconds(given).map(|ms| vec![("timeout", Value::from(ms.div_ceil(1000).max(1)))]));
    }
    let globs = ["glob", "include"].into_iter().find(|own| is(own, "array"));
    if let Some(own) = globs.filter(|_| EXCLUDED.contains(&plain.as_str())) {
        let globs = texts(given).filter(|globs| globs.iter().all(|glob| !glob.starts_with('!')));
        return Ok(globs.map(|globs| vec![(own, globs.iter().map(|glob| format!("!{glob}")).collect())]));
    }
    if SEVERAL_PATHS.contains(&plain.as_str()) && is("path", "string") {
        return match texts(given).as_deref() {
            Some([one]) => Ok(Some(vec![("path", one.as_str().into())])),
            Some(several) if several.len() > 1 => Err(invalid(format!(
                "`{name}` has {} paths; pass one as `path` and call once for each, in one response",
                several.len()
            ))),
            Some(_) | None => Ok(None),
        };
    }
    if plain == "viewrange" {
        let (first, last) = if has("end_line") { ("start_line", "end_line") } else { ("offset", "endLine") };
        let ends = given.as_array().map(Vec::as_slice);
        let (true, Some([start, end])) = (has(first) && has(last), ends) else { return Ok(None) };
        let mut range = vec![(first, start.clone())];
        // -1 means the end of the file.
        if end.as_i64() != Some(-1) {
            range.push((last, end.clone()));
        }
        return Ok(Some(range));
    }
    Ok(None)
}

fn flag(given: &Value) -> Option<bool> {
    match given {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_lowercase().parse().ok(),
        _ => None,
    }
}

fn milliseconds(given: &Value) -> Option<u64> {
    given.as_u64().or_else(|| given.as_str()?.trim().parse().ok())
}

/// Returns the strings in a value that is either a string or a list of nothing but strings.
fn texts(given: &Value) -> Option<Vec<String>> {
    match given {
        Value::String(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| vec![text.clone()])),
        Value::Array(values) => values.iter().map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Converts a command given as a list of words to a shell line.
fn words_to_line(words: &[Value]) -> Result<String, ToolError> {
    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
    let Some(words) = words else { return Err(invalid("`command` must be a string or a list of strings; send one line")) };
    Ok(match words.as_slice() {
        ["apply_patch", patch] => {
            let shown: String = patch.lines().take(1).collect();
            return Err(invalid(format!("`apply_patch` is not a program; call the tool ApplyPatch with `patch`: {shown} …")));
        }
        [shell, "-c" | "-lc", line] if SHELLS.contains(shell) => (*line).to_owned(),
        words => line(words),
    })
}
