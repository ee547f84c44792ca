//! Agents defined in Markdown files with front matter, a format shared by aye and Claude Code.

use super::definition::{AgentOrigin, DefinitionFields, ParsedDefinition};
use super::lenient_front_matter::{self, Parsed};
use crate::skills::{Fault, FrontMatterEntry, FrontMatterValue, split_tools};

/// Informational keys, which have no effect.
const INFORMATIVE: &[&str] = &["color", "version", "author", "license", "tags", "category", "emoji", "vibe", "metadata"];
/// Keys defined by other agents, which have no effect in aye.
const OF_OTHERS: &[&str] = &[
    "permission",
    "skills",
    "mcpServers",
    "hooks",
    "memory",
    "background",
    "isolation",
    "initialPrompt",
    "mode",
    "temperature",
    "top_p",
    "argument-hint",
    "allowed-tools",
];

/// Parses an agent from a Markdown file with front matter.
pub(super) fn read(stem: &str, file: &str, origin: AgentOrigin, bytes: &[u8]) -> ParsedDefinition {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let line = bytes.utf8_chunks().next().map_or(1, |chunk| chunk.valid().matches('\n').count() + 1);
        return ParsedDefinition::failed(Fault::at(line, "the file is not valid UTF-8"));
    };
    let Parsed { entries, body, warning } = match lenient_front_matter::parse(text) {
        Ok(parsed) => parsed,
        Err(fault) => return ParsedDefinition::failed(fault),
    };
    let mut fields =
        DefinitionFields { prompt: body.to_owned(), warnings: warning.into_iter().collect(), ..DefinitionFields::default() };
    for entry in entries {
        take(&mut fields, entry);
    }
    fields.finish(stem, file, origin)
}

fn take(fields: &mut DefinitionFields, entry: FrontMatterEntry) {
    let line = entry.line;
    match entry.key.as_str() {
        "name" => fields.name = text(fields, entry).map(|text| (text.trim().to_owned(), line)),
        "description" => fields.description = text(fields, entry).map(|text| (text, line)),
        "tools" => fields.tools = tools(fields, entry),
        "disallowedTools" | "disallowed-tools" | "disallowed_tools" => {
            fields.denied_tools = tools(fields, entry).unwrap_or_default();
        }
        "model" => {
            if let Some(name) = text(fields, entry) {
                fields.take_model(&name);
            }
        }
        "effort" => {
            if let Some(name) = text(fields, entry) {
                fields.take_effort(&name, line);
            }
        }
        "maxTurns" | "max_turns" | "max-steps" | "max_steps" | "steps" => {
            if let Some(number) = text(fields, entry) {
                fields.take_max_steps(&number, line);
            }
        }
        "permissionMode" | "permission-mode" => {
            if let Some(mode) = text(fields, entry) {
                fields.take_mode(mode.trim(), line);
            }
        }
        key if INFORMATIVE.contains(&key) => {}
        key if OF_OTHERS.contains(&key) => fields.warnings.push(Fault::at(line, format!("`{key}` has no effect in aye"))),
        key => fields.warnings.push(Fault::at(line, format!("unknown key `{}`", key.escape_debug()))),
    }
}

fn text(fields: &mut DefinitionFields, entry: FrontMatterEntry) -> Option<String> {
    match entry.value {
        FrontMatterValue::Text(text) => Some(text),
        FrontMatterValue::List(_) | FrontMatterValue::Nested => {
            fields.errors.push(Fault::at(entry.line, format!("`{}` must be text", entry.key)));
            None
        }
    }
}

fn tools(fields: &mut DefinitionFields, entry: FrontMatterEntry) -> Option<Vec<String>> {
    let tools: Vec<String> = match entry.value {
        // An empty value is equivalent to a missing key.
        FrontMatterValue::Text(text) if text.trim().is_empty() || text.trim() == "*" => return None,
        FrontMatterValue::Text(text) => split_tools(text.trim_start_matches('[').trim_end_matches(']')),
        FrontMatterValue::List(items) => items.iter().flat_map(|item| split_tools(item)).collect(),
        FrontMatterValue::Nested => {
            fields.errors.push(Fault::at(entry.line, format!("`{}` must be a list of names", entry.key)));
            // `None` would mean all tools.
            Vec::new()
        }
    };
    Some(fields.checked_tools(tools, entry.line))
}
