//! Commands `/rewind`, `/undo` and `/redo`: their requests, their dialog and their results.

use super::draft::{on_draft_changed, take_draft};
use super::readiness::check_session;
use crate::protocol::{Command, RewindFile, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound};
use crate::text;
use crate::tui::approval::{Dialog, Mark, RewindChoice, mark_conflict, rewind_dialog};
use crate::tui::layers::RewindList;
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::rewind::PendingRewind;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind, last_active_response, redo_latest, undo_from};

/// Minimum time, in milliseconds, without any key before the first of the two Escape presses that open the list.
const REST_MS: u64 = 3000;
/// Window, in milliseconds, within which a second Escape opens the list.
const TWICE_MS: u64 = 1500;
/// Maximum number of unchanged paths that the report names. Any others are only counted.
const MAX_NAMED: usize = 8;

/// Opens the list of prompts to rewind to.
pub(crate) fn open(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if !can(model, "/rewind", now) {
        return;
    }
    if !model.composer.is_empty() {
        take_draft(model, now, effects);
    }
    model.layers.open(RewindList::new());
    model.info.rewind.awaits = Some((PendingRewind::Points, now));
    effects.push(UiEffect::Send(Command::ListRewindPoints));
}

/// Requests the plan for undoing the last prompt or for redoing what the last rewind undid.
pub(crate) fn step(model: &mut UiModel, target: RewindTarget, now: u64, effects: &mut Vec<UiEffect>) {
    let name = if target == RewindTarget::Redo { "/redo" } else { "/undo" };
    if !can(model, name, now) {
        return;
    }
    take_draft(model, now, effects);
    plan(model, target, now, effects);
}

pub(crate) fn plan(model: &mut UiModel, target: RewindTarget, now: u64, effects: &mut Vec<UiEffect>) {
    forget_question(model);
    model.info.rewind.awaits = Some((PendingRewind::Plan, now));
    model.show_toast("preparing the rewind", now);
    effects.push(UiEffect::Send(Command::PlanRewind { target, scope: RewindScope::Both }));
}

/// Returns whether the session can be rewound now, which is not the case while a task is running. If not, shows a
/// notice.
fn can(model: &mut UiModel, name: &str, now: u64) -> bool {
    if !check_session(model, now) {
        return false;
    }
    // A rewind ends a task that is only waiting for an answer.
    let waits = model.dialogs.approvals() > 0 && (!model.is_running() || model.is_waiting_for_user());
    if model.is_running() && !waits {
        let words = match model.task.activity {
            Activity::Stopping => format!("the task is still stopping; try {name} again once it has stopped"),
            _ => format!("a task is running: stop it with esc, then try {name} again"),
        };
        model.show_toast(words, now);
        return false;
    }
    true
}

/// Handles Escape in an empty draft while no task is running. Two presses after a pause open the list of prompts.
/// `before` is the time of the previous key, in milliseconds.
pub(crate) fn escape(model: &mut UiModel, before: Option<u64>, now: u64, effects: &mut Vec<UiEffect>) {
    if !model.composer.is_empty() {
        return;
    }
    let first = model.keys.rested_escape.take();
    if first.is_some_and(|at| now.saturating_sub(at) <= TWICE_MS) {
        return open(model, now, effects);
    }
    // Repeated Escapes just after a task has ended were meant to stop the task.
    let still = before.unwrap_or(0).max(model.task.since);
    if before.is_none() && model.task.since == 0 || now.saturating_sub(still) >= REST_MS {
        model.keys.rested_escape = Some(now);
        model.show_toast("press esc again to rewind (/rewind)", now);
    }
}

pub(crate) fn on_listed(model: &mut UiModel, points: Vec<RewindPoint>, can_redo: bool, now: u64) {
    let Some(list) = model.layers.find_mut::<RewindList>() else { return };
    model.info.rewind.awaits = model.info.rewind.awaits.take().filter(|(awaits, _)| *awaits != PendingRewind::Points);
    list.set_points(points, can_redo);
    if list.is_empty() {
        model.layers.close::<RewindList>();
        let redo = if can_redo { "; /redo undoes the last rewind" } else { "" };
        model.show_toast(format!("no prompt to rewind to{redo}"), now);
    }
}

/// Opens the rewind dialog for a plan that the user requested. Other plans are ignored.
pub(crate) fn on_planned(model: &mut UiModel, plan: RewindPlan) {
    let Some((_, asked)) = model.info.rewind.awaits.take_if(|(awaits, _)| *awaits == PendingRewind::Plan) else { return };
    model.toast = None;
    forget_question(model);
    let last_text = model.keys.last_text;
    model.dialogs.add(rewind_dialog(plan), false, last_text);
    // The user has just requested the dialog. Text typed since then is a draft, and the guard protects against keys of
    // further typing.
    let quiet = model.composer.is_empty() && model.keys.last_key.is_none_or(|at| at <= asked);
    if quiet && !model.is_too_small() && model.draft.search.is_none() {
        model.dialogs.focus(model.dialogs.len() - 1, last_text);
    }
}

/// Ends the pending rewind request, because the session responded to it with a notice.
pub(crate) fn on_notice(model: &mut UiModel) {
    if model.info.rewind.awaits.take().is_some() {
        model.layers.close::<RewindList>();
        model.toast = None;
    }
}

/// Shows that the rewind the user confirmed has started.
pub(crate) fn on_confirmed(model: &mut UiModel, now: u64) {
    model.layers.close::<RewindList>();
    model.info.rewind.awaits = Some((PendingRewind::Done, now));
    model.show_toast("rewinding", now);
}

/// Applies a completed rewind, whether it is live or replayed.
pub(crate) fn on_done(model: &mut UiModel, done: Rewound, live: bool, now: u64) {
    forget_question(model);
    model.layers.close::<RewindList>();
    model.info.rewind.awaits = None;
    if live {
        model.toast = None;
    }
    super::streaming::complete_response(model);
    if done.scope.conversation() {
        match &done.target {
            RewindTarget::Before { task_id, step_id } => undo_from(&mut model.transcript, Some(task_id), step_id.as_ref()),
            RewindTarget::Last => undo_from(&mut model.transcript, None, None),
            RewindTarget::Redo => redo_latest(&mut model.transcript),
        }
        // After a rewind, the response before it is old.
        let is_redo = done.target == RewindTarget::Redo;
        model.info.last_answer = is_redo.then(|| last_active_response(&model.transcript)).flatten();
        model.task.paused = None;
        let last_text = model.keys.last_text;
        // Removes the dialogs of undone tasks, because nothing of these tasks is running.
        while model.dialogs.iter().any(is_of_task) {
            model.dialogs.forget(is_of_task, last_text);
        }
    }
    let back = live.then(|| done.prompt.clone()).flatten().map(|prompt| text::clean(&prompt).into_owned());
    let text = describe_result(&done, back.is_some() && !model.composer.is_empty());
    let tone = if done.kept.is_empty() { NoteTone::Plain } else { NoteTone::Warning };
    model.transcript.push(TranscriptEntryKind::Note { text, tone });
    if let Some(prompt) = back.filter(|_| model.composer.is_empty()) {
        model.composer.set(&prompt);
        on_draft_changed(model, now);
    }
}

/// Returns the report on a completed rewind. `keeps_draft` says that the prompt was not restored to the draft, because
/// the draft is not empty.
fn describe_result(done: &Rewound, keeps_draft: bool) -> String {
    let mut lines = vec![text::clean(&done.message).trim_end().to_owned()];
    let path = |file: &RewindFile| text::reveal(&file.path.to_string_lossy()).replace(['\n', '\r'], " ");
    for file in done.kept.iter().take(MAX_NAMED) {
        let why = file.conflict.as_ref().map(|why| format!(": {}", text::clean(why))).unwrap_or_default();
        lines.push(format!("  left as is  {}{why}", path(file)));
    }
    let more = done.kept.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        lines.push(format!("  and {more} more left as is"));
    }
    if done.scope.conversation() && done.target != RewindTarget::Redo && done.messages > 0 {
        lines.push("undone messages are marked with a bar above; the model no longer sees them".to_owned());
    }
    if keeps_draft {
        lines.push("your draft is unchanged; the undone prompt is in the history (up)".to_owned());
    }
    if done.target != RewindTarget::Redo && (done.restored > 0 || done.messages > 0) {
        lines.push("/redo reverts this".to_owned());
    }
    lines.join("\n")
}

fn is_of_task(panel: &Dialog) -> bool {
    panel.call().is_some()
}

fn forget_question(model: &mut UiModel) {
    let last_text = model.keys.last_text;
    model.dialogs.forget(|panel| panel.kind.is::<RewindChoice>(), last_text);
}

/// Closes the rewind dialog. Returns whether it was open. If the list of prompts is open, it becomes visible again.
pub(crate) fn close_dialog(model: &mut UiModel, now: u64) -> bool {
    if !model.dialogs.current().is_some_and(|panel| panel.kind.is::<RewindChoice>()) {
        return false;
    }
    forget_question(model);
    if !model.layers.is_open::<RewindList>() {
        model.show_toast("nothing was undone", now);
    }
    true
}

/// Handles a letter as a key for the conflicting paths. Returns `false` if it is not such a key, or if it was typed as
/// part of a text.
pub(crate) fn marks(model: &mut UiModel, letter: char, now: u64) -> bool {
    let Some(mark) = Mark::from_key(letter) else { return false };
    let Some(panel) = model.dialogs.open_mut().filter(|panel| panel.kind.find::<RewindChoice>().is_some_and(RewindChoice::marks))
    else {
        return false;
    };
    panel.guard.mark(letter, now) && mark_conflict(panel, mark)
}
