//! MCP tools: their names, whether the policy lists them, and whether they are loaded on demand.

mod answer;
mod pins;
mod schema;
mod schema_cost;
mod server_tool;
#[cfg(test)]
mod tests;

pub(super) use answer::single_line;
pub(crate) use pins::Pins;
pub(super) use server_tool::{ServerTool, full_name};

use super::error::invalid;
use super::naming::{Conflict, NameError, NameTable, ToolReference};
use super::tool::{AnyTool, SharedTool};
use crate::ports::{MAX_SCHEMA_BYTES, RemoteServers, RemoteTool};
use crate::protocol::{ErrorCode, ServerState, ServerStatus, ToolError};
use server_tool::CallDeps;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

const NAME_CHARS: usize = 200;
/// Maximum number of unavailable tools to list by name.
const MAX_PROBLEMS: usize = 5;

pub(crate) type Timeout = Arc<dyn Fn(&str, &str) -> Duration + Send + Sync>;
/// Function that takes a server and a tool and checks whether the policy lists that MCP tool. The error is the reason
/// why it does not.
pub(crate) type MayInvoke = Arc<dyn Fn(&str, &str) -> Result<(), String> + Send + Sync>;

/// A session's MCP servers and the settings for their tools.
#[derive(Clone)]
pub(crate) struct RemoteConfig {
    pub servers: Arc<dyn RemoteServers>,
    pub conflict: Conflict,
    pub may_invoke: MayInvoke,
    /// Approved definitions, or `None` if they are not stored.
    pub pins: Option<Pins>,
    /// Total size in bytes above which tool definitions are loaded on demand, or `None` to always offer all of them.
    pub max_bytes: Option<usize>,
    pub timeout: Timeout,
}

/// The tools that the servers offer at one point in time.
pub(crate) struct RemoteTools {
    servers: Arc<dyn RemoteServers>,
    conflict: Conflict,
    /// Tools that the policy lists, ordered by name.
    listed: Vec<Arc<ServerTool>>,
    /// Tools that exist but that the policy does not list.
    unlisted: Vec<Arc<ServerTool>>,
    names: NameTable,
    unlisted_names: NameTable,
    /// Whether the definitions are too large to offer all of them in one request.
    on_demand: bool,
    problems: Vec<String>,
}

fn pair(tool: &RemoteTool) -> (&str, &str) {
    (tool.server.as_str(), tool.name.as_str())
}

impl RemoteTools {
    /// Collects the tools that the servers offer at this moment. `own` contains the names of the local tools.
    pub(super) fn new(own: &[String], remote: RemoteConfig) -> Self {
        let RemoteConfig { servers, conflict, may_invoke, pins, max_bytes, timeout } = remote;
        let reached: HashMap<String, String> =
            servers.statuses().into_iter().map(|status| (status.name, status.reached_by)).collect();
        let wires = Arc::new(CallDeps { servers: Arc::clone(&servers), pins, timeout });
        let (mut yes, mut no, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let all = servers.tools();
        for tool in all.iter() {
            match (unusable(tool), may_invoke(&tool.server, &tool.name)) {
                (Some(why), Ok(())) => {
                    left_out.push(format!("{}/{}: {why}", single_line(&tool.server, 80), single_line(&tool.name, 80)));
                }
                (Some(_), Err(_)) => {}
                (None, Ok(())) => yes.push(tool),
                (None, Err(why)) => no.push((tool, why)),
            }
        }
        let names = NameTable::new(own.iter().map(String::as_str), yes.iter().map(|tool| pair(tool)), conflict);
        let unlisted_names = NameTable::new([], no.iter().map(|(tool, _)| pair(tool)), Conflict::LocalFirst);
        let mapped: HashMap<(String, String), String> = names.remote_names().collect();
        let made = |tool: &RemoteTool, unlisted: Option<String>| {
            let name = mapped.get(&(tool.server.clone(), tool.name.clone()));
            let offered = name.cloned().unwrap_or_else(|| full_name(&tool.server, &tool.name));
            let reached_by = reached.get(&tool.server).cloned().unwrap_or_default();
            Arc::new(ServerTool::new(tool.clone(), offered, reached_by, Arc::clone(&wires), unlisted))
        };
        let mut listed: Vec<Arc<ServerTool>> = Vec::new();
        let mut seen = HashSet::new();
        // Drop tools with duplicate names.
        yes.retain(|tool| seen.insert(pair(tool)));
        listed.extend(yes.iter().map(|tool| made(tool, None)));
        let unlisted = no.iter().map(|(tool, why)| made(tool, Some(why.clone()))).collect();
        let weight: usize = listed.iter().map(|tool| tool.weight()).sum();
        let on_demand = max_bytes.is_some_and(|most| weight > most);
        Self { servers, conflict, listed, unlisted, names, unlisted_names, on_demand, problems: problems(left_out) }
    }

    /// Returns the tools that the policy lists.
    pub(super) fn listed_tools(&self) -> impl Iterator<Item = &dyn AnyTool> {
        self.listed.iter().map(|tool| &**tool as &dyn AnyTool)
    }

    /// Returns the tools that are loaded on demand, which are either all of them or none.
    pub(super) fn on_demand(&self) -> &[Arc<ServerTool>] {
        if self.on_demand { &self.listed } else { &[] }
    }

    /// Returns whether this name of a local tool refers to an MCP tool, in which case the local tool is not offered.
    pub(super) fn is_remote_name(&self, name: &str) -> bool {
        self.conflict != Conflict::LocalFirst && self.names.is_contested(name)
    }

    /// Finds the MCP tool with this name. Returns `Ok(None)` if the name refers to a local tool or to no tool at all.
    pub(super) fn find(&self, called: &str, is_local: bool) -> Result<Option<SharedTool>, ToolError> {
        let said = self.names.explicit(called);
        let meant = match said {
            Some(meant) => meant,
            None if is_local && self.conflict == Conflict::LocalFirst => return Ok(None),
            None => self.names.resolve_unqualified(called),
        };
        match meant {
            Ok(ToolReference::Remote { server, tool }) => Ok(find_tool(&self.listed, &server, &tool)),
            Ok(ToolReference::Local(_)) => Ok(None),
            Err(error @ NameError::Ambiguous { .. }) => Err(invalid(error.to_string())),
            Err(NameError::Unknown(_)) if is_local => Ok(None),
            Err(NameError::Unknown(_)) => match self.unlisted_names.meaning(called) {
                Ok(ToolReference::Remote { server, tool }) => Ok(find_tool(&self.unlisted, &server, &tool)),
                Ok(ToolReference::Local(_)) | Err(_) => self.unknown_tool(called).map_or(Ok(None), Err),
            },
        }
    }

    /// Builds the error for an unknown name. If the name contains that of a server, the error includes the server's
    /// state.
    fn unknown_tool(&self, called: &str) -> Option<ToolError> {
        let name = called.strip_prefix("Mcp.").unwrap_or(called);
        let of_server = |status: &ServerStatus| {
            let rest = name.get(..status.name.len()).filter(|start| start.eq_ignore_ascii_case(&status.name))?;
            let rest = name.get(rest.len()..)?;
            ["__", ":", "/"].iter().find_map(|between| rest.strip_prefix(between)).map(str::to_owned)
        };
        let statuses = self.servers.statuses();
        let (status, tool) = statuses.iter().find_map(|status| Some((status, of_server(status)?)))?;
        let message = format!(
            "the MCP server `{}` currently offers no tool `{}`: {}",
            single_line(&status.name, NAME_CHARS),
            single_line(&tool, NAME_CHARS),
            state(&status.state, &status.name)
        );
        Some(ToolError::new(ErrorCode::ToolNotFound, message))
    }

    /// Returns the tools' full names, in the form used in policies.
    pub(super) fn full_names(&self) -> impl Iterator<Item = String> {
        self.listed.iter().chain(&self.unlisted).map(|tool| tool.name().to_owned())
    }

    /// Returns the names of the servers whose tools are not known yet.
    pub(crate) fn unknown_servers(&self) -> Vec<String> {
        let statuses = self.servers.statuses().into_iter();
        statuses.filter(|status| status.offered == 0).map(|status| status.name).collect()
    }

    /// Returns notices to show to the user at startup.
    pub(crate) fn notices(&self) -> Vec<String> {
        let chosen = match self.conflict {
            Conflict::LocalFirst => "the unqualified name means the local tool",
            Conflict::McpFirst => "the unqualified name means the MCP tool",
            Conflict::Error => "the unqualified name means neither",
        };
        let conflicts = self.names.conflicts().into_iter().map(|told| format!("{told}; {chosen} (`tools.conflict`)"));
        conflicts.chain(self.problems.iter().cloned()).collect()
    }

    /// Returns the numbers of listed and unlisted tools for each server.
    pub(crate) fn counts(&self) -> Vec<(String, usize, usize)> {
        let count = |tools: &[Arc<ServerTool>], name: &str| tools.iter().filter(|tool| tool.tool().server == name).count();
        let servers = self.servers.statuses().into_iter().map(|status| status.name);
        servers.map(|name| (name.clone(), count(&self.listed, &name), count(&self.unlisted, &name))).collect()
    }
}

fn find_tool(tools: &[Arc<ServerTool>], server: &str, name: &str) -> Option<SharedTool> {
    let found = tools.iter().find(|tool| (tool.tool().server.as_str(), tool.tool().name.as_str()) == (server, name));
    found.map(|tool| Arc::clone(tool) as SharedTool)
}

/// Describes a server's state, with a hint on what to do.
fn state(state: &ServerState, name: &str) -> String {
    match state {
        ServerState::Ready | ServerState::Asleep => "the server has no tool with that name".to_owned(),
        ServerState::Starting => "the server is starting; try again in a moment".to_owned(),
        ServerState::NeedsLogin => {
            format!("sign-in required; the user can run `aye mcp login {}`", single_line(name, NAME_CHARS))
        }
        ServerState::Unreachable { why } => format!("the server is down ({}); continue without it", single_line(why, NAME_CHARS)),
        ServerState::Off { why } => format!("the server is off ({})", single_line(why, NAME_CHARS)),
    }
}

/// Returns the reason why a tool cannot be offered, or `None` if it can.
fn unusable(tool: &RemoteTool) -> Option<String> {
    let bytes = tool.input_schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Some(format!("its input schema is {bytes} bytes; the limit is {MAX_SCHEMA_BYTES}"));
    }
    let hides = tool.name.is_empty() || tool.name.chars().count() > NAME_CHARS || crate::text::clean(&tool.name) != tool.name;
    (hides || tool.name.contains(['\n', '\t'])).then(|| "its name is empty, too long or contains invisible characters".to_owned())
}

fn problems(left_out: Vec<String>) -> Vec<String> {
    let more = left_out.len().saturating_sub(MAX_PROBLEMS);
    let mut said: Vec<String> =
        left_out.into_iter().take(MAX_PROBLEMS).map(|why| format!("MCP tool not available: {why}")).collect();
    if more > 0 {
        said.push(format!("{more} more MCP tools are not available"));
    }
    said
}
