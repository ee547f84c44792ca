//! The list of all tools; a tool that is not here does not exist.

use super::tool::{AnyTool, Hidden};
use super::{edit_file, glob, grep, http_request, list_directory, read_file, run_command, write_file};
use crate::protocol::{ErrorCode, ToolError};
use std::marker::PhantomData;

pub(super) static TOOLS: &[&dyn AnyTool] = &[
    &Hidden::<read_file::ReadFile>(PhantomData),
    &Hidden::<write_file::WriteFile>(PhantomData),
    &Hidden::<edit_file::EditFile>(PhantomData),
    &Hidden::<list_directory::ListDirectory>(PhantomData),
    &Hidden::<glob::Glob>(PhantomData),
    &Hidden::<grep::Grep>(PhantomData),
    &Hidden::<run_command::RunCommand>(PhantomData),
    &Hidden::<http_request::HttpRequest>(PhantomData),
];

/// By its name or one of its aliases, in any case.
pub(super) fn find(name: &str) -> Option<&'static dyn AnyTool> {
    let named = |known: &&str| known.eq_ignore_ascii_case(name);
    TOOLS.iter().copied().find(|tool| named(&tool.name()) || tool.aliases().iter().any(named))
}

pub(super) fn unknown(name: &str) -> ToolError {
    let names: Vec<_> = TOOLS.iter().map(|tool| tool.name()).collect();
    let lower = name.to_lowercase();
    let near = names.iter().map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known)).min();
    let meant = match near {
        Some((distance, known)) if distance <= 1 + known.len() / 4 => format!("did you mean `{known}`?"),
        _ => format!("the tools are {}", names.join(", ")),
    };
    ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool `{name}`; {meant}"))
}
