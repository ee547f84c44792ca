//! Report on work that an earlier process left unfinished, kept up to date until new work starts.

use crate::protocol::{CallId, EventKind, QueuedMessage, ToolStatus};
use crate::text;
use crate::tui::model::UiModel;
use crate::tui::transcript::{AnswerState, CardState, Recovery, RecoveryState, TranscriptEntryKind};

/// Reports unfinished work after the replay, if the earlier process exited during a task.
pub(crate) fn report_unfinished(model: &mut UiModel) {
    let answer = model.transcript.last_answer_mut().and_then(|entry| match &entry.kind {
        TranscriptEntryKind::Answer { document, state: AnswerState::Discarded(_) | AnswerState::Streaming }
            if entry.undone.is_none() =>
        {
            Some(document.text().split_whitespace().count())
        }
        _ => None,
    });
    let mut recovery = Recovery { answer: answer.filter(|_| model.is_running()), ..Recovery::default() };
    for card in model.transcript.active_cards_mut() {
        let fate = match card.state {
            CardState::Running { .. } => RecoveryState::Ran,
            CardState::Requested | CardState::Waiting => RecoveryState::Open,
            CardState::Unknown => RecoveryState::Unknown,
            CardState::Done { .. } | CardState::Failed { .. } | CardState::Denied { .. } | CardState::Stopped { .. } => continue,
        };
        recovery.calls.push((card.id.clone(), card.summary().to_owned(), fate));
    }
    model.startup.recovering = true;
    if !recovery.is_empty() {
        model.transcript.push(TranscriptEntryKind::Recovery(recovery));
    }
}

/// Updates the report according to a live event, until a new request or task begins.
pub(crate) fn update_report(model: &mut UiModel, kind: &EventKind) {
    if !model.startup.recovering {
        return;
    }
    let came_to = |model: &mut UiModel, id: &CallId, fate| {
        if let Some(recovery) = model.transcript.recovery_mut() {
            recovery.set_state(id, fate);
        }
    };
    match kind {
        EventKind::ApprovalRequested(approval) => came_to(model, &approval.tool_call_id, RecoveryState::Asked),
        EventKind::ToolInterrupted { tool_call_id, .. } => came_to(model, tool_call_id, RecoveryState::Unknown),
        EventKind::ToolStarted { tool_call_id, .. } => came_to(model, tool_call_id, RecoveryState::Runs),
        EventKind::ToolCompleted { tool_call_id, status: ToolStatus::Succeeded, .. } => {
            came_to(model, tool_call_id, RecoveryState::Done);
        }
        EventKind::ToolCompleted { tool_call_id, .. } => came_to(model, tool_call_id, RecoveryState::NotDone),
        EventKind::QueueChanged { waiting } => {
            let prompts: Vec<String> = waiting.iter().map(|QueuedMessage { text, .. }| text::clean_line(text)).collect();
            if let Some(recovery) = entry_mut(model, !prompts.is_empty()) {
                recovery.prompts = prompts;
            }
        }
        EventKind::DraftRestored { text } => {
            let draft = text::clean_line(&model.composer.abbreviate_pastes(&text::clean(text)));
            if let Some(recovery) = entry_mut(model, !draft.is_empty()) {
                recovery.draft = Some(draft).filter(|draft| !draft.is_empty());
            }
        }
        EventKind::LlmRequestStarted { .. } => {
            if let Some(recovery) = model.transcript.recovery_mut() {
                recovery.has_continued = true;
            }
            model.startup.recovering = false;
        }
        // From now on, the report does not change.
        EventKind::TaskStarted { .. } => model.startup.recovering = false,
        _ => {}
    }
}

/// Returns the report. If there is none, creates it if `says` is set.
fn entry_mut(model: &mut UiModel, says: bool) -> Option<&mut Recovery> {
    if says && model.transcript.recovery_mut().is_none() {
        model.transcript.push(TranscriptEntryKind::Recovery(Recovery::default()));
    }
    model.transcript.recovery_mut()
}
