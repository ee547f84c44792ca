//! Settings of other coding agents: reads them, and plans what becomes of them in the user's files.

mod agent;
mod apply;
mod claude;
mod command_files;
mod command_pattern;
mod document;
mod instruction_block;
mod json_entry;
mod permissions;
mod plan;
mod secrets;
mod servers;
mod settings;
mod sources;
#[cfg(test)]
mod tests;

pub(crate) use agent::Agent;
pub(crate) use apply::{WrittenFile, write};
pub(crate) use plan::{ImportPlan, PlannedFile, Planner, Targets};
pub(crate) use secrets::SecretFinder;
pub(crate) use sources::Sources;

use settings::AgentSettings;

/// Reads the settings of an agent.
pub(crate) fn read(agent: Agent, sources: &mut Sources, secrets: &SecretFinder) -> AgentSettings {
    match agent {
        Agent::Claude => claude::read(sources, secrets),
        Agent::Codex | Agent::Gemini | Agent::OpenCode => AgentSettings::default(),
    }
}
