//! Applies approved effects atomically and returns the command's output to the model.

use super::effects::{ShownEffects, collect_effects, describe_applied, refusals};
use super::kept_times::renew_times;
use super::overlay_dir::OverlayDir;
use super::progress::ProgressReporter;
use super::run::PreviewedCommand;
use super::selection::{applied_count, select};
use crate::ports::ProgressSender;
use crate::protocol::{CallId, DiscardedEffect, ErrorCode, Proposal, ToolError, ToolResult};
use crate::sys::overlay::{self, Changes, CommitError, CommitOutcome, is_full};
use crate::tools::blocking::off_thread;
use crate::tools::paths::{display_path_one_line, join_names};
use crate::tools::redaction::hide_in_result;
use crate::tools::settings::ToolSettings;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Applies the effects, except excluded ones, and reports the progress.
///
/// Returns the view if its outcome must be kept beyond this process.
pub(in crate::tools) async fn commit(
    kept: PreviewedCommand,
    id: CallId,
    tool_name: String,
    discarded: Vec<DiscardedEffect>,
    settings: Arc<ToolSettings>,
    progress: ProgressSender,
) -> (ToolResult, Option<CommittedRun>) {
    let (again, name) = (id.clone(), tool_name.clone());
    let reporter = ProgressReporter::new(progress);
    match off_thread(move || commit_selected(kept, id, &tool_name, &discarded, &settings, &reporter)).await {
        Ok(done) => done,
        Err(error) => (ToolResult::from_error(again, name, error), None),
    }
}

/// Outcome of a call that is kept on disk until the session has recorded it.
#[derive(Debug)]
pub(in crate::tools) struct CommittedRun(OverlayDir, bool);

impl CommittedRun {
    #[cfg(test)]
    pub(in crate::tools) fn abandon(mut self) {
        self.1 = true;
    }
}

impl Drop for CommittedRun {
    fn drop(&mut self) {
        if !self.1 {
            self.0.remove_on_drop();
        }
    }
}

fn commit_selected(
    mut kept: PreviewedCommand,
    id: CallId,
    tool_name: &str,
    discarded: &[DiscardedEffect],
    settings: &ToolSettings,
    reporter: &ProgressReporter,
) -> (ToolResult, Option<CommittedRun>) {
    if let Some(unlisted) = kept.unlisted {
        let error = ToolError::new(ErrorCode::ToolExecutionFailed, format!("{unlisted}. Nothing was written."));
        return finish_call(kept.view, ToolResult::from_error(id, tool_name, error), settings);
    }
    // The policy may have changed since the preview.
    for changes in &mut kept.changes {
        changes.refuse(&refusals(changes, settings));
    }
    let listed = (!discarded.is_empty()).then(|| kept.changes.clone());
    if !discarded.is_empty() {
        match select(&mut kept.changes, &kept.listed, discarded, settings) {
            Ok(note) => {
                let _ = write!(kept.result.output_text, "\n{note}");
            }
            Err(error) => return finish_call(kept.view, ToolResult::from_error(id, tool_name, error), settings),
        }
        let ShownEffects { diff, paths, bytes, .. } = collect_effects(&mut kept.changes, settings);
        let summary = format!("{} of {} listed changes", applied_count(&kept.changes, &kept.listed), kept.listed.len());
        kept.result.changed = Some(Box::new(Proposal { summary, diff, paths, bytes, ..Proposal::default() }));
    }
    renew_times(&mut kept);
    let (mut result, mut applied) = apply(&mut kept, settings, reporter);
    if let Err(ApplyError::Commit(CommitError::Conflict(paths))) = &applied
        && discard_build_output(&mut kept, paths, settings)
    {
        (result, applied) = apply(&mut kept, settings, reporter);
    }
    if let (Ok(_), Some(listed)) = (&applied, listed.filter(|_| kept.view.direct().is_some())) {
        touch_discarded(&listed, &kept.changes);
    }
    match applied {
        Ok(outcome) => finish_applied(kept.view, result, outcome, settings),
        Err(error) => finish_failed(kept.view, id, tool_name, error, settings),
    }
}

/// Why changes were not applied.
enum ApplyError {
    /// The result could not be stored, so no changes were made.
    Store(io::Error),
    Commit(CommitError),
}

/// Applies the changes once the result of the call has been stored. Returns that result, along with the outcome, which
/// is `None` if there are no changes.
fn apply(
    kept: &mut PreviewedCommand,
    settings: &ToolSettings,
    reporter: &ProgressReporter,
) -> (ToolResult, Result<Option<CommitOutcome>, ApplyError>) {
    let words = describe_applied(&kept.changes);
    let mut result = kept.result.clone();
    let _ = write!(result.output_text, "\n{words}");
    let result = hide_in_result(&settings.redactor, result);
    if kept.changes.iter().all(Changes::is_empty) {
        return (result, Ok(None));
    }
    if let Err(error) = kept.view.keep_result(&result) {
        return (result, Err(ApplyError::Store(error)));
    }
    // Whatever happens from now on, the next start completes the application.
    kept.view.keep_on_drop();
    let committed = overlay::commit(kept.view.path(), &kept.changes, &|progress| reporter.report(progress));
    let outcome = committed.or_else(|error| match error {
        CommitError::Io { error, .. } if overlay::has_begun(kept.view.path()) => retry_commit(&kept.view, error),
        error => Err(error),
    });
    (result, outcome.map(Some).map_err(ApplyError::Commit))
}

/// Completes a call whose changes have been applied.
fn finish_applied(
    mut view: OverlayDir,
    result: ToolResult,
    outcome: Option<CommitOutcome>,
    settings: &ToolSettings,
) -> (ToolResult, Option<CommittedRun>) {
    view.end_direct();
    let Some(outcome) = outcome else { return finish_call(view, result, settings) };
    let result = with_unapplied(result, &outcome);
    // The next start retries the rest; until then nothing is removed.
    if outcome.is_over() { finish_call(view, result, settings) } else { (result, None) }
}

/// Completes a call whose changes have not been applied.
fn finish_failed(
    view: OverlayDir,
    id: CallId,
    tool_name: &str,
    error: ApplyError,
    settings: &ToolSettings,
) -> (ToolResult, Option<CommittedRun>) {
    let error = match error {
        ApplyError::Store(error) => {
            let message = format!("cannot apply the command's changes: {error}; nothing was written{}", advice(&error));
            ToolError::new(ErrorCode::ToolExecutionFailed, message)
        }
        ApplyError::Commit(error) if overlay::has_begun(view.path()) => {
            let message = format!(
                "aye could not finish applying the command's changes ({error}); some of them may have been written. aye \
                 finishes this at the next start{}",
                if error.is_full() { ", once there is free space on the disk" } else { "" }
            );
            let error = ToolError::new(ErrorCode::OutcomeUnknown, message);
            return (ToolResult::from_error(id, tool_name, error), None);
        }
        ApplyError::Commit(error) => commit_refusal(error),
    };
    finish_call(view, ToolResult::from_error(id, tool_name, error), settings)
}

/// Removes all build output from the changes if nothing else is in conflict. In that case, another build has written to
/// it in the meantime, and build output can always be rebuilt. Returns whether anything was removed.
fn discard_build_output(kept: &mut PreviewedCommand, conflicts: &[PathBuf], settings: &ToolSettings) -> bool {
    let is_output = |path: &Path| kept.build.iter().any(|directory| path.starts_with(directory));
    if conflicts.is_empty() || !conflicts.iter().all(|path| is_output(path)) {
        return false;
    }
    let mut rest = kept.changes.clone();
    for changes in &mut rest {
        let paths = changes.entries().iter().map(|change| &change.path);
        let output: BTreeSet<PathBuf> = paths.filter(|path| is_output(&changes.old(path))).cloned().collect();
        let with_it = changes.without(&output);
        // A file that was moved out of the build directory was approved.
        if with_it.iter().any(|(path, _)| !is_output(&changes.old(path))) {
            return false;
        }
    }
    kept.changes = rest;
    let names = join_names(kept.build.iter().map(|directory| format!("`{}`", display_path_one_line(directory, settings))));
    let _ = write!(
        kept.result.output_text,
        "\n[build output in {names} was discarded: another program wrote there while this command ran or waited for approval]"
    );
    true
}

/// Updates the modification times of the files whose changes the user discarded, because the command made build output
/// from the discarded versions.
fn touch_discarded(listed: &[Changes], kept: &[Changes]) {
    for (listed, kept) in listed.iter().zip(kept) {
        let applied: BTreeSet<&Path> = kept.entries().iter().map(|change| change.path.as_path()).collect();
        if let Err(error) = overlay::touch_replaced(listed, |path| !applied.contains(path)) {
            tracing::warn!(%error, "cannot touch the files whose changes were discarded");
        }
    }
}

/// Completes the call. Only the outcome remains on disk, until the session has recorded it.
fn finish_call(mut view: OverlayDir, result: ToolResult, settings: &ToolSettings) -> (ToolResult, Option<CommittedRun>) {
    view.discard_direct();
    if settings.session.id.is_none() {
        view.remove_on_drop();
        return (result, None);
    }
    view.keep_on_drop();
    if let Err(error) = view.keep_final(&result).and_then(|()| view.shrink()) {
        tracing::warn!(%error, "cannot clean up a preview");
    }
    (result, Some(CommittedRun(view, false)))
}

/// Retries applying the changes, as is done after a crash.
fn retry_commit(view: &OverlayDir, error: io::Error) -> Result<CommitOutcome, CommitError> {
    let path = view.path().to_owned();
    match overlay::recover(view.path()) {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) | Err(_) => Err(CommitError::Io { path, error }),
    }
}

/// Returns advice for the case that the disk is full, phrased as the end of a sentence. Returns an empty string for
/// other errors.
fn advice(error: &io::Error) -> &'static str {
    if is_full(error) { ". Free some space on the disk, and run the command again" } else { "" }
}

fn commit_refusal(error: CommitError) -> ToolError {
    match error {
        CommitError::Conflict(paths) => {
            let message = format!(
                "{} changed since the command ran in its preview; nothing was written. Check what changed, and run the command again",
                join_names(paths.iter().map(|path| format!("`{}`", path.display())))
            );
            ToolError::new(ErrorCode::Conflict, message)
        }
        CommitError::Io { error: ref cause, .. } => {
            let message = format!("cannot apply the command's changes: {error}; nothing was written{}", advice(cause));
            ToolError::new(ErrorCode::ToolExecutionFailed, message)
        }
    }
}

/// Adds the changes that could not be applied to a result.
pub(super) fn with_unapplied(mut result: ToolResult, outcome: &CommitOutcome) -> ToolResult {
    if !outcome.is_whole() {
        let left = outcome.left.iter().map(|left| format!("`{}` ({})", left.path.display(), left.why));
        let later = match (outcome.is_over(), outcome.left.iter().any(|left| left.is_full)) {
            (true, _) => "",
            (false, true) => "; the disk is full: aye applies the rest when it starts again, once there is free space",
            (false, false) => "; aye retries when it starts again",
        };
        let _ = write!(result.output_text, "\n[differs from the command's result: {}{later}]", join_names(left));
    }
    result
}
