//! What the status row says of the workspace: asked for when something changed there, never by time.

use crate::protocol::{EventKind, LookUp, Query};
use crate::text;
use crate::tui::model::{Effect, Model};
use crate::tui::status;
use crate::tui::transcript::{Kind, Tone};

/// Tools that change nothing; all others may.
const READS: [&str; 15] = [
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
    "FindTools",
];

/// What is known of it, and what happened since.
#[derive(Debug, Default)]
pub struct Worktree {
    /// Files that are not as git took them in last.
    pub changed: Option<u64>,
    /// Not all was looked at: there may be more.
    pub more: bool,
    /// What the person's own command said.
    pub line: Option<String>,
    /// Something that may have changed a file ended in this step, or a file is being exported.
    wrote: bool,
    /// It is to be looked.
    is_due: bool,
}

/// The session is there.
pub fn begin(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(words) = status::unknown(&model.options.status) {
        model.transcript.push(Kind::Note { text: text::clean(&words).into_owned(), tone: Tone::Warning });
    }
    changed(model, effects);
}

/// Something may have changed.
pub fn changed(model: &Model, effects: &mut Vec<Effect>) {
    if !model.is_session_chooser && status::shows_worktree(&model.options.status) {
        effects.push(Effect::Ask(Query::LookUp(LookUp::Worktree)));
    }
}

/// A file is written that no tool writes; a notice tells of its end.
pub const fn exports(model: &mut Model) {
    model.worktree.wrote = true;
}

/// Whether an event says so: at the end of a step that did something, and of what the person did themselves.
pub fn note(model: &mut Model, kind: &EventKind) {
    let worktree = &mut model.worktree;
    match kind {
        EventKind::ToolCompleted { tool_name, .. } => worktree.wrote |= !READS.contains(&tool_name.as_str()),
        EventKind::StepStarted { .. }
        | EventKind::StepCompleted { .. }
        | EventKind::TaskCompleted { .. }
        | EventKind::TaskFailed { .. }
        | EventKind::TaskCancelled { .. }
        | EventKind::SessionPaused { .. }
        // What was exported is told of with one.
        | EventKind::Notice { .. } => worktree.is_due |= std::mem::take(&mut worktree.wrote),
        EventKind::OwnCommandEnded { .. } | EventKind::Rewound(_) => {
            worktree.wrote = false;
            worktree.is_due = true;
        }
        _ => {}
    }
}

/// Once for all that happened.
pub fn look(model: &mut Model, effects: &mut Vec<Effect>) {
    if std::mem::take(&mut model.worktree.is_due) {
        changed(model, effects);
    }
}

pub fn told(model: &mut Model, branch: Option<String>, (changed, more): (Option<u64>, bool), line: Option<String>) {
    model.header.branch = branch;
    (model.worktree.changed, model.worktree.more) = (changed, more);
    model.worktree.line = line;
}
