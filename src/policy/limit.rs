//! Limits on tools that are set outside the policy. They can only disable tools.

use super::bundle::ToolPattern;
use super::permit::Denial;

/// Separator between server and tool in the tool names shown to models.
const SERVER_SEPARATOR: &str = "__";
/// Prefix of MCP tool names in other agents' notation (`mcp__server__tool`).
const MCP_PREFIX: &str = "mcp__";

/// A list of tool names and where it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLimit {
    /// Origin shown in verdicts: file and line.
    pub rule: String,
    pub names: ToolNames,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolNames {
    /// Tools that are disabled.
    Disabled(Vec<String>),
    /// Tools enabled by a setting; all others are disabled.
    Enabled(Vec<String>),
    /// Tools to which the current run is restricted.
    Allowed(Vec<String>),
}

impl ToolLimit {
    /// Returns the name of the setting and its list of tools.
    pub fn entries(&self) -> (&'static str, &[String]) {
        match &self.names {
            ToolNames::Disabled(names) => ("tools.disabled", names),
            ToolNames::Enabled(names) => ("tools.enabled", names),
            ToolNames::Allowed(names) => ("--allowed-tools", names),
        }
    }

    /// Returns a denial if this limit disables a tool.
    pub fn denies(&self, tool_name: &str) -> Option<Denial> {
        let hit = |names: &[String]| names.iter().any(|entry| names_tool(entry, tool_name));
        let reason = match &self.names {
            ToolNames::Disabled(names) if hit(names) => format!("the tool `{tool_name}` is disabled"),
            ToolNames::Enabled(names) if !hit(names) => format!("the tool `{tool_name}` is not in `tools.enabled`"),
            ToolNames::Allowed(names) if !hit(names) => format!("the tool `{tool_name}` is not allowed in this run"),
            ToolNames::Disabled(_) | ToolNames::Enabled(_) | ToolNames::Allowed(_) => return None,
        };
        Some(Denial { rule: self.rule.clone(), reason, parts: Vec::new() })
    }
}

/// Returns whether an entry matches a tool, ignoring case. For an MCP tool, `tool_name` is `Mcp.SERVER/TOOL`, and the
/// entry may also be written as `SERVER/TOOL`, `SERVER:TOOL` or `SERVER__TOOL`.
pub fn names_tool(entry: &str, tool_name: &str) -> bool {
    let pattern = ToolPattern { text: entry.to_owned(), line: 0 };
    if pattern.hits(tool_name) {
        return true;
    }
    let Some((server, tool)) = tool_name.strip_prefix("Mcp.").and_then(|name| name.split_once('/')) else { return false };
    let spellings = [
        format!("{server}/{tool}"),
        format!("{server}:{tool}"),
        format!("Mcp.{server}:{tool}"),
        format!("{server}{SERVER_SEPARATOR}{tool}"),
    ];
    spellings.iter().any(|name| pattern.hits(name))
}

/// Converts an entry in other agents' notation, `mcp__server__tool` or `mcp__server`. Returns `None` for any other
/// text.
pub fn from_other_agent(entry: &str) -> Option<String> {
    let start = entry.get(..MCP_PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(MCP_PREFIX))?;
    let rest = entry.get(start.len()..)?;
    Some(if rest.contains(SERVER_SEPARATOR) { rest.to_owned() } else { format!("Mcp.{rest}/*") })
}

/// Returns the server in an entry, or `None` if the entry does not contain one.
pub fn entry_server(entry: &str) -> Option<&str> {
    let rest = entry.get(..4).filter(|start| start.eq_ignore_ascii_case("mcp.")).map_or(entry, |start| &entry[start.len()..]);
    let end = [rest.find(SERVER_SEPARATOR), rest.find([':', '/'])].into_iter().flatten().min()?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_server_tools_in_every_spelling() {
        for entry in
            ["Mcp.docs/search", "docs/search", "docs:search", "docs__search", "DOCS__Search", "docs:*", "docs__*", "mcp.docs:s*"]
        {
            assert!(names_tool(entry, "Mcp.docs/search"), "{entry}");
            assert_eq!(entry_server(entry).map(str::to_lowercase).as_deref(), Some("docs"), "{entry}");
        }
        for entry in ["docs", "search", "docs_search", "doc:*", "docs__searches", "other__search"] {
            assert!(!names_tool(entry, "Mcp.docs/search"), "{entry}");
        }
        assert!(names_tool("readfile", "ReadFile") && names_tool("*", "Mcp.docs/search"));
        assert_eq!((entry_server("ReadFile"), entry_server("Mcp")), (None, None));
    }
}
