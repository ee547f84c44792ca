//! Registry of built-in tools.

use super::http::http_request;
use super::open::{open_path, reveal_in_os};
use super::planning::{ask_user, propose_plan, update_steps};
use super::read::{disk_usage, hash_file, read_file, stat, upload_artifact};
use super::search::{glob, grep, list_directory};
use super::session_search::WEB_SEARCH;
use super::sessions::{cli_environment, cli_platform, cli_read, cli_session, cli_stop, cli_write};
use super::settings::ToolSettings;
use super::shell::run_command;
use super::suggest_memory::SuggestMemory;
use super::text::{text_inspect, text_patch};
use super::tool::{ErasedTool, SharedTool, Tool};
use super::web_search::tool as web_search;
use super::write::{append_file, apply_patch, copy, create_directory, delete, edit_file, move_path, write_file};
use crate::protocol::{SUGGEST_MEMORY, TextTools};
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

/// All built-in tools in the order in which the model sees them: reading, writing, commands, network.
static TOOLS: LazyLock<Vec<SharedTool>> = LazyLock::new(|| {
    vec![
        erase::<read_file::ReadFile>(),
        erase::<list_directory::ListDirectory>(),
        erase::<glob::Glob>(),
        erase::<grep::Grep>(),
        erase::<stat::Stat>(),
        erase::<text_inspect::TextInspect>(),
        erase::<hash_file::HashFile>(),
        erase::<disk_usage::DiskUsage>(),
        erase::<upload_artifact::UploadArtifact>(),
        erase::<write_file::WriteFile>(),
        erase::<edit_file::EditFile>(),
        erase::<apply_patch::ApplyPatch>(),
        erase::<append_file::AppendFile>(),
        erase::<text_patch::TextPatch>(),
        erase::<create_directory::CreateDirectory>(),
        erase::<copy::Copy>(),
        erase::<move_path::Move>(),
        erase::<delete::Delete>(),
        erase::<run_command::RunCommand>(),
        erase::<cli_session::CliSession>(),
        erase::<cli_write::CliWrite>(),
        erase::<cli_read::CliRead>(),
        erase::<cli_stop::CliStop>(),
        erase::<cli_platform::CliGetPlatform>(),
        erase::<cli_environment::CliEnv>(),
        erase::<open_path::OpenPath>(),
        erase::<reveal_in_os::RevealInOs>(),
        erase::<http_request::HttpRequest>(),
        erase::<web_search::WebSearch>(),
        erase::<ask_user::AskUser>(),
        erase::<propose_plan::ProposePlan>(),
        erase::<update_steps::UpdateSteps>(),
        erase::<SuggestMemory>(),
        #[cfg(test)]
        erase::<super::tests::adding::CountWords>(),
    ]
});

fn erase<T: Tool>() -> SharedTool {
    Arc::new(ErasedTool::<T>(PhantomData))
}

/// Returns the built-in tools that the settings enable.
pub(super) fn enabled_built_in(settings: &ToolSettings) -> impl Iterator<Item = &'static SharedTool> {
    let is_here = |tool: &&SharedTool| match tool.name() {
        WEB_SEARCH => settings.session.search.is_available(),
        SUGGEST_MEMORY => settings.session.memory.is_some(),
        name => settings.text.enabled || !TextTools::binds(name, name),
    };
    TOOLS.iter().filter(is_here)
}

/// Finds a built-in tool. Built-in names cannot be redefined. An exact match takes precedence, because `grep` is an
/// alias that has limits of its own.
pub(super) fn find_built_in(name: &str) -> Option<&'static SharedTool> {
    let tools = || TOOLS.iter();
    tools()
        .find(|tool| tool.name() == name)
        .or_else(|| tools().find(|tool| tool.alias_names().contains(&name)))
        .or_else(|| tools().find(|tool| tool.name().eq_ignore_ascii_case(name)))
        .or_else(|| tools().find(|tool| tool.alias_names().iter().any(|alias| alias.eq_ignore_ascii_case(name))))
}

/// Returns all built-in tools.
pub(super) fn built_in_tools() -> impl Iterator<Item = &'static SharedTool> {
    TOOLS.iter()
}

/// Returns the names of all built-in tools.
pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
    built_in_tools().map(|tool| tool.name())
}

/// Returns the names and aliases of all built-in tools.
pub(crate) fn all_names() -> Vec<&'static str> {
    TOOLS.iter().flat_map(|tool| std::iter::once(tool.name()).chain(tool.alias_names())).collect()
}

/// Returns the canonical name of the built-in tool with this name or alias.
pub(crate) fn canonical_name(tool_name: &str) -> Option<&'static str> {
    find_built_in(tool_name).map(|tool| tool.name())
}

/// Returns whether the tool only reads or changes files and never starts a program.
pub(crate) fn spawns_no_process(tool_name: &str) -> bool {
    find_built_in(tool_name).is_some_and(|tool| tool.capability().starts_with("File.") || tool.capability() == "Workspace.Upload")
}
