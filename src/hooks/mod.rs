//! Hooks: reads hook files, defines the input of a hook for an event, and parses its output. No program is run here.

mod claude_file;
mod command_words;
mod hook;
mod matcher;
mod response;
mod toml_file;
mod tool_input;

pub(crate) use claude_file::read_claude_file;
pub(crate) use command_words::simple_commands;
pub(crate) use hook::{Hook, HookAction, HookFile, HookOrigin, MAX_FILE_BYTES};
pub(crate) use response::{HookResponse, read_response};
pub(crate) use toml_file::read_toml_file;
pub(crate) use tool_input::{ToolShape, shape_of};

/// Hook files of a project, in the order in which their hooks run.
pub(crate) const PROJECT_FILES: [&str; 3] = [".aye/hooks.toml", ".claude/settings.json", ".claude/settings.local.json"];
/// The user's hook file, in the config directory.
pub(crate) const USER_FILE: &str = "hooks.toml";
/// Variable that contains the workspace path, for commands of hooks.
pub(crate) const PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";
/// Variable that contains the folder of a plugin, for the commands of its hooks and MCP servers.
pub(crate) const PLUGIN_ROOT: &str = "CLAUDE_PLUGIN_ROOT";
