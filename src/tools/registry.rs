//! The registry of all tools.

use super::custom::CustomTool;
use super::http::http_request;
use super::mcp::RemoteTools;
use super::on_demand::FindTools;
use super::open::{open_path, reveal_in_os};
use super::read::{disk_usage, hash_file, read_file, stat, upload_artifact};
use super::search::{glob, grep, list_directory};
use super::sessions::{cli_environment, cli_platform, cli_read, cli_session, cli_stop, cli_write};
use super::settings::Settings;
use super::shell::run_command;
use super::text::{text_inspect, text_patch};
use super::text_tools::TextTools;
use super::tool::{AnyTool, ErasedTool};
use super::write::{append_file, apply_patch, copy, create_directory, delete, edit_file, move_path, write_file};
use crate::policy::NamedCommand;
use crate::protocol::{ErrorCode, ToolError};
use std::marker::PhantomData;
use std::sync::Arc;

/// All built-in tools in the order shown to the model: reads, writes, commands, network.
static TOOLS: &[&dyn AnyTool] = &[
    &ErasedTool::<read_file::ReadFile>(PhantomData),
    &ErasedTool::<list_directory::ListDirectory>(PhantomData),
    &ErasedTool::<glob::Glob>(PhantomData),
    &ErasedTool::<grep::Grep>(PhantomData),
    &ErasedTool::<stat::Stat>(PhantomData),
    &ErasedTool::<text_inspect::TextInspect>(PhantomData),
    &ErasedTool::<hash_file::HashFile>(PhantomData),
    &ErasedTool::<disk_usage::DiskUsage>(PhantomData),
    &ErasedTool::<upload_artifact::UploadArtifact>(PhantomData),
    &ErasedTool::<write_file::WriteFile>(PhantomData),
    &ErasedTool::<edit_file::EditFile>(PhantomData),
    &ErasedTool::<apply_patch::ApplyPatch>(PhantomData),
    &ErasedTool::<append_file::AppendFile>(PhantomData),
    &ErasedTool::<text_patch::TextPatch>(PhantomData),
    &ErasedTool::<create_directory::CreateDirectory>(PhantomData),
    &ErasedTool::<copy::Copy>(PhantomData),
    &ErasedTool::<move_path::Move>(PhantomData),
    &ErasedTool::<delete::Delete>(PhantomData),
    &ErasedTool::<run_command::RunCommand>(PhantomData),
    &ErasedTool::<cli_session::CliSession>(PhantomData),
    &ErasedTool::<cli_write::CliWrite>(PhantomData),
    &ErasedTool::<cli_read::CliRead>(PhantomData),
    &ErasedTool::<cli_stop::CliStop>(PhantomData),
    &ErasedTool::<cli_platform::CliGetPlatform>(PhantomData),
    &ErasedTool::<cli_environment::CliEnv>(PhantomData),
    &ErasedTool::<open_path::OpenPath>(PhantomData),
    &ErasedTool::<reveal_in_os::RevealInOs>(PhantomData),
    &ErasedTool::<http_request::HttpRequest>(PhantomData),
    #[cfg(test)]
    &ErasedTool::<super::tests::adding::CountWords>(PhantomData),
];

/// Returns the local tools: built-in ones, then named commands of the policy, then custom tools.
pub(super) fn local(settings: &Settings) -> impl Iterator<Item = &dyn AnyTool> {
    let named = settings.named.iter().filter(|tool| built_in(&tool.name).is_none());
    let own = |tool: &&Arc<CustomTool>| {
        built_in(&tool.name).is_none() && !settings.named.iter().any(|named| named.name.eq_ignore_ascii_case(&tool.name))
    };
    let custom = settings.custom.iter().filter(own).map(|tool| &**tool as &dyn AnyTool);
    built_in_here(settings).map(|tool| tool as &dyn AnyTool).chain(named.map(|tool| tool as &dyn AnyTool)).chain(custom)
}

/// Returns the built-in tools that the settings enable.
pub(super) fn built_in_here(settings: &Settings) -> impl Iterator<Item = &'static dyn AnyTool> {
    let text = |tool: &&dyn AnyTool| settings.text.enabled || !TextTools::binds(tool.name(), tool.name());
    TOOLS.iter().copied().filter(text)
}

/// Returns all callable tools: local ones whose name is not taken by an MCP tool, then MCP tools.
fn all(settings: &Settings) -> impl Iterator<Item = &dyn AnyTool> {
    let remote = settings.remote.as_deref();
    let clear = move |tool: &&dyn AnyTool| remote.is_none_or(|remote| !remote.takes(tool.name()));
    local(settings).filter(clear).chain(remote.into_iter().flat_map(RemoteTools::listed))
}

/// Returns the tools of the next request. Loaded tools come last, so that the list before them does not change.
pub(super) fn offered(settings: &Settings) -> Vec<&dyn AnyTool> {
    let Some(finder) = settings.finder.as_deref() else { return all(settings).collect() };
    let mut offered: Vec<&dyn AnyTool> = all(settings).filter(|tool| !finder.loads(*tool)).collect();
    offered.push(finder);
    offered.extend(finder.loaded());
    offered
}

/// Returns the tools to show in front ends: those of the next request, and built-in ones that are not loaded yet.
pub(super) fn available(settings: &Settings) -> Vec<&dyn AnyTool> {
    let Some(finder) = settings.finder.as_deref() else { return all(settings).collect() };
    let shown = |tool: &&dyn AnyTool| built_in(tool.name()).is_some() || !finder.waits(*tool);
    let mut shown: Vec<&dyn AnyTool> = all(settings).filter(shown).collect();
    shown.push(finder);
    shown
}

/// Finds a tool by name or alias, ignoring case, or by the name of an MCP tool.
pub(super) fn find<'a>(name: &str, settings: &'a Settings) -> Option<&'a dyn AnyTool> {
    resolve(name, settings).ok()
}

/// Resolves a tool name.
///
/// # Errors
///
/// The name is unknown or ambiguous.
pub(super) fn resolve<'a>(name: &str, settings: &'a Settings) -> Result<&'a dyn AnyTool, ToolError> {
    if let Some(finder) = settings.finder.as_deref().filter(|_| FindTools::is_called(name)) {
        return Ok(finder);
    }
    let own = built_in(name).or_else(|| local(settings).find(|tool| tool.name().eq_ignore_ascii_case(name)));
    let remote = settings.remote.as_ref().map(|remote| remote.find(name, own.is_some())).transpose()?.flatten();
    // Do not suggest tools that the policy does not grant.
    let granted = |tool: &&dyn AnyTool| (settings.grants)(tool.capability()) && (settings.may_use)(tool.name()).is_ok();
    remote.or(own).ok_or_else(|| unknown(name, available(settings).into_iter().filter(granted).map(AnyTool::offered_name)))
}

/// Finds a built-in tool; its names cannot be redefined. An exact match comes first, because `grep` is an alias with limits of
/// its own.
pub(super) fn built_in(name: &str) -> Option<&'static dyn AnyTool> {
    let tools = || TOOLS.iter().copied();
    tools()
        .find(|tool| tool.name() == name)
        .or_else(|| tools().find(|tool| tool.alias_names().contains(&name)))
        .or_else(|| tools().find(|tool| tool.name().eq_ignore_ascii_case(name)))
        .or_else(|| tools().find(|tool| tool.alias_names().iter().any(|alias| alias.eq_ignore_ascii_case(name))))
}

/// Returns all built-in tools.
pub(super) fn built_in_tools() -> impl Iterator<Item = &'static dyn AnyTool> {
    TOOLS.iter().copied()
}

/// Returns the names of all built-in tools.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    built_in_tools().map(|tool| tool.name())
}

/// Returns the names and aliases of all built-in tools.
#[cfg(test)]
pub(super) fn all_names() -> Vec<&'static str> {
    TOOLS.iter().flat_map(|tool| std::iter::once(tool.name()).chain(tool.alias_names())).collect()
}

/// Tools of other agents without a counterpart, and what to do instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["readmanyfiles", "readfiles", "readmultiplefiles"], "call ReadFile once for each file, all in one response"),
    (&["todowrite", "todoread", "updateplan", "writetodos"], "write the plan in your responses"),
    (&["notebookedit", "notebookread"], "ReadFile shows a notebook, with `raw` as JSON, which EditFile changes"),
    (&["codebasesearch", "semanticsearch"], "search contents with Grep and names with Glob"),
    (&["websearch", "googlewebsearch"], "HttpRequest fetches a URL that you know"),
    (&["task", "agent", "spawnagent"], "do the task yourself with your tools"),
];

/// Limit of listed names, because MCP servers may offer thousands.
const MAX_NAMED: usize = 100;

/// Builds the error for an unknown tool, with suggestions from `names`.
pub(super) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> ToolError {
    let names: Vec<_> = names.collect();
    let lower = name.to_lowercase();
    let near = names.iter().map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known)).min();
    let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.contains(&lower.replace(['_', '-'], "").as_str()));
    let meant = match near {
        _ if elsewhere.is_some() => elsewhere.map(|(_, what)| (*what).to_owned()).unwrap_or_default(),
        Some((distance, known)) if distance <= 1 + known.len() / 4 => format!("did you mean `{known}`?"),
        _ => {
            let more = names.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("available tools: {}{more}", names[..names.len().min(MAX_NAMED)].join(", "))
        }
    };
    ToolError::new(ErrorCode::ToolNotFound, format!("unknown tool `{name}`; {meant}"))
}

/// Returns the canonical name of the built-in tool with this name or alias.
pub fn name_of(tool_name: &str) -> Option<&'static str> {
    built_in(tool_name).and_then(|tool| built_in_names().find(|name| *name == tool.name()))
}

/// Returns whether the tool only reads or changes files and starts no program.
pub fn starts_nothing(tool_name: &str) -> bool {
    built_in(tool_name).is_some_and(|tool| tool.capability().starts_with("File.") || tool.capability() == "Workspace.Upload")
}

/// Checks that a tool has this name or alias, among the built-in ones and `named`.
///
/// # Errors
///
/// `TOOL_NOT_FOUND`, with the available names.
pub fn known(tool_name: &str, named: &[NamedCommand]) -> Result<(), ToolError> {
    let mut names: Vec<&str> = built_in_names().collect();
    names.extend(named.iter().map(|command| command.name.as_str()));
    if built_in(tool_name).is_some() || names.iter().any(|name| name.eq_ignore_ascii_case(tool_name)) {
        return Ok(());
    }
    Err(unknown(tool_name, names.into_iter()))
}
