//! The tools of a server, and the limits that apply to them.

use super::failure::truncate;
use super::limits::{DEFINITION_BYTES, DESCRIPTION_BYTES, NAME_BYTES, NOTES, PAGES, SCHEMA_DEPTH, TOOL_BYTES, TOOLS};
use super::manifest::{ToolPage, invalid};
use crate::ports::{MAX_SCHEMA_BYTES, RemoteTool};
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, Tool};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolListing {
    pub tools: Arc<[RemoteTool]>,
    /// Notes about tools that were ignored, and why.
    pub notes: Vec<String>,
}

/// Fetches all pages of `tools/list` that are within the limits.
pub(super) async fn list(peer: &Peer<RoleClient>, server: &str) -> Result<ToolListing, ServiceError> {
    let mut taken = ToolCollector::new(server);
    let mut cursors = HashSet::new();
    let mut cursor = None;
    for page in 0.. {
        let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params: asked, ..ListToolsRequest::default() };
        let listed = ToolPage::parse(peer.send_request(ClientRequest::ListToolsRequest(request)).await?)?;
        if !taken.page(listed.tools) {
            break;
        }
        match listed.next {
            Some(next) if page + 1 < PAGES && cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                taken
                    .notes
                    .push("the tool list has too many pages, or a page repeats; the remaining tools were ignored".to_owned());
                break;
            }
            None => break,
        }
    }
    Ok(taken.finish())
}

struct ToolCollector<'a> {
    server: &'a str,
    tools: Vec<RemoteTool>,
    names: HashSet<String>,
    bytes: usize,
    notes: Vec<String>,
    left_out: usize,
}

impl<'a> ToolCollector<'a> {
    fn new(server: &'a str) -> Self {
        Self { server, tools: Vec::new(), names: HashSet::new(), bytes: 0, notes: Vec::new(), left_out: 0 }
    }

    /// Adds a page. Returns whether there is room for another page.
    fn page(&mut self, page: Vec<Result<Tool, (String, String)>>) -> bool {
        for tool in page {
            let tool = match tool {
                Ok(tool) => tool,
                Err((name, reason)) => {
                    self.leave_out(&name, &reason);
                    continue;
                }
            };
            if self.tools.len() == TOOLS {
                self.notes.push(format!("more than {TOOLS} tools; the rest were ignored"));
                return false;
            }
            match convert_tool(self.server, &tool) {
                Err(reason) => self.leave_out(&tool.name, &reason),
                Ok(_) if self.names.contains(&*tool.name) => self.leave_out(&tool.name, "listed twice; the first one is used"),
                Ok((_, bytes)) if self.bytes + bytes > DEFINITION_BYTES => {
                    let limit = DEFINITION_BYTES / (1024 * 1024);
                    self.notes.push(format!("the tool definitions exceed {limit} MB; the rest were ignored"));
                    return false;
                }
                Ok((tool, bytes)) => {
                    self.bytes += bytes;
                    self.names.insert(tool.name.clone());
                    self.tools.push(tool);
                }
            }
        }
        true
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        self.left_out += 1;
        if self.left_out <= NOTES {
            self.notes.push(format!("tool `{}` ignored: {reason}", truncate(name, 64)));
        }
    }

    fn finish(mut self) -> ToolListing {
        if self.left_out > NOTES {
            self.notes.push(format!("{} more tools ignored for similar reasons", self.left_out - NOTES));
        }
        ToolListing { tools: self.tools.into(), notes: self.notes }
    }
}

/// Converts a tool. Returns it together with the size of its definition in bytes.
fn convert_tool(server: &str, tool: &Tool) -> Result<(RemoteTool, usize), String> {
    let name = &*tool.name;
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err(format!("the name must have 1 to {NAME_BYTES} characters"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the name may only contain printable ASCII characters without spaces".to_owned());
    }
    let input = Value::Object((*tool.input_schema).clone());
    let bytes = input.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!("`inputSchema` is {bytes} bytes, more than the limit of {MAX_SCHEMA_BYTES}"));
    }
    let output = tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
    for schema in [Some(&input), output.as_ref()].into_iter().flatten() {
        if is_deeper(schema, SCHEMA_DEPTH) {
            return Err(format!("the schema is nested deeper than {SCHEMA_DEPTH} levels"));
        }
    }
    let named = [("inputSchema", Some(&input)), ("outputSchema", output.as_ref())];
    if let Some(why) = named.into_iter().find_map(|(which, schema)| invalid(which, schema?)) {
        return Err(why);
    }
    let description = tool.description.as_deref().unwrap_or_default();
    let hints = tool.annotations.as_ref().map(|hints| json!(hints)).unwrap_or_default();
    let title = tool.title.clone().or_else(|| tool.annotations.as_ref().and_then(|hints| hints.title.clone()));
    let said = json!({
        "name": name, "title": title, "description": description, "input": input, "output": output, "hints": hints,
    });
    let said = sorted(said).to_string();
    if said.len() > TOOL_BYTES {
        return Err(format!("the definition exceeds {} KB", TOOL_BYTES / 1024));
    }
    let tool = RemoteTool {
        server: server.to_owned(),
        name: name.to_owned(),
        title,
        description: truncate(description, DESCRIPTION_BYTES).into_owned(),
        input_schema: input,
        output_schema: output,
        says_read_only: tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true),
        fingerprint: blake3::hash(said.as_bytes()).to_hex().to_string(),
    };
    Ok((tool, said.len()))
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => return false,
    };
    levels == 0 || inner.into_iter().any(|value| is_deeper(value, levels - 1))
}

/// Sorts the keys of all objects, so that equal content results in the same fingerprint.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().map(|(name, value)| (name, sorted(value))).collect::<Map<_, _>>())
        }
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_tools_are_reported_by_name_and_the_others_are_offered() {
        let tool = |name: &str, schema: Value| Ok(serde_json::from_value(json!({"name": name, "inputSchema": schema})).unwrap());
        let large = json!({"type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES)});
        let pattern = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}});
        let mut taken = ToolCollector::new("docs");
        assert!(taken.page(vec![tool("large", large), tool("pattern", pattern), tool("good", json!({"type": "object"}))]));
        let ToolListing { tools, notes } = taken.finish();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["good"]);
        assert!(notes[0].contains("`large`") && notes[0].contains("limit of 65536"), "{notes:?}");
        assert!(notes[1].contains("`pattern`") && notes[1].contains("`(`"), "{notes:?}");
        assert_eq!(notes.len(), 2);
    }
}
