//! Subagents: definitions of agents that the model can start for a part of a task. Reading, checking and precedence;
//! nothing here decides whether an agent may run.

mod agent_file;
mod built_in;
mod definition;
mod folder;
mod lenient_front_matter;
mod markdown;
mod set;
mod toml_file;

pub(crate) use agent_file::{AgentFile, Format};
pub(crate) use definition::{AgentDefinition, AgentOrigin};
pub(crate) use folder::AgentFolder;
pub(crate) use set::{AgentSet, check};

/// Folders of a project that can contain agents; of two agents with the same name, the agent in the earlier folder is used.
pub(crate) const PROJECT_FOLDERS: [(&str, Format); 3] =
    [(".aye/agents", Format::Markdown), (".claude/agents", Format::Markdown), (".codex/agents", Format::Toml)];
/// Folders of agents in the home directory, after `agents` in the config directory.
pub(crate) const HOME_FOLDERS: [(&str, Format); 2] = [(".claude/agents", Format::Markdown), (".codex/agents", Format::Toml)];
