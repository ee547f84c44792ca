//! Import of settings from other coding agents, which reads their settings and plans changes to the user's files.

mod apply;
mod claude;
mod codex;
mod command_files;
mod command_pattern;
mod document;
mod gemini;
mod instruction_block;
mod json_entry;
mod opencode;
mod permissions;
mod plan;
mod prefix_rules;
mod secrets;
mod servers;
mod settings;
mod sources;
#[cfg(test)]
mod tests;

pub(crate) use apply::{WrittenFile, write};
pub(crate) use plan::{FileRewrite, ImportPlan, NotImported, Planner, Targets};
pub(crate) use secrets::SecretFinder;
pub(crate) use sources::Sources;

use crate::host::other_agents::Agent;
use settings::AgentSettings;

/// Reads the settings of another agent.
pub(crate) fn read(agent: Agent, sources: &mut Sources, secrets: &SecretFinder) -> AgentSettings {
    match agent {
        Agent::Claude => claude::read(sources, secrets),
        Agent::Codex => codex::read(sources, secrets),
        Agent::Gemini => gemini::read(sources, secrets),
        Agent::OpenCode => opencode::read(sources, secrets),
    }
}
