//! Undone entries, which stay visible and are marked as undone until they are restored.

use super::{Transcript, TranscriptEntryKind};
use crate::protocol::{StepId, TaskId};

/// Sets the task and step that are assigned to entries added from now on.
pub(crate) fn tag_new_entries(transcript: &mut Transcript, task: Option<&TaskId>, step: Option<&StepId>) {
    if transcript.task.as_ref() != task {
        transcript.task = task.cloned();
    }
    if transcript.step.as_ref() != step {
        transcript.step = step.cloned();
    }
}

/// Marks all entries from a given task or step onwards as undone. If `task` is `None`, starts at the last task that has
/// not been undone.
pub(crate) fn undo_from(transcript: &mut Transcript, task: Option<&TaskId>, step: Option<&StepId>) {
    let standing = |entry: &&super::TranscriptEntry| entry.undone.is_none();
    let last = || transcript.entries.iter().rev().filter(standing).find_map(|entry| entry.task.clone());
    let Some(task) = task.cloned().or_else(last) else { return };
    let begins = |entry: &super::TranscriptEntry| {
        let of_step = step.is_none_or(|step| entry.step.as_ref() == Some(step));
        entry.undone.is_none() && entry.task.as_ref() == Some(&task) && of_step
    };
    let Some(first) = transcript.entries.iter().position(begins) else { return };
    super::grouping::split(transcript, first);
    transcript.rewinds += 1;
    for entry in transcript.entries.iter_mut().skip(first).filter(|entry| entry.undone.is_none()) {
        entry.undone = Some(transcript.rewinds);
    }
}

/// Restores the entries that were undone by the latest rewind.
pub(crate) fn redo_latest(transcript: &mut Transcript) {
    let Some(last) = transcript.entries.iter().filter_map(|entry| entry.undone).max() else { return };
    for entry in transcript.entries.iter_mut().filter(|entry| entry.undone == Some(last)) {
        entry.undone = None;
    }
}

/// Returns the text of the latest complete response that has not been undone, if any.
pub(crate) fn last_active_response(transcript: &Transcript) -> Option<String> {
    transcript.entries.iter().rev().filter(|entry| entry.undone.is_none()).find_map(|entry| match &entry.kind {
        TranscriptEntryKind::Answer { document, state: super::AnswerState::Done } => Some(document.text().to_owned()),
        _ => None,
    })
}
