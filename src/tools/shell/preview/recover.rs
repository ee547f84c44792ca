//! Cleans up after processes that have ended: commits that were started are completed, and all other data is removed.

use super::commit::with_unapplied;
use super::overlay_dir::{Call, OverlayDir, previews};
use super::undecided::UndecidedLayer;
use crate::protocol::{CallId, ErrorCode, SessionId, ToolError, ToolResult};
use crate::sys::overlay::{self, CommitOutcome};
use crate::tools::paths::join_names;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Time after the start of a preview during which its owner may not have been recorded yet.
const OWNER_GRACE: Duration = Duration::from_secs(60);
/// Time for which an outcome is kept for a session that is not resumed, and for which failed changes are retried.
const WAITS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A session that is resumed at startup.
pub(crate) struct ResumedSession<'a> {
    pub session: &'a SessionId,
    /// Returns whether a call has started but has no result in the journal.
    pub awaits: &'a dyn Fn(&CallId) -> bool,
    /// Returns whether a call has ended in a layer and the journal contains no decision on its effects.
    pub undecided: &'a dyn Fn(&CallId) -> bool,
}

/// Outcome of the cleanup at startup.
#[derive(Debug, Default)]
pub(crate) struct RecoveryResult {
    /// Results of calls for which the session is waiting. They are returned at every start until the journal contains
    /// them.
    pub settled: Vec<ToolResult>,
    /// Notices for the user.
    pub notices: Vec<String>,
    /// Layers of the session whose effects are undecided.
    pub(in crate::tools) undecided: Vec<UndecidedLayer>,
}

/// Examines the previews below these directories. Outcomes that belong to other sessions are kept.
pub(crate) fn recover(bases: &[PathBuf], resumed: Option<&ResumedSession<'_>>) -> RecoveryResult {
    let (mut kept, mut dropped, mut notices, mut undecided) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in bases.iter().filter_map(|base| fs::read_dir(previews(base)).ok()).flatten().flatten() {
        match recover_one(&entry.path(), resumed, &mut notices) {
            Ok(RecoveredView::Result(result, true)) => kept.push(result),
            Ok(RecoveredView::Result(result, false)) => dropped.push(result),
            Ok(RecoveredView::Undecided(layer)) => undecided.push(layer),
            Ok(RecoveredView::Nothing) => {}
            Err(error) => {
                tracing::warn!(%error, path = %entry.path().display(), "cannot recover a preview");
                if overlay::has_begun(&entry.path()) {
                    let path = entry.path();
                    notices.push(format!(
                        "aye exited while applying a command's changes and could not finish: {error}; the rest is in `{}`, \
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
    RecoveryResult { settled: kept, notices, undecided }
}

/// Outcome of completing the commits below a directory.
pub(crate) struct FinishedCommits {
    /// Notices for the user.
    pub notices: Vec<String>,
    /// Whether no unfinished commit remains, so that the directory can be removed.
    pub is_complete: bool,
}

/// Completes the commits that processes which have since ended started below a directory, and then removes the
/// directory.
pub(crate) fn finish_commits(base: &Path) -> FinishedCommits {
    let RecoveryResult { notices, .. } = recover(&[base.to_owned()], None);
    let is_over = |path: &Path| {
        let view = OverlayDir::open_abandoned(path).ok().flatten();
        !overlay::has_begun(path) || view.is_some_and(|view| view.final_result::<ToolResult>().is_some())
    };
    let mut left = fs::read_dir(previews(base)).into_iter().flatten().flatten();
    let is_complete = left.all(|entry| is_over(&entry.path()));
    FinishedCommits { notices, is_complete }
}

/// State of a view left behind by a process that has ended, as the resumed session needs it.
enum RecoveredView {
    Nothing,
    /// The result of a call for which the session is waiting, and whether applying its changes had started.
    Result(ToolResult, bool),
    Undecided(UndecidedLayer),
}

fn recover_one(path: &Path, resumed: Option<&ResumedSession<'_>>, notices: &mut Vec<String>) -> io::Result<RecoveredView> {
    let age = path.symlink_metadata()?.modified()?.elapsed().unwrap_or_default();
    let Some(mut view) = OverlayDir::open_abandoned(path)? else { return Ok(RecoveredView::Nothing) };
    if view.is_undecided()
        && let Some(call) = view.call()
        && !is_started(&call, resumed)
    {
        return Ok(recover_undecided(view, call, age, resumed));
    }
    let final_result = view.final_result::<ToolResult>();
    // On an error, no commit that has begun is removed.
    let outcome = if final_result.is_some() { None } else { overlay::recover(view.path())? };
    let waits = outcome.as_ref().is_some_and(|outcome| !outcome.is_over());
    if outcome.is_some() {
        view.end_direct();
    } else {
        view.discard_direct();
    }
    if let Some(outcome) = &outcome {
        notices.push(describe_outcome(outcome));
    }
    let Some(Call { tool_call_id, tool_name, session_id }) = view.call() else {
        if age > OWNER_GRACE && !waits {
            view.remove_on_drop();
        }
        return Ok(RecoveredView::Nothing);
    };
    let known = final_result.is_some() || outcome.is_some();
    let result = match (final_result, outcome, view.result::<ToolResult>()) {
        (Some(result), _, _) => result,
        (None, Some(outcome), Some(kept)) => with_unapplied(kept, &outcome),
        (None, Some(outcome), None) => {
            let message = "aye exited while applying the command's changes; they are applied now, but its output is lost";
            let error = ToolError::new(ErrorCode::OutcomeUnknown, message);
            with_unapplied(ToolResult::from_error(tool_call_id, tool_name, error), &outcome)
        }
        (None, None, _) => {
            let message = "aye exited before any of the command's changes were applied; nothing was written, so run it again";
            ToolResult::from_error(tool_call_id, tool_name, ToolError::new(ErrorCode::Cancelled, message))
        }
    };
    let mine = resumed.filter(|resumed| session_id.as_ref() == Some(resumed.session));
    let awaited = match mine {
        Some(resumed) => (resumed.awaits)(&result.tool_call_id),
        // Without an outcome, the result only says that nothing was written.
        None => session_id.is_some(),
    };
    if age > WAITS || !(awaited || waits) {
        view.remove_on_drop();
        return Ok(RecoveredView::Nothing);
    }
    if !waits {
        if known && view.final_result::<ToolResult>().is_none() {
            view.keep_final(&result)?;
        }
        view.shrink()?;
    }
    Ok(mine.filter(|_| awaited).map_or(RecoveredView::Nothing, |_| RecoveredView::Result(result, known)))
}

/// Returns whether the journal contains the decision to apply the effects but no result, in which case no change has
/// been applied yet.
fn is_started(call: &Call, resumed: Option<&ResumedSession<'_>>) -> bool {
    resumed.is_some_and(|resumed| {
        let (id, is_mine) = (&call.tool_call_id, call.session_id.as_ref() == Some(resumed.session));
        is_mine && !(resumed.undecided)(id) && (resumed.awaits)(id)
    })
}

/// Returns an undecided layer if it belongs to the resumed session. Layers of other sessions are kept for them, and any
/// other layer is removed.
fn recover_undecided(mut view: OverlayDir, call: Call, age: Duration, resumed: Option<&ResumedSession<'_>>) -> RecoveredView {
    let Call { tool_call_id, session_id, .. } = call;
    let is_mine = resumed.is_some_and(|resumed| session_id.as_ref() == Some(resumed.session));
    let is_awaited = resumed.is_some_and(|resumed| (resumed.undecided)(&tool_call_id));
    if is_mine && is_awaited {
        return RecoveredView::Undecided(UndecidedLayer { tool_call_id, view });
    }
    if is_mine || session_id.is_none() || age > WAITS {
        view.remove_on_drop();
    }
    RecoveredView::Nothing
}

/// Describes a commit that has just been completed, for the user.
fn describe_outcome(outcome: &CommitOutcome) -> String {
    let said = "aye exited while applying a command's changes";
    if outcome.is_whole() {
        return format!("{said}; they are applied now");
    }
    let left = join_names(outcome.left.iter().map(|left| format!("`{}` ({})", left.path.display(), left.why)));
    let later = if outcome.is_over() { "" } else { "; aye retries at the next start" };
    format!("{said}; these differ from the command's result: {left}{later}")
}
