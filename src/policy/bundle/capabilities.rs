//! Capabilities of a policy file, each with its limits and rules.

use super::capability::{FileCapability, ShellCapability, Upload};
use super::network::HttpCapability;
use super::reader::{BundleError, BundleTable, suggestion};
use super::search::SearchCapability;
use super::tools::{self, McpCapability, ToolRule};

/// Names of all capabilities in a policy file.
const CAPABILITIES: &[&str] = &[
    "File.Read",
    "File.Write",
    "File.Delete",
    "Shell.Exec",
    "Network.Http",
    "Network.Search",
    "Mcp.Invoke",
    "BackendTool.Invoke",
    "Tool.Custom",
    "Workspace.Upload",
];

/// Capabilities that a policy file lists: its `[capabilities]` section.
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    pub read: Option<FileCapability>,
    pub write: Option<FileCapability>,
    pub delete: Option<FileCapability>,
    pub shell: Option<ShellCapability>,
    pub http: Option<HttpCapability>,
    pub search: Option<SearchCapability>,
    pub upload: Option<Upload>,
    pub mcp: Option<McpCapability>,
    /// Back-end tools. Like MCP tools, they are matched by `SERVER/TOOL` patterns.
    pub backend: Option<McpCapability>,
    /// Rules for custom tools, matched by tool name.
    pub custom: Vec<ToolRule>,
    /// Names of all capabilities that the bundle lists.
    pub granted: Vec<String>,
}

impl Capabilities {
    /// Reads the `[capabilities]` section.
    pub(super) fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        let mut capabilities = Self::default();
        for (name, capability) in section.children()? {
            match name.text.as_str() {
                "File.Read" => capabilities.read = Some(FileCapability::read(&capability, false)?),
                "File.Write" => capabilities.write = Some(FileCapability::read(&capability, true)?),
                "File.Delete" => capabilities.delete = Some(FileCapability::read(&capability, true)?),
                "Shell.Exec" => capabilities.shell = Some(ShellCapability::read(&capability)?),
                "Network.Http" => capabilities.http = Some(HttpCapability::read(&capability)?),
                "Network.Search" => capabilities.search = Some(SearchCapability::read(&capability)?),
                "Tool.Custom" => capabilities.custom = tools::custom_rules(&capability)?,
                "Mcp.Invoke" => capabilities.mcp = Some(McpCapability::read(&capability)?),
                "BackendTool.Invoke" => capabilities.backend = Some(McpCapability::read_backend(&capability)?),
                "Workspace.Upload" => capabilities.upload = Some(Upload::read(&capability)?),
                other => {
                    let message = format!("unknown capability `{other}`; {}", suggestion(other, CAPABILITIES));
                    return Err(section.source.error(&name.span, message));
                }
            }
            capabilities.granted.push(name.text);
        }
        Ok(capabilities)
    }
}
