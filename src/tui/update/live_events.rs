//! Effects of live events: opening dialogs, and updates that follow every event.

use super::activity::remove_running_call;
use super::call_events::{on_approval_requested, on_interrupted};
use super::events::{apply_shared, apply_tagged, on_draft_restored};
use super::{dialog, elicitation, history_page, price, recovery, rewind, worktree};
use crate::protocol::{Event, EventKind, Remedy};
use crate::tui::approval::{InterruptedCall, interrupted_dialog};
use crate::tui::model::UiModel;

/// Applies a live event to the UI model.
pub(crate) fn apply(model: &mut UiModel, event: Event, now: u64) {
    let Event { session_id, kind, timestamp, .. } = apply_tagged(model, event);
    model.info.policy.clock = Some((timestamp, now));
    if let EventKind::TaskStarted { .. } = kind {
        model.info.session = Some(session_id);
    }
    let focus = model.may_take_focus(now);
    let last_text = model.keys.last_text;
    recovery::update_report(model, &kind);
    worktree::note(model, &kind);
    match kind {
        EventKind::ApprovalRequested(mut approval) => {
            model.options.shorten(approval.command.iter_mut().map(|command| &mut command.cwd));
            // A command that was previewed or interrupted is no longer running.
            remove_running_call(model, &approval.tool_call_id, now);
            on_approval_requested(model, &approval);
            dialog::on_approval_requested(model, approval, focus);
            model.restart_activity_timer(now);
        }
        EventKind::ToolInterrupted { tool_call_id, tool_name, summary, known, last_output, ran_ms } => {
            on_interrupted(model, &tool_call_id, &summary);
            model.dialogs.forget_call(&tool_call_id, last_text);
            let left = InterruptedCall { known, last_output, ran_ms };
            model.dialogs.add(interrupted_dialog(tool_call_id, &tool_name, &summary, &left), focus, last_text);
        }
        EventKind::DraftRestored { text } => on_draft_restored(model, &text, now),
        EventKind::ElicitationRequested(asked) => elicitation::on_requested(model, asked, now),
        EventKind::ElicitationEnded { elicitation_id, outcome } => elicitation::on_ended(model, &elicitation_id, outcome),
        EventKind::Rewound(done) => rewind::on_done(model, done, true, now),
        EventKind::HistoryLoaded { events, before } => history_page::on_loaded(model, events, before, now),
        EventKind::HistorySummed(sum) => history_page::on_totals(model, sum),
        EventKind::SessionPaused { failure } => {
            let wants_price = failure.remedy == Some(Remedy::AssumePrice);
            apply_shared(model, EventKind::SessionPaused { failure }, now);
            if wants_price {
                price::ask(model, now);
            }
        }
        EventKind::TaskCancelled { .. } => {
            apply_shared(model, kind, now);
            price::forget(model);
        }
        kind => apply_shared(model, kind, now),
    }
    price::refresh(model);
}
