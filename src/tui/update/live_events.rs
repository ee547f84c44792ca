//! Effects of live events: those that open dialogs, and those of every event.

use super::activity::tool_ended;
use super::call_events::{asked, interrupted};
use super::events::{draft_restored, of_its_task, shared};
use super::{dialog, elicitation, history_page, price, recovery, rewind, worktree};
use crate::protocol::{Event, EventKind, Remedy};
use crate::tui::approval::{InterruptedCall, interrupted_dialog};
use crate::tui::model::Model;

/// Applies a live event.
pub(crate) fn apply(model: &mut Model, event: Event, now: u64) {
    let Event { session_id, kind, timestamp, .. } = of_its_task(model, event);
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
            // A previewed or interrupted command is no longer running.
            tool_ended(model, &approval.tool_call_id, now);
            asked(model, &approval);
            dialog::asked(model, approval, focus);
            model.restart_activity_timer(now);
        }
        EventKind::ToolInterrupted { tool_call_id, tool_name, summary, known, last_output, ran_ms } => {
            interrupted(model, &tool_call_id, &summary);
            model.dialogs.forget_call(&tool_call_id, last_text);
            let left = InterruptedCall { known, last_output, ran_ms };
            model.dialogs.add(interrupted_dialog(tool_call_id, &tool_name, &summary, &left), focus, last_text);
        }
        EventKind::DraftRestored { text } => draft_restored(model, &text, now),
        EventKind::ElicitationRequested(asked) => elicitation::asked(model, asked, now),
        EventKind::ElicitationEnded { elicitation_id, outcome } => elicitation::ended(model, &elicitation_id, outcome),
        EventKind::Rewound(done) => rewind::done(model, done, true, now),
        EventKind::HistoryLoaded { events, before } => history_page::loaded(model, events, before, now),
        EventKind::HistorySummed(sum) => history_page::summed(model, sum),
        EventKind::SessionPaused { failure } => {
            let wants_price = failure.remedy == Some(Remedy::AssumePrice);
            shared(model, EventKind::SessionPaused { failure }, now);
            if wants_price {
                price::ask(model, now);
            }
        }
        EventKind::TaskCancelled { .. } => {
            shared(model, kind, now);
            price::forget(model);
        }
        kind => shared(model, kind, now),
    }
    price::refresh(model);
}
