//! Checks that the files affected by a call have no unsaved changes in an editor.

use super::arguments::object;
use super::paths::Paths;
use super::tool::AnyTool;
use super::toolset::Toolset;
use crate::protocol::{Action, Place, Target, ToolCall, ToolError};
use std::sync::Arc;

/// Checks a call's files before the call is planned. Requests only files that the policy allows the call to read from
/// the editor.
pub(super) async fn check_before_planning(call: &ToolCall, tools: &Arc<Toolset>) -> Result<(), ToolError> {
    let settings = tools.settings();
    let Some(editor) = &settings.session.editor else { return Ok(()) };
    let (call, own) = (call.clone(), Arc::clone(tools));
    // If the files cannot be determined, the plan reports the error.
    let Ok(Some(files)) = tokio::task::spawn_blocking(move || visible_files(&call, &own)).await else { return Ok(()) };
    editor.check_saved(files, settings.max_file_size_bytes).await.map(drop)
}

fn visible_files(call: &ToolCall, tools: &Toolset) -> Option<Vec<Target>> {
    let settings = tools.settings();
    let tool = tools.resolve(&call.tool_name).ok().filter(|tool| writes_files(&**tool))?;
    (settings.may_use)(tool.name()).ok()?;
    let actions = tool.actions(&call.tool_name, object(&call.arguments).ok()?, &Paths::on_disk(settings)).ok()?;
    let allowed = |action: &Action| match action {
        Action::Write { target } => (settings.paths.may_read)(&target.real) && (settings.paths.may_write)(&target.real),
        Action::Delete { target } => (settings.paths.may_read)(&target.real) && (settings.paths.may_delete)(&target.real),
        _ => true,
    };
    actions.iter().all(allowed).then(|| changed_files(&*tool, &actions))
}

fn writes_files(tool: &dyn AnyTool) -> bool {
    matches!(tool.capability(), "File.Write" | "File.Delete")
}

/// Returns the existing files that a tool's actions would change.
pub(super) fn changed_files(tool: &dyn AnyTool, actions: &[Action]) -> Vec<Target> {
    if !writes_files(tool) {
        return Vec::new();
    }
    let file = |action: &Action| match action {
        Action::Write { target } | Action::Delete { target } if matches!(target.place, Place::File { .. }) => {
            Some(target.clone())
        }
        _ => None,
    };
    let mut files: Vec<Target> = actions.iter().filter_map(file).collect();
    files.sort_by(|one, other| one.real.cmp(&other.real));
    files.dedup_by(|one, other| one.real == other.real);
    files
}
