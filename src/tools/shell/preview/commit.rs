//! Applying approved effects: all of them or none, and the output goes to the model.

use super::effects::{ShownEffects, kept_words, refusals, shown};
use super::overlay_dir::View;
use super::run::PreviewedCommand;
use super::selection::{select, selected};
use crate::protocol::{CallId, DiscardedEffect, ErrorCode, Proposal, ToolError, ToolResult};
use crate::sys::overlay::{self, CommitError, Outcome, is_full};
use crate::tools::blocking::off_thread;
use crate::tools::paths::listed;
use crate::tools::redaction::hide_in_result;
use crate::tools::settings::Settings;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// Applies the effects without those that are left out. Returns the view if its outcome must survive this process.
pub(in crate::tools) async fn commit(
    kept: PreviewedCommand,
    id: CallId,
    tool_name: String,
    discarded: Vec<DiscardedEffect>,
    settings: Arc<Settings>,
) -> (ToolResult, Option<Settled>) {
    let (again, name) = (id.clone(), tool_name.clone());
    match off_thread(move || done(kept, id, &tool_name, &discarded, &settings)).await {
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

fn done(
    kept: PreviewedCommand,
    id: CallId,
    tool_name: &str,
    discarded: &[DiscardedEffect],
    settings: &Settings,
) -> (ToolResult, Option<Settled>) {
    let PreviewedCommand { mut view, mut changes, mut result, unlisted, listed } = kept;
    if let Some(unlisted) = unlisted {
        let error = ToolError::new(ErrorCode::ToolExecutionFailed, format!("{unlisted}. Nothing was written."));
        return over(view, ToolResult::refused(id, tool_name, error), settings);
    }
    // The policy may have changed since the preview.
    for changes in &mut changes {
        changes.refuse(&refusals(changes, settings));
    }
    if !discarded.is_empty() {
        match select(&mut changes, &listed, discarded, settings) {
            Ok(note) => {
                let _ = write!(result.output_text, "\n{note}");
            }
            Err(error) => return over(view, ToolResult::refused(id, tool_name, error), settings),
        }
        let ShownEffects { diff, paths, bytes, .. } = shown(&mut changes, settings);
        let summary = format!("{} of {} listed changes", selected(&changes, &listed), listed.len());
        result.changed = Some(Box::new(Proposal { summary, diff, paths, bytes, ..Proposal::default() }));
    }
    let words = kept_words(&changes);
    let _ = write!(result.output_text, "\n{words}");
    let result = hide_in_result(&settings.redactor, result);
    if changes.iter().all(overlay::Changes::is_empty) {
        return over(view, result, settings);
    }
    let refused = |error: ToolError| ToolResult::refused(id.clone(), tool_name, error);
    if let Err(error) = view.keep_result(&result) {
        let message = format!("cannot apply the changes of the command: {error}; nothing was written{}", advice(&error));
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
                 this when it starts again{}",
                if error.is_full() { ", once there is free space on the disk" } else { "" }
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

/// Returns what helps against a full disk, as the end of a sentence; empty for another error.
fn advice(error: &io::Error) -> &'static str {
    if is_full(error) { ". Free some space on the disk, and run the command again" } else { "" }
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
        CommitError::Io { error: ref cause, .. } => {
            let message = format!("cannot apply the changes of the command: {error}; nothing was written{}", advice(cause));
            ToolError::new(ErrorCode::ToolExecutionFailed, message)
        }
    }
}

/// Adds the changes that could not be applied to a result.
pub(super) fn said_left(mut result: ToolResult, outcome: &Outcome) -> ToolResult {
    if !outcome.is_whole() {
        let left = outcome.left.iter().map(|left| format!("`{}` ({})", left.path.display(), left.why));
        let later = match (outcome.is_over(), outcome.left.iter().any(|left| left.is_full)) {
            (true, _) => "",
            (false, true) => "; the disk is full: aye applies the rest when it starts again, once there is free space",
            (false, false) => "; aye retries when it starts again",
        };
        let _ = write!(result.output_text, "\n[differs from the result of the command: {}{later}]", listed(left));
    }
    result
}
