//! The registry of built-in tools.

use super::http::http_request;
use super::open::{open_path, reveal_in_os};
use super::planning::{ask_user, propose_plan, update_steps};
use super::read::{disk_usage, hash_file, read_file, stat, upload_artifact};
use super::search::{glob, grep, list_directory};
use super::session_search::WEB_SEARCH;
use super::sessions::{cli_environment, cli_platform, cli_read, cli_session, cli_stop, cli_write};
use super::settings::Settings;
use super::shell::run_command;
use super::text::{text_inspect, text_patch};
use super::text_tools::TextTools;
use super::tool::{ErasedTool, SharedTool, Tool};
use super::web_search::tool as web_search;
use super::write::{append_file, apply_patch, copy, create_directory, delete, edit_file, move_path, write_file};
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

/// All built-in tools in the order shown to the model: reads, writes, commands, network.
static TOOLS: LazyLock<Vec<SharedTool>> = LazyLock::new(|| {
    vec![
        erased::<read_file::ReadFile>(),
        erased::<list_directory::ListDirectory>(),
        erased::<glob::Glob>(),
        erased::<grep::Grep>(),
        erased::<stat::Stat>(),
        erased::<text_inspect::TextInspect>(),
        erased::<hash_file::HashFile>(),
        erased::<disk_usage::DiskUsage>(),
        erased::<upload_artifact::UploadArtifact>(),
        erased::<write_file::WriteFile>(),
        erased::<edit_file::EditFile>(),
        erased::<apply_patch::ApplyPatch>(),
        erased::<append_file::AppendFile>(),
        erased::<text_patch::TextPatch>(),
        erased::<create_directory::CreateDirectory>(),
        erased::<copy::Copy>(),
        erased::<move_path::Move>(),
        erased::<delete::Delete>(),
        erased::<run_command::RunCommand>(),
        erased::<cli_session::CliSession>(),
        erased::<cli_write::CliWrite>(),
        erased::<cli_read::CliRead>(),
        erased::<cli_stop::CliStop>(),
        erased::<cli_platform::CliGetPlatform>(),
        erased::<cli_environment::CliEnv>(),
        erased::<open_path::OpenPath>(),
        erased::<reveal_in_os::RevealInOs>(),
        erased::<http_request::HttpRequest>(),
        erased::<web_search::WebSearch>(),
        erased::<ask_user::AskUser>(),
        erased::<propose_plan::ProposePlan>(),
        erased::<update_steps::UpdateSteps>(),
        #[cfg(test)]
        erased::<super::tests::adding::CountWords>(),
    ]
});

fn erased<T: Tool>() -> SharedTool {
    Arc::new(ErasedTool::<T>(PhantomData))
}

/// Returns the built-in tools that the settings enable.
pub(super) fn built_in_here(settings: &Settings) -> impl Iterator<Item = &'static SharedTool> {
    let is_here = |tool: &&SharedTool| match tool.name() {
        WEB_SEARCH => settings.search.is_available(),
        name => settings.text.enabled || !TextTools::binds(name, name),
    };
    TOOLS.iter().filter(is_here)
}

/// Finds a built-in tool; its names cannot be redefined. An exact match comes first, because `grep` is an alias with its own
/// limits.
pub(super) fn built_in(name: &str) -> Option<&'static SharedTool> {
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
pub(crate) fn name_of(tool_name: &str) -> Option<&'static str> {
    built_in(tool_name).map(|tool| tool.name())
}

/// Returns whether the tool only reads or changes files and starts no program.
pub(crate) fn starts_nothing(tool_name: &str) -> bool {
    built_in(tool_name).is_some_and(|tool| tool.capability().starts_with("File.") || tool.capability() == "Workspace.Upload")
}
