//! Commands `/rewind`, `/undo` and `/redo`: their requests, dialog and results.

use super::draft::{on_draft_changed, take_draft};
use super::readiness::check_session;
use crate::protocol::{Command, RewindFile, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound};
use crate::text;
use crate::tui::approval::{Dialog, Mark, RewindChoice, mark_conflict, rewind_dialog};
use crate::tui::layers::RewindList;
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::rewind::PendingRewind;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind, last_active_response, redo_latest, undo_from};

/// Minimum time in milliseconds without a key before the first of two Escapes.
const REST_MS: u64 = 3000;
/// Maximum time in milliseconds between the two Escapes.
const TWICE_MS: u64 = 1500;
/// Maximum number of unchanged paths that are named; the rest are only counted.
const MAX_NAMED: usize = 8;

/// Opens the list of prompts to which the session can be rewound.
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

/// Requests the plan of a single undo or redo.
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

/// Returns whether a rewind is possible; it is not while a task is running. If not, reports that.
fn can(model: &mut UiModel, name: &str, now: u64) -> bool {
    if !check_session(model, now) {
        return false;
    }
    // A task that only waits for an answer is ended by the rewind.
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

/// Handles Escape on an empty draft without a running task. Two presses after a pause open the list. `before`: the time
/// of the previous key.
pub(crate) fn escape(model: &mut UiModel, before: Option<u64>, now: u64, effects: &mut Vec<UiEffect>) {
    if !model.composer.is_empty() {
        return;
    }
    let first = model.keys.rested_escape.take();
    if first.is_some_and(|at| now.saturating_sub(at) <= TWICE_MS) {
        return open(model, now, effects);
    }
    // Repeated Escapes just after a task has ended were meant to stop that task.
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

/// Opens the rewind dialog, if the user requested it.
pub(crate) fn on_planned(model: &mut UiModel, plan: RewindPlan) {
    let Some((_, asked)) = model.info.rewind.awaits.take_if(|(awaits, _)| *awaits == PendingRewind::Plan) else { return };
    model.toast = None;
    forget_question(model);
    let last_text = model.keys.last_text;
    model.dialogs.add(rewind_dialog(plan), false, last_text);
    // The user has just requested the dialog. Text typed since then is a draft, and the guard holds back further
    // typing.
    let quiet = model.composer.is_empty() && model.keys.last_key.is_none_or(|at| at <= asked);
    if quiet && !model.is_too_small() && model.draft.search.is_none() {
        model.dialogs.focus(model.dialogs.len() - 1, last_text);
    }
}

/// Treats a notice from the session as the response to the request.
pub(crate) fn on_notice(model: &mut UiModel) {
    if model.info.rewind.awaits.take().is_some() {
        model.layers.close::<RewindList>();
        model.toast = None;
    }
}

/// Starts the rewind that the user confirmed.
pub(crate) fn on_confirmed(model: &mut UiModel, now: u64) {
    model.layers.close::<RewindList>();
    model.info.rewind.awaits = Some((PendingRewind::Done, now));
    model.show_toast("rewinding", now);
}

/// Applies a rewind, either live or from an earlier process.
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
        // Remove the dialogs of undone tasks, of which nothing is running.
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

/// Returns the report about a rewind. `keeps_draft`: the prompt was not restored, because the draft is not empty.
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

/// Closes the rewind dialog. Returns whether it was open. An open list is visible again.
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

/// Handles a key for a conflicting path. Returns false if the letter is part of typed text.
pub(crate) fn marks(model: &mut UiModel, letter: char, now: u64) -> bool {
    let Some(mark) = Mark::from_key(letter) else { return false };
    let Some(panel) = model.dialogs.open_mut().filter(|panel| panel.kind.find::<RewindChoice>().is_some_and(RewindChoice::marks))
    else {
        return false;
    };
    panel.guard.mark(letter, now) && mark_conflict(panel, mark)
}
