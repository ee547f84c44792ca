//! Definitions of agents that the model can start for part of a task. This module reads and validates definitions and
//! resolves their precedence, but does not decide whether an agent may run.

mod agent_file;
mod built_in;
mod definition;
mod folder;
mod lenient_front_matter;
mod markdown;
mod set;
mod toml_file;

pub(crate) use agent_file::{AgentFile, AgentFormat};
pub(crate) use definition::{AgentDefinition, AgentOrigin};
pub(crate) use folder::AgentFolder;
pub(crate) use set::{AgentSet, check};

/// Project folders that can contain agents. If two agents have the same name, the one in the earlier folder takes
/// precedence.
pub(crate) const PROJECT_FOLDERS: [(&str, AgentFormat); 3] =
    [(".aye/agents", AgentFormat::Markdown), (".claude/agents", AgentFormat::Markdown), (".codex/agents", AgentFormat::Toml)];
/// Agent folders in the home directory, searched after `agents` in the config directory.
pub(crate) const HOME_FOLDERS: [(&str, AgentFormat); 2] =
    [(".claude/agents", AgentFormat::Markdown), (".codex/agents", AgentFormat::Toml)];
