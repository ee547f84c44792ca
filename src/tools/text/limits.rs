//! Applies the restrictions of the text tools to a call.

use crate::protocol::{TextTools, ToolError};
use crate::tools::draft::CallDraft;
use crate::tools::paths::Paths;
use crate::tools::settings::{PathAccess, ToolSettings};
use crate::tools::tool::{AnyTool, Payload};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// Returns settings with which a search shows only files that the restrictions permit.
fn restrict_settings(settings: &ToolSettings) -> ToolSettings {
    let (own, may_read) = (settings.text.clone(), Arc::clone(&settings.paths.may_read));
    let shown = move |path: &Path| {
        let metadata = || path.symlink_metadata().ok();
        let fits = own.has_allowed_extension(path)
            && own
                .max_file_size
                .is_none_or(|limit| metadata().is_none_or(|metadata| !metadata.is_file() || metadata.len() <= limit));
        may_read(path) && (fits || metadata().is_some_and(|metadata| metadata.is_dir()))
    };
    // The faster check per entry does not include this restriction.
    let paths = PathAccess { may_read: Arc::new(shown), may_read_entry: None, ..settings.paths.clone() };
    ToolSettings { paths, ..settings.clone() }
}

/// Drafts a call under the restrictions that apply to its tool.
pub(in crate::tools) fn draft_call(
    tool: &dyn AnyTool,
    called: &str,
    arguments: Map<String, Value>,
    settings: &ToolSettings,
) -> Result<CallDraft<Payload>, ToolError> {
    if !TextTools::binds(tool.name(), called) {
        return tool.draft(called, arguments, settings);
    }
    settings.text.is_on(called)?;
    // The draft reports invalid arguments.
    if let Ok(actions) = tool.actions(called, arguments.clone(), &Paths::on_disk(settings)) {
        settings.text.admit(called, &actions)?;
    }
    let draft = tool.draft(called, arguments, &restrict_settings(settings))?;
    settings.text.admit_size(draft.proposal.as_ref())?;
    Ok(draft)
}

/// Returns the settings under which a call of this tool, by this name, runs.
pub(in crate::tools) fn running(name: &str, called: &str, settings: &Arc<ToolSettings>) -> Arc<ToolSettings> {
    if TextTools::binds(name, called) { Arc::new(restrict_settings(settings)) } else { Arc::clone(settings) }
}
