//! Editing of the user's `config.toml` to add or remove an MCP server while preserving all other settings.

use super::ConfigEdit;
use crate::config::ConfigError;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// Entry to write to `[mcp.servers.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NewServer {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub url: Option<String>,
    pub kind: Option<String>,
    pub headers: Vec<(String, String)>,
    pub network: bool,
    pub bearer_token_env: Option<String>,
    /// Working directory of the server program.
    pub directory: Option<String>,
    /// Whether the server is disabled.
    pub is_off: bool,
    pub start_timeout_seconds: Option<u64>,
    pub timeout_seconds: Option<u64>,
}

/// Adds a server to the text. Returns `None` if the name is already in use.
pub(crate) fn with_server(text: &str, name: &str, server: &NewServer) -> ConfigEdit {
    let mut document = parse_document(text)?;
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for part in ["mcp", "servers"] {
        let new = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let next = table.entry(part).or_insert_with(new);
        table = next
            .as_table_like_mut()
            .ok_or_else(|| ConfigError::single(format!("`{part}` must be a table: `[mcp.servers.NAME]`")))?;
    }
    if table.contains_key(name) {
        return Ok(None);
    }
    table.insert(name, Item::Table(entry(server)));
    Ok(Some(document.to_string()))
}

/// Returns whether the text already contains a server with this name and exactly these settings.
pub(crate) fn has_same_server(text: &str, name: &str, server: &NewServer) -> bool {
    let Ok(document) = parse_document(text) else { return false };
    let servers = document.get("mcp").and_then(Item::as_table_like).and_then(|mcp| mcp.get("servers"));
    let known = servers.and_then(Item::as_table_like).and_then(|servers| servers.get(name)).and_then(Item::as_table_like);
    let settings = |table: &dyn toml_edit::TableLike| {
        let value = |item: &Item| toml::from_str::<toml::Table>(&format!("value = {}", item.to_string().trim())).ok();
        table.iter().map(|(key, item)| (key.to_owned(), value(item))).collect::<std::collections::BTreeMap<_, _>>()
    };
    known.is_some_and(|known| settings(known) == settings(&entry(server)))
}

fn entry(server: &NewServer) -> Table {
    let mut entry = Table::new();
    let texts = |texts: &[String]| Value::Array(texts.iter().map(String::as_str).collect::<Array>());
    let pairs = |pairs: &[(String, String)]| {
        Value::InlineTable(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<InlineTable>())
    };
    let mut put = |key: &str, value: Value| drop(entry.insert(key, Item::Value(value)));
    if let Some(command) = &server.command {
        put("command", command.as_str().into());
    }
    if !server.args.is_empty() {
        put("args", texts(&server.args));
    }
    if let Some(url) = &server.url {
        put("url", url.as_str().into());
    }
    if let Some(kind) = &server.kind {
        put("type", kind.as_str().into());
    }
    if !server.env.is_empty() {
        put("env", pairs(&server.env));
    }
    if server.network {
        put("network", true.into());
    }
    if !server.headers.is_empty() {
        put("headers", pairs(&server.headers));
    }
    if let Some(variable) = &server.bearer_token_env {
        put("bearer_token_env", variable.as_str().into());
    }
    if let Some(directory) = &server.directory {
        put("cwd", directory.as_str().into());
    }
    if server.is_off {
        put("enabled", false.into());
    }
    for (key, seconds) in [("start_timeout_seconds", server.start_timeout_seconds), ("timeout_seconds", server.timeout_seconds)] {
        if let Some(seconds) = seconds.and_then(|seconds| i64::try_from(seconds).ok()) {
            put(key, seconds.into());
        }
    }
    entry
}

/// Removes a server from the text. Returns `None` if it contains no server with this name.
pub(crate) fn without_server(text: &str, name: &str) -> ConfigEdit {
    let mut document = parse_document(text)?;
    let mcp = document.get_mut("mcp").and_then(Item::as_table_like_mut);
    let servers = mcp.and_then(|mcp| mcp.get_mut("servers")).and_then(Item::as_table_like_mut);
    let Some(servers) = servers else { return Ok(None) };
    if servers.remove(name).is_none() {
        return Ok(None);
    }
    Ok(Some(document.to_string()))
}

fn parse_document(text: &str) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error: toml_edit::TomlError| ConfigError::single(error.message().to_owned()))
}
