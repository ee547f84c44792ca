//! Applying approved effects: all of them or none, and the output goes to the model.

use super::effects::{kept_words, refusals};
use super::overlay_dir::View;
use super::run::PreviewedCommand;
use crate::protocol::{CallId, ErrorCode, ToolError, ToolResult};
use crate::sys::overlay::{self, CommitError, Outcome};
use crate::tools::blocking::off_thread;
use crate::tools::paths::listed;
use crate::tools::redaction::hide_in_result;
use crate::tools::settings::Settings;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// Applies the effects. Returns the view if its outcome must survive this process.
pub(in crate::tools) async fn commit(
    kept: PreviewedCommand,
    id: CallId,
    tool_name: String,
    settings: Arc<Settings>,
) -> (ToolResult, Option<Settled>) {
    let (again, name) = (id.clone(), tool_name.clone());
    match off_thread(move || done(kept, id, &tool_name, &settings)).await {
        Ok(done) => done,
        Err(error) => (ToolResult::refused(again, name, error), None),
    }
}

/// Outcome of a call on disk, needed until the session has recorded it.
#[derive(Debug)]
pub(in crate::tools) struct Settled(View, bool);

impl Settled {
    #[cfg(test)]
    pub(in crate::tools) fn abandon(mut self) {
        self.1 = true;
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        if !self.1 {
            self.0.give_up();
        }
    }
}

fn done(kept: PreviewedCommand, id: CallId, tool_name: &str, settings: &Settings) -> (ToolResult, Option<Settled>) {
    let PreviewedCommand { mut view, mut changes, mut result, unlisted } = kept;
    if let Some(unlisted) = unlisted {
        let error = ToolError::new(ErrorCode::ToolExecutionFailed, format!("{unlisted}. Nothing was written."));
        return over(view, ToolResult::refused(id, tool_name, error), settings);
    }
    // The policy may have changed since the preview.
    for changes in &mut changes {
        changes.refuse(&refusals(changes, settings));
    }
    let words = kept_words(&changes);
    let _ = write!(result.output_text, "\n{words}");
    let result = hide_in_result(&settings.redactor, result);
    if changes.iter().all(overlay::Changes::is_empty) {
        return over(view, result, settings);
    }
    let refused = |error: ToolError| ToolResult::refused(id.clone(), tool_name, error);
    if let Err(error) = view.keep_result(&result) {
        let message = format!("cannot apply the changes of the command: {error}; nothing was written");
        return over(view, refused(ToolError::new(ErrorCode::ToolExecutionFailed, message)), settings);
    }
    // Whatever happens from now on, the next start completes what was begun.
    view.leave();
    let outcome = overlay::commit(view.path(), &changes).or_else(|error| match error {
        CommitError::Io { error, .. } if overlay::has_begun(view.path()) => again(&view, error),
        error => Err(error),
    });
    match outcome {
        // The next start retries the rest; until then nothing is removed.
        Ok(outcome) if !outcome.is_over() => (said_left(result, &outcome), None),
        Ok(outcome) => over(view, said_left(result, &outcome), settings),
        Err(error) if overlay::has_begun(view.path()) => {
            let message = format!(
                "aye could not finish applying the changes of the command ({error}); some of them may be written. aye finishes \
                 this when it starts again"
            );
            (refused(ToolError::new(ErrorCode::OutcomeUnknown, message)), None)
        }
        Err(error) => over(view, refused(refusal(error)), settings),
    }
}

/// Completes the call: only the outcome is kept, until the session has recorded it.
fn over(mut view: View, result: ToolResult, settings: &Settings) -> (ToolResult, Option<Settled>) {
    if settings.session.is_none() {
        view.give_up();
        return (result, None);
    }
    view.leave();
    if let Err(error) = view.keep_final(&result).and_then(|()| view.shrink()) {
        tracing::warn!(%error, "cannot clean up a preview");
    }
    (result, Some(Settled(view, false)))
}

/// Retries the changes, as after a crash.
fn again(view: &View, error: io::Error) -> Result<Outcome, CommitError> {
    let path = view.path().to_owned();
    match overlay::recover(view.path()) {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) | Err(_) => Err(CommitError::Io { path, error }),
    }
}

fn refusal(error: CommitError) -> ToolError {
    match error {
        CommitError::Conflict(paths) => {
            let message = format!(
                "{} changed since the command ran in its preview; nothing was written. Check what changed, and run the command again",
                listed(paths.iter().map(|path| format!("`{}`", path.display())))
            );
            ToolError::new(ErrorCode::Conflict, message)
        }
        CommitError::Io { .. } => {
            let message = format!("cannot apply the changes of the command: {error}; nothing was written");
            ToolError::new(ErrorCode::ToolExecutionFailed, message)
        }
    }
}

/// Adds the changes that could not be applied to a result.
pub(super) fn said_left(mut result: ToolResult, outcome: &Outcome) -> ToolResult {
    if !outcome.is_whole() {
        let left = outcome.left.iter().map(|left| format!("`{}` ({})", left.path.display(), left.why));
        let later = if outcome.is_over() { "" } else { "; aye retries when it starts again" };
        let _ = write!(result.output_text, "\n[differs from the result of the command: {}{later}]", listed(left));
    }
    result
}
