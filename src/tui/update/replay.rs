//! Events recorded by an earlier process, which are shown without opening dialogs.

use super::call_events::{on_approval_requested, on_interrupted};
use super::events::{apply_shared, apply_tagged};
use super::{models, streaming};
use crate::protocol::{Event, EventKind};
use crate::tui::model::{Activity, UiModel};
use crate::tui::task::PauseNotice;
use crate::tui::transcript::CardState;

/// Shows an event recorded by an earlier process, without opening a dialog.
pub(crate) fn replay(model: &mut UiModel, event: Event, now: u64) {
    let Event { session_id, kind, .. } = apply_tagged(model, event);
    model.info.session = Some(session_id);
    match kind {
        EventKind::ApprovalRequested(approval) => on_approval_requested(model, &approval),
        EventKind::ToolInterrupted { tool_call_id, summary, .. } => on_interrupted(model, &tool_call_id, &summary),
        EventKind::DraftRestored { .. }
        | EventKind::SessionStarted { .. }
        | EventKind::QueueChanged { .. }
        | EventKind::StateChanged { .. }
        | EventKind::CompactionStarted { .. }
        | EventKind::ModelsListed { .. }
        | EventKind::ContextShown(_)
        | EventKind::ListShown(_)
        | EventKind::BudgetShown { .. }
        | EventKind::RuleTold { .. }
        | EventKind::BudgetApproaching { .. }
        | EventKind::PolicyInForce { .. }
        | EventKind::PolicyRejected { .. }
        | EventKind::ModeChanged { .. }
        | EventKind::SandboxInForce { .. }
        | EventKind::ApprovalOutdated { .. }
        | EventKind::PreviewStarted { .. }
        | EventKind::EffectsProgress { .. }
        | EventKind::CommandsRunning { .. }
        | EventKind::ServersChanged { .. }
        | EventKind::ElicitationRequested(_)
        | EventKind::ElicitationEnded { .. }
        | EventKind::ArtifactsListed { .. }
        | EventKind::ArtifactRead { .. }
        | EventKind::ProposedShown { .. }
        | EventKind::ChangedFiles(_)
        | EventKind::RewindPointsListed { .. }
        | EventKind::RewindPlanned(_)
        | EventKind::SessionCompleted { .. }
        | EventKind::LlmRetry { .. } => {}
        // The session itself reports the model in use.
        EventKind::ModelChanged { message, .. } => models::show_message(model, &message),
        kind => apply_shared(model, kind, now),
    }
}

/// Marks work that the earlier process left unfinished as such. It is not continued.
pub(crate) fn after_replay(model: &mut UiModel) {
    for card in model.transcript.cards_mut() {
        // The sandbox of the earlier process is unknown.
        card.held.clear();
        if card.is_running() {
            card.state = CardState::Unknown;
        }
    }
    if model.is_running() {
        model.set_activity(Activity::Idle, 0);
        model.task.paused = Some(PauseNotice::new("aye exited during this task"));
    }
    model.task.waiting.clear();
    model.task.goes_on = false;
    model.task.summarized_messages = None;
    streaming::complete_response(model);
    // Only a response of this process is printed at exit.
    model.info.last_answer = None;
}
