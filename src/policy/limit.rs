//! Tool limits from settings outside the policy: they can only remove tools.

use super::bundle::ToolPattern;
use super::permit::Denial;

/// One list of names, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLimit {
    /// As a verdict names it: the file and the line.
    pub rule: String,
    pub names: ToolNames,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolNames {
    /// These are not to be had.
    Disabled(Vec<String>),
    /// No others are.
    Enabled(Vec<String>),
}

impl ToolLimit {
    /// Why a tool of this name is not to be had, if it is not.
    pub fn denies(&self, tool_name: &str) -> Option<Denial> {
        let hit = |names: &[String]| {
            let of_server = tool_name.strip_prefix("Mcp.");
            let hits = |text: &String| {
                let pattern = ToolPattern { text: text.clone(), line: 0 };
                pattern.hits(tool_name) || of_server.is_some_and(|name| pattern.hits(name))
            };
            names.iter().any(hits)
        };
        let reason = match &self.names {
            ToolNames::Disabled(names) if hit(names) => format!("the tool `{tool_name}` is disabled"),
            ToolNames::Enabled(names) if !hit(names) => format!("the tool `{tool_name}` is not among those that are enabled"),
            ToolNames::Disabled(_) | ToolNames::Enabled(_) => return None,
        };
        Some(Denial { rule: self.rule.clone(), reason, parts: Vec::new() })
    }
}
