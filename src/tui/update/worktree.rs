//! Git state of the workspace, shown in the status row. It is updated only when it may have changed, never by a timer.

use crate::protocol::{EventKind, HostRequest, Query};
use crate::text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::status_items;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Tools that do not change files. Any other tool is assumed to change them.
const READS: [&str; 19] = [
    "ReadFile",
    "ListDirectory",
    "Glob",
    "Grep",
    "Stat",
    "TextInspect",
    "HashFile",
    "DiskUsage",
    "UploadArtifact",
    "CliRead",
    "CliGetPlatform",
    "CliEnv",
    "RevealInOs",
    "HttpRequest",
    "WebSearch",
    "AskUser",
    "ProposePlan",
    "UpdateSteps",
    "FindTools",
];

/// Requests the first update when the session starts, and warns about unknown items in the status row settings.
pub(crate) fn begin(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    if let Some(words) = status_items::unknown_fields_warning(&model.options.status) {
        model.transcript.push(TranscriptEntryKind::Note { text: text::clean(&words).into_owned(), tone: NoteTone::Warning });
    }
    request_if_changed(model, effects);
}

/// Requests an update of the git state if the status row shows it.
pub(crate) fn request_if_changed(model: &UiModel, effects: &mut Vec<UiEffect>) {
    if !model.startup.is_session_chooser && status_items::shows_worktree(&model.options.status) {
        effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Worktree)));
    }
}

/// Records that a file is being written by an export, which is not a tool call. A notice reports when the export is
/// done.
pub(crate) const fn exports(model: &mut UiModel) {
    model.info.worktree.wrote = true;
}

/// Records whether an event makes an update necessary, which is the case for an action by the user or the end of a step
/// that may have changed files.
pub(crate) fn note(model: &mut UiModel, kind: &EventKind) {
    let worktree = &mut model.info.worktree;
    match kind {
        EventKind::ToolCompleted { tool_name, .. } => worktree.wrote |= !READS.contains(&tool_name.as_str()),
        EventKind::StepStarted { .. }
        | EventKind::StepCompleted { .. }
        | EventKind::TaskCompleted { .. }
        | EventKind::TaskFailed { .. }
        | EventKind::PromptBlocked { .. }
        | EventKind::TaskCancelled { .. }
        | EventKind::SessionPaused { .. }
        // A notice reports the end of an export.
        | EventKind::Notice { .. } => worktree.is_due |= std::mem::take(&mut worktree.wrote),
        EventKind::OwnCommandEnded { .. } | EventKind::Rewound(_) => {
            worktree.wrote = false;
            worktree.is_due = true;
        }
        _ => {}
    }
}

/// Requests one update for all changes recorded so far, if there are any.
pub(crate) fn request_update(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    if std::mem::take(&mut model.info.worktree.is_due) {
        request_if_changed(model, effects);
    }
}

pub(crate) fn apply_update(
    model: &mut UiModel,
    branch: Option<String>,
    (changed, more): (Option<u64>, bool),
    line: Option<String>,
) {
    model.info.header.branch = branch;
    (model.info.worktree.changed, model.info.worktree.more) = (changed, more);
    model.info.worktree.line = line;
}
