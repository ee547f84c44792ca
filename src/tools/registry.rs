//! The list of all tools; a tool that is not here does not exist.

use super::http::http_request;
use super::read::read_file;
use super::search::{glob, grep, list_directory};
use super::sessions::{cli_environment, cli_platform, cli_read, cli_session, cli_stop, cli_write};
use super::shell::run_command;
use super::tool::{AnyTool, Hidden, Settings};
use super::write::{copy, create_directory, delete, edit_file, move_path, write_file};
use crate::protocol::{ErrorCode, ToolError};
use std::marker::PhantomData;

static TOOLS: &[&dyn AnyTool] = &[
    &Hidden::<read_file::ReadFile>(PhantomData),
    &Hidden::<write_file::WriteFile>(PhantomData),
    &Hidden::<edit_file::EditFile>(PhantomData),
    &Hidden::<delete::Delete>(PhantomData),
    &Hidden::<move_path::Move>(PhantomData),
    &Hidden::<copy::Copy>(PhantomData),
    &Hidden::<create_directory::CreateDirectory>(PhantomData),
    &Hidden::<list_directory::ListDirectory>(PhantomData),
    &Hidden::<glob::Glob>(PhantomData),
    &Hidden::<grep::Grep>(PhantomData),
    &Hidden::<run_command::RunCommand>(PhantomData),
    &Hidden::<cli_session::CliSession>(PhantomData),
    &Hidden::<cli_write::CliWrite>(PhantomData),
    &Hidden::<cli_read::CliRead>(PhantomData),
    &Hidden::<cli_stop::CliStop>(PhantomData),
    &Hidden::<cli_platform::CliGetPlatform>(PhantomData),
    &Hidden::<cli_environment::CliEnv>(PhantomData),
    &Hidden::<http_request::HttpRequest>(PhantomData),
    #[cfg(test)]
    &Hidden::<super::tests::adding::CountWords>(PhantomData),
];

/// All tools: the built-in ones, then those that the policy makes of commands.
pub(super) fn offered(settings: &Settings) -> impl Iterator<Item = &dyn AnyTool> {
    let named = settings.named.iter().filter(|tool| built_in(&tool.name).is_none());
    TOOLS.iter().copied().chain(named.map(|tool| tool as &dyn AnyTool))
}

/// By its name or one of its aliases, in any case.
pub(super) fn find<'a>(name: &str, settings: &'a Settings) -> Option<&'a dyn AnyTool> {
    built_in(name).or_else(|| offered(settings).find(|tool| tool.name().eq_ignore_ascii_case(name)))
}

/// Nobody gives a name of these another meaning. `grep` is an alias with bounds of its own, so that case counts first.
pub(super) fn built_in(name: &str) -> Option<&'static dyn AnyTool> {
    let tools = || TOOLS.iter().copied();
    tools()
        .find(|tool| tool.name() == name)
        .or_else(|| tools().find(|tool| tool.alias_names().contains(&name)))
        .or_else(|| tools().find(|tool| tool.name().eq_ignore_ascii_case(name)))
        .or_else(|| tools().find(|tool| tool.alias_names().iter().any(|alias| alias.eq_ignore_ascii_case(name))))
}

/// Those that no policy and no manifest made.
pub(super) fn built_in_tools() -> impl Iterator<Item = &'static dyn AnyTool> {
    TOOLS.iter().copied()
}

/// Their names.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    built_in_tools().map(|tool| tool.name())
}

/// What is said of a name that no tool has; these are the names that there are.
pub(super) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> ToolError {
    let names: Vec<_> = names.collect();
    let lower = name.to_lowercase();
    let near = names.iter().map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known)).min();
    let meant = match near {
        Some((distance, known)) if distance <= 1 + known.len() / 4 => format!("did you mean `{known}`?"),
        _ => format!("the tools are {}", names.join(", ")),
    };
    ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool `{name}`; {meant}"))
}
