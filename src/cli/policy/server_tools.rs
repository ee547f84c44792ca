//! MCP tools for use by policy commands, as known from earlier connections. No server is started or contacted.

use crate::host::context::AppContext;
use crate::host::mcp_servers::specs;
use crate::host::project::ProjectConfig;
use crate::mcp::{McpDeps, Servers};
use crate::ports::{RemoteServers, RemoteTool};
use crate::protocol::Action;
use crate::tools::Pins;
use std::sync::Arc;

/// Separators between server and tool in the name of a configured server's tool.
const BETWEEN: [&str; 2] = [":", "__"];

/// The configured servers and the tools they last offered.
pub(crate) struct ServerTools {
    servers: Vec<String>,
    tools: Arc<[RemoteTool]>,
    pins: Pins,
}

impl ServerTools {
    pub(crate) fn from_config(app: &AppContext, project: Option<&ProjectConfig>) -> Self {
        let (specs, _) = specs::specs(app, project);
        let servers = specs.iter().map(|spec| spec.name.clone()).collect();
        let directory = app.directories.shared.join("mcp");
        let wires = McpDeps { known: Some(directory.join("known")), ..McpDeps::default() };
        let tools = Servers::new(specs, wires).tools();
        Self { servers, tools, pins: Pins::in_directory(directory.join("pins")) }
    }

    /// Returns the action that corresponds to a call, based on the tool's name. The name is `SERVER/TOOL` or
    /// `Mcp.SERVER/TOOL` or, for a configured server, `SERVER:TOOL` or `SERVER__TOOL`. An unknown tool is judged like a
    /// new one.
    pub(crate) fn action(&self, called: &str) -> Option<Action> {
        let (server, tool) = parse_qualified(called).or_else(|| self.find_configured(called))?;
        let known = self.servers.iter().find(|known| known.eq_ignore_ascii_case(server)).map_or(server, String::as_str);
        let of_server = self.tools.iter().filter(|one| one.server == known);
        let found = of_server
            .clone()
            .find(|one| one.name == tool)
            .or_else(|| of_server.clone().find(|one| one.name.eq_ignore_ascii_case(tool)));
        Some(Action::Invoke {
            server: known.to_owned(),
            tool: found.map_or_else(|| tool.to_owned(), |found| found.name.clone()),
            fingerprint: found.map(|found| found.fingerprint.clone()).unwrap_or_default(),
            changed: found.is_some_and(|found| self.pins.is_changed(found)),
        })
    }

    fn find_configured<'a>(&self, called: &'a str) -> Option<(&'a str, &'a str)> {
        let of_server = |server: &String| {
            let start = called.get(..server.len()).filter(|start| start.eq_ignore_ascii_case(server))?;
            let tool = BETWEEN.iter().find_map(|between| called[server.len()..].strip_prefix(between))?;
            (!tool.is_empty()).then_some((start, tool))
        };
        self.servers.iter().find_map(of_server)
    }
}

/// Splits a tool name, as written in policies, into server and tool.
pub(crate) fn parse_qualified(called: &str) -> Option<(&str, &str)> {
    let (server, tool) = called.strip_prefix("Mcp.").unwrap_or(called).split_once('/')?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

/// Returns whether a name has the form `SERVER:TOOL` or `SERVER__TOOL`.
pub(crate) fn is_server_form(called: &str) -> bool {
    let is_form = |(server, tool): (&str, &str)| !server.is_empty() && !tool.is_empty();
    BETWEEN.iter().filter_map(|between| called.split_once(between)).any(is_form)
}

#[cfg(test)]
impl ServerTools {
    /// Returns an instance without any configured servers.
    pub(crate) fn empty() -> Self {
        Self { servers: Vec::new(), tools: Vec::new().into(), pins: Pins::in_directory("nowhere".into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_tool_names_are_resolved_in_every_notation() {
        let known = ServerTools {
            servers: vec!["docs".to_owned()],
            tools: vec![RemoteTool {
                server: "docs".to_owned(),
                name: "Search".to_owned(),
                title: None,
                description: String::new(),
                input_schema: serde_json::json!({}),
                output_schema: None,
                says_read_only: false,
                fingerprint: "f".to_owned(),
            }]
            .into(),
            pins: Pins::in_directory("nowhere".into()),
        };
        let meant = |called: &str| match known.action(called) {
            Some(Action::Invoke { server, tool, fingerprint, .. }) => Some(format!("{server}/{tool} {fingerprint}")),
            _ => None,
        };
        for called in ["docs/Search", "Mcp.docs/Search", "docs:Search", "docs__Search", "DOCS/search"] {
            assert_eq!(meant(called).as_deref(), Some("docs/Search f"), "{called}");
        }
        assert_eq!(meant("docs/other").as_deref(), Some("docs/other "));
        assert_eq!(meant("new/tool").as_deref(), Some("new/tool "));
        for called in ["new:tool", "new__tool", "docs", "/x", "x/", "Mcp.docs", "ReadFile"] {
            assert_eq!(meant(called), None, "{called}");
        }
    }
}
