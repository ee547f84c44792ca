//! Hooks: reads hook files, builds the input that a hook receives for an event, and parses its output. This module
//! does not run any programs.

mod claude_file;
mod command_words;
mod condition;
mod hook;
mod matcher;
mod response;
mod toml_file;
mod tool_input;

pub(crate) use claude_file::read_claude_file;
pub(crate) use command_words::simple_commands;
pub(crate) use condition::HookCondition;
pub(crate) use hook::{Hook, HookAction, HookFile, HookOrigin, MAX_FILE_BYTES};
pub(crate) use response::{HookResponse, read_response};
pub(crate) use toml_file::read_toml_file;
pub(crate) use tool_input::{FILE_PATH, ToolShape, shape_of};

/// A project's hook files, in the order in which their hooks run.
pub(crate) const PROJECT_FILES: [&str; 3] = [".aye/hooks.toml", ".claude/settings.json", ".claude/settings.local.json"];
/// The user's hook file, in the config directory.
pub(crate) const USER_FILE: &str = "hooks.toml";
/// Environment variable that contains the workspace path, for use in hook commands.
pub(crate) const PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";
/// Environment variable that contains a plugin's folder, for use in the commands of its hooks and MCP servers.
pub(crate) const PLUGIN_ROOT: &str = "CLAUDE_PLUGIN_ROOT";
