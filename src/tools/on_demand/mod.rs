//! Tools on demand. Requests do not include their definitions until the model has loaded them with `FindTools`.

mod find_tools;
mod loaded;
#[cfg(test)]
mod tests;

pub(crate) use find_tools::FindTools;
pub(crate) use loaded::{FIND_TOOLS, LoadedTools};

use super::tool::AnyTool;
use crate::protocol::{ErrorCode, ToolError};

/// Built-in tools that few tasks need, grouped by topic.
const SELDOM_USED: &[(&[&str], &str)] = &[
    (&["Stat", "HashFile", "DiskUsage"], "file facts"),
    (&["AppendFile", "CreateDirectory", "Copy", "Move", "Delete"], ""),
    (&["TextInspect", "TextPatch"], "document sections"),
    (&["CliSession", "CliWrite", "CliRead", "CliStop"], "terminal sessions, background commands"),
    (&["CliGetPlatform", "CliEnv", "HttpRequest", "WebSearch"], ""),
    (&["UploadArtifact", "OpenPath", "RevealInOs"], "files for the user"),
    (&["AskUser", "ProposePlan", "UpdateSteps", "SuggestMemory"], ""),
    (&["Agent"], "agents for parts of a task"),
];
/// Tools that are used together. Loading the first one also loads the others.
const TOGETHER: &[&str] = &["CliSession", "CliWrite", "CliRead", "CliStop"];

/// Returns whether a built-in tool is loaded on demand.
fn is_seldom_used(name: &str) -> bool {
    SELDOM_USED.iter().any(|(names, _)| names.contains(&name))
}

/// If a tool that has not been loaded reports invalid arguments, adds a hint on how to see which arguments it takes.
pub(super) fn with_hint(error: ToolError, tool: &dyn AnyTool, finder: Option<&FindTools>) -> ToolError {
    let waits = finder.is_some_and(|finder| finder.needs_loading(tool));
    if error.code != ErrorCode::InvalidRequest || !waits {
        return error;
    }
    let message = format!("{}\nhint: load {} with {FIND_TOOLS} to see its arguments", error.message, tool.offered_name());
    ToolError { message, ..error }
}
