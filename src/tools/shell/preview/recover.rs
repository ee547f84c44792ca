//! Cleanup after dead processes: started commits are completed, everything else is removed.

use super::commit::said_left;
use super::overlay_dir::{Call, View, previews};
use crate::protocol::{CallId, ErrorCode, SessionId, ToolError, ToolResult};
use crate::sys::overlay::{self, Outcome};
use crate::tools::paths::listed;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Time within which a new preview may not have recorded its owner yet.
const IN_THE_MAKING: Duration = Duration::from_secs(60);
/// Time for which an outcome is kept for a session that is not resumed, and for which failed changes are retried.
const WAITS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The session resumed at startup.
pub(crate) struct Resumed<'a> {
    pub session: &'a SessionId,
    /// Predicate: a call started, but has no result in the journal.
    pub awaits: &'a dyn Fn(&CallId) -> bool,
}

/// Results of the cleanup at startup.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Results of calls that the session awaits. They are found at every start until the journal has them.
    pub settled: Vec<ToolResult>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// Examines the previews below these directories. Outcomes of other sessions are kept for them.
pub(crate) fn recover(bases: &[PathBuf], resumed: Option<&Resumed<'_>>) -> Recovered {
    let (mut kept, mut dropped, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for entry in bases.iter().filter_map(|base| fs::read_dir(previews(base)).ok()).flatten().flatten() {
        match one(&entry.path(), resumed, &mut notices) {
            Ok(Some((result, true))) => kept.push(result),
            Ok(Some((result, false))) => dropped.push(result),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, path = %entry.path().display(), "cannot recover a preview");
                if overlay::has_begun(&entry.path()) {
                    let path = entry.path();
                    notices.push(format!(
                        "aye ended while applying the changes of a command and could not finish: {error}; the rest is in `{}`, \
                         and aye retries at the next start",
                        path.display()
                    ));
                }
            }
        }
    }
    // A call may have been previewed twice; applied changes take precedence.
    dropped.retain(|result: &ToolResult| kept.iter().all(|one: &ToolResult| one.tool_call_id != result.tool_call_id));
    kept.append(&mut dropped);
    Recovered { settled: kept, notices }
}

/// Returns the result of a call that its session awaits, and whether any change was to be applied by then.
fn one(path: &Path, resumed: Option<&Resumed<'_>>, notices: &mut Vec<String>) -> io::Result<Option<(ToolResult, bool)>> {
    let age = path.symlink_metadata()?.modified()?.elapsed().unwrap_or_default();
    let Some(mut view) = View::left_over(path)? else { return Ok(None) };
    let final_result = view.final_result::<ToolResult>();
    // On an error, nothing that was begun is removed.
    let outcome = if final_result.is_some() { None } else { overlay::recover(view.path())? };
    let waits = outcome.as_ref().is_some_and(|outcome| !outcome.is_over());
    if let Some(outcome) = &outcome {
        notices.push(told(outcome));
    }
    let Some(Call { tool_call_id, tool_name, session_id }) = view.call() else {
        if age > IN_THE_MAKING && !waits {
            view.give_up();
        }
        return Ok(None);
    };
    let known = final_result.is_some() || outcome.is_some();
    let result = match (final_result, outcome, view.result::<ToolResult>()) {
        (Some(result), _, _) => result,
        (None, Some(outcome), Some(kept)) => said_left(kept, &outcome),
        (None, Some(outcome), None) => {
            let message = "aye ended while applying the changes of the command; they are applied now, but its output is lost";
            let error = ToolError::new(ErrorCode::OutcomeUnknown, message);
            said_left(ToolResult::refused(tool_call_id, tool_name, error), &outcome)
        }
        (None, None, _) => {
            let message = "aye ended before any change of the command was applied; nothing was written, run it again";
            ToolResult::refused(tool_call_id, tool_name, ToolError::new(ErrorCode::Cancelled, message))
        }
    };
    let mine = resumed.filter(|resumed| session_id.as_ref() == Some(resumed.session));
    let awaited = match mine {
        Some(resumed) => (resumed.awaits)(&result.tool_call_id),
        // Without an outcome, the result only says that nothing was written.
        None => session_id.is_some(),
    };
    if age > WAITS || !(awaited || waits) {
        view.give_up();
        return Ok(None);
    }
    if !waits {
        if known && view.final_result::<ToolResult>().is_none() {
            view.keep_final(&result)?;
        }
        view.shrink()?;
    }
    Ok(mine.filter(|_| awaited).map(|_| (result, known)))
}

/// Describes a commit that was just completed, for the user.
fn told(outcome: &Outcome) -> String {
    let said = "aye ended while applying the changes of a command";
    if outcome.is_whole() {
        return format!("{said}; they are applied now");
    }
    let left = listed(outcome.left.iter().map(|left| format!("`{}` ({})", left.path.display(), left.why)));
    let later = if outcome.is_over() { "" } else { "; aye retries at the next start" };
    format!("{said}; these differ from the result of the command: {left}{later}")
}
