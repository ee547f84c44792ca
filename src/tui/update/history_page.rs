//! Earlier parts of a resumed session, loaded as the user scrolls up to them.

use super::replay::{after_replay, replay};
use crate::protocol::{Event, HistorySum, Query};
use crate::tui::model::{UiEffect, UiModel};

/// Requests the preceding part of the history once the user has scrolled close to the start of the loaded part.
pub(crate) fn request_older(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    if let Some(before) = model.info.older.before
        && !model.info.older.is_asked
        && model.transcript.is_near_start()
    {
        model.info.older.is_asked = true;
        effects.push(UiEffect::Ask(Query::LoadHistory { before }));
    }
}

/// Inserts an earlier part of the history at the start of the transcript. The visible rows do not move, and the
/// session's state does not change.
pub(crate) fn on_loaded(model: &mut UiModel, history: Vec<Event>, before: Option<i64>, now: u64) {
    model.info.older.is_asked = false;
    model.info.older.before = before;
    let transcript = std::mem::take(&mut model.transcript);
    let (task, tally) = (std::mem::take(&mut model.task), std::mem::take(&mut model.info.tally));
    let (panels, tool_uses) = (std::mem::take(&mut model.dialogs), std::mem::take(&mut model.info.tool_uses));
    let (last_answer, said) = (model.info.last_answer.take(), model.toast.take());
    for event in history {
        replay(model, event, now);
    }
    after_replay(model);
    let older = std::mem::replace(&mut model.transcript, transcript);
    (model.task, model.info.tally, model.dialogs, model.info.tool_uses) = (task, tally, panels, tool_uses);
    (model.info.last_answer, model.toast) = (last_answer, said);
    let (transcript, look) = model.transcript_look(now);
    transcript.prepend(older, look);
}

/// Sets the session's usage totals, which cannot be computed from the events if only the last part of the history was
/// loaded.
pub(crate) fn on_totals(model: &mut UiModel, sum: HistorySum) {
    model.info.tally.usage = sum.usage;
    model.info.tally.cost_usd = sum.cost_usd;
    model.info.tally.is_estimated = sum.estimated;
    model.task.usage = sum.task_usage;
    model.task.cost_usd = sum.task_cost_usd;
    model.task.is_estimated = sum.task_estimated;
    model.info.tool_uses = sum.tools.into();
}
