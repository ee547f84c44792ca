//! The `OpenPath` tool, which opens a file with its default program.

use super::handoff;
use super::handoff::{OpenMode, PlannedHandoff};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::CallResult;
use crate::tools::draft::CallDraft;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct OpenPath;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// Path of a file or directory; not a URL.
    path: String,
}

impl Tool for OpenPath {
    const NAME: &'static str = "OpenPath";
    const ALIASES: &'static [Alias<Arguments>] =
        &[Alias::with_same_arguments("open_path"), Alias::with_same_arguments("xdg-open")];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/OpenPath.md");
    type Arguments = Arguments;
    type Work = PlannedHandoff;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        handoff::actions(OpenMode::Open, &arguments.path, paths)
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<PlannedHandoff>, ToolError> {
        handoff::draft(OpenMode::Open, &arguments.path, settings)
    }

    fn run(work: PlannedHandoff, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        handoff::run(work, settings, context)
    }
}
