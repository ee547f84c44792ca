//! What dead processes left: commits that were begun are finished, all else of theirs is removed.

use super::keep::said_left;
use super::view::{Call, View, previews};
use crate::protocol::{ErrorCode, SessionId, ToolError, ToolResult};
use crate::sys::layer;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// A process that makes one has said whose it is before.
const IN_THE_MAKING: Duration = Duration::from_secs(60);
/// How long an outcome waits for a session that nobody takes up.
const WAITS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Looks through the previews below `base`. Given are the outcomes of calls of `session` whose process died while they were
/// kept; those of others wait for theirs.
pub fn recover(base: &Path, session: Option<&SessionId>) -> Vec<ToolResult> {
    let Ok(entries) = fs::read_dir(previews(base)) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        match one(&entry.path(), session) {
            Ok(recovered) => found.extend(recovered),
            Err(error) => tracing::warn!(%error, path = %entry.path().display(), "a preview could not be taken up"),
        }
    }
    found
}

fn one(path: &Path, session: Option<&SessionId>) -> io::Result<Option<ToolResult>> {
    let age = path.symlink_metadata()?.modified()?.elapsed().unwrap_or_default();
    let Some(mut view) = View::left_over(path)? else { return Ok(None) };
    let Some(call) = view.call() else {
        if age > IN_THE_MAKING {
            view.give_up();
        }
        return Ok(None);
    };
    // An error leaves it as it is: nothing that was begun is thrown away.
    let outcome = layer::recover(view.path())?;
    let Some(kept) = view.result::<ToolResult>() else {
        view.give_up();
        return Ok(None);
    };
    let Call { tool_call_id, tool_name, session_id } = call;
    let result = if let Some(outcome) = outcome {
        said_left(kept, &outcome)
    } else {
        let message = "aye ended before anything that the command did was kept; nothing was written, run it again";
        ToolResult::refused(tool_call_id, tool_name, ToolError::new(ErrorCode::Cancelled, message))
    };
    view.shrink()?;
    let Some(owner) = session_id else {
        view.give_up();
        return Ok(None);
    };
    if Some(&owner) != session {
        if age > WAITS {
            view.give_up();
        }
        return Ok(None);
    }
    // Told once more at the next start, should this one end before the session has it.
    if view.was_told() {
        view.give_up();
    } else {
        view.note_told()?;
    }
    Ok(Some(result))
}
