//! The tool that starts an agent. The model chooses the agent and receives a single result.

mod agent_tool;
mod agent_tools;
#[cfg(test)]
mod tests;

pub(super) use crate::tools::session_agents::AGENT;

pub(super) use agent_tool::AgentTool;
pub(crate) use agent_tools::AgentTools;

/// Names that other coding agents use for this tool.
const ALIASES: [&str; 4] = ["Task", "spawn_agent", "dispatch_agent", "delegate"];

/// Returns whether `name` refers to the tool that starts an agent.
pub(crate) fn is_called(name: &str) -> bool {
    name.eq_ignore_ascii_case(AGENT)
        || ALIASES.iter().any(|alias| alias.replace('_', "").eq_ignore_ascii_case(&name.replace('_', "")))
}
