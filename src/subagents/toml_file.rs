//! Agents defined in TOML files, the format used by Codex.

use super::definition::{AgentOrigin, DefinitionFields, ParsedDefinition};
use crate::skills::Fault;
use toml::{Table, Value};

/// Codex keys that have no effect in aye.
const OF_OTHERS: &[&str] =
    &["approval_policy", "mcp_servers", "skills", "nickname_candidates", "config_file", "profile", "features"];

/// Parses an agent from a TOML file.
pub(super) fn read(stem: &str, file: &str, origin: AgentOrigin, bytes: &[u8]) -> ParsedDefinition {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return ParsedDefinition::failed(Fault::general("the file is not valid UTF-8"));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table: Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let message = format!("the file is not valid TOML: {}", error.message().lines().next().unwrap_or_default());
            return ParsedDefinition::failed(Fault::at(line, message));
        }
    };
    let mut fields = DefinitionFields::default();
    for (key, value) in table {
        let line = line_of(text, &key);
        take(&mut fields, (key.as_str(), line), value);
    }
    fields.finish(stem, file, origin)
}

/// Returns the number of the line on which a key is set (1-based), or 1 if the key is not found.
fn line_of(text: &str, key: &str) -> usize {
    let is_set = |line: &str| {
        let rest = line.trim_start().trim_start_matches('[').strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '.', ']']))
    };
    text.lines().position(is_set).map_or(1, |index| index + 1)
}

fn take(fields: &mut DefinitionFields, (key, line): (&str, usize), value: Value) {
    match (key, value) {
        ("name", Value::String(text)) => fields.name = Some((text.trim().to_owned(), line)),
        ("description", Value::String(text)) => fields.description = Some((text, line)),
        ("developer_instructions" | "instructions" | "prompt", Value::String(text)) => fields.prompt = text,
        ("model", Value::String(text)) => fields.take_model(&text),
        ("model_reasoning_effort" | "effort", Value::String(text)) => fields.take_effort(&text, line),
        ("max_steps", Value::Integer(number)) => fields.take_max_steps(&number.to_string(), line),
        ("sandbox_mode", Value::String(text)) => fields.take_mode(text.trim(), line),
        ("tools", Value::Array(items)) => {
            let names: Option<Vec<String>> = items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect();
            if names.is_none() {
                fields.errors.push(Fault::at(line, "`tools` must be a list of names"));
            }
            let names = fields.checked_tools(names.unwrap_or_default(), line);
            fields.tools = Some(names);
        }
        (key @ ("name" | "description" | "developer_instructions" | "instructions" | "prompt" | "tools" | "max_steps"), _) => {
            fields.errors.push(Fault::at(line, format!("`{key}` has the wrong type")));
            if key == "tools" {
                // `None` would mean all tools.
                fields.tools = Some(Vec::new());
            }
        }
        (key, _) if OF_OTHERS.contains(&key) => fields.warnings.push(Fault::at(line, format!("`{key}` has no effect in aye"))),
        (key, _) => fields.warnings.push(Fault::at(line, format!("unknown key `{}`", key.escape_debug()))),
    }
}
