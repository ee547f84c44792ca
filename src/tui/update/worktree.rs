//! Git state of the workspace for the status row, updated only after changes and never by a timer.

use crate::protocol::{EventKind, HostRequest, Query};
use crate::text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::status_items;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Tools that change no files. All other tools may change some.
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

/// Requests the first update at the start of the session.
pub(crate) fn begin(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    if let Some(words) = status_items::unknown_fields_warning(&model.options.status) {
        model.transcript.push(TranscriptEntryKind::Note { text: text::clean(&words).into_owned(), tone: NoteTone::Warning });
    }
    request_if_changed(model, effects);
}

/// Requests an update after a possible change.
pub(crate) fn request_if_changed(model: &UiModel, effects: &mut Vec<UiEffect>) {
    if !model.startup.is_session_chooser && status_items::shows_worktree(&model.options.status) {
        effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Worktree)));
    }
}

/// Records an export, which no tool writes. A notice reports its end.
pub(crate) const fn exports(model: &mut UiModel) {
    model.info.worktree.wrote = true;
}

/// Records whether an event requires an update: the end of a step with changes, or an action by the user.
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

/// Requests one update for all recorded changes.
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
