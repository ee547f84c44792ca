//! `/rewind`, `/undo`, `/redo`: asked for, shown, done.

use super::draft_changed;
use super::keys::{hears, take};
use crate::protocol::{Command, RewindFile, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound};
use crate::text;
use crate::tui::approval::{Dialog, Mark, Question};
use crate::tui::model::{Activity, Effect, Model};
use crate::tui::picker::PickerResult;
use crate::tui::rewind::{PendingRewind, RewindList};
use crate::tui::transcript::{Kind, Tone};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The hands rested so long before the first of two Escapes.
const REST_MS: u64 = 3000;
/// The second one comes within this time.
const TWICE_MS: u64 = 1500;
/// Kept paths that are named; the others are counted.
const MAX_NAMED: usize = 8;

/// The list of prompts to go back to.
pub fn open(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if !can(model, "/rewind", now) {
        return;
    }
    if !model.composer.is_empty() {
        take(model, now, effects);
    }
    model.help = None;
    model.reading = None;
    model.search = None;
    model.rewind.list = Some(RewindList::new());
    model.rewind.awaits = Some((PendingRewind::Points, now));
    effects.push(Effect::Send(Command::ListRewindPoints));
}

/// The plan of the last step back, or forth.
pub fn step(model: &mut Model, target: RewindTarget, now: u64, effects: &mut Vec<Effect>) {
    let name = if target == RewindTarget::Redo { "/redo" } else { "/undo" };
    if !can(model, name, now) {
        return;
    }
    take(model, now, effects);
    plan(model, target, now, effects);
}

pub fn plan(model: &mut Model, target: RewindTarget, now: u64, effects: &mut Vec<Effect>) {
    forget_question(model);
    model.rewind.awaits = Some((PendingRewind::Plan, now));
    model.show_toast("preparing the rewind", now);
    effects.push(Effect::Send(Command::PlanRewind { target, scope: RewindScope::Both }));
}

/// Nothing goes back under a task that runs.
fn can(model: &mut Model, name: &str, now: u64) -> bool {
    if !hears(model, now) {
        return false;
    }
    // A task that only waits for an answer ends with what is undone.
    let waits = model.dialogs.approvals() > 0 && (!model.is_running() || model.waits_for_person());
    if model.is_running() && !waits {
        let words = match model.task.activity {
            Activity::Stopping => format!("the task is still stopping; try {name} again after that"),
            _ => format!("a task is running: stop it with esc, then try {name} again"),
        };
        model.show_toast(words, now);
        return false;
    }
    true
}

/// Escape on an empty draft while nothing runs: two of them, after a rest, are the list. `before`: the key before it.
pub fn escape(model: &mut Model, before: Option<u64>, now: u64, effects: &mut Vec<Effect>) {
    if !model.composer.is_empty() {
        return;
    }
    let first = model.keys.rested_escape.take();
    if first.is_some_and(|at| now.saturating_sub(at) <= TWICE_MS) {
        return open(model, now, effects);
    }
    // Who hammers on Escape to stop a task that has just ended means that task.
    let still = before.unwrap_or(0).max(model.task.since);
    if before.is_none() && model.task.since == 0 || now.saturating_sub(still) >= REST_MS {
        model.keys.rested_escape = Some(now);
        model.show_toast("press esc again to rewind (/rewind)", now);
    }
}

pub fn listed(model: &mut Model, points: Vec<RewindPoint>, can_redo: bool, now: u64) {
    let Some(list) = &mut model.rewind.list else { return };
    model.rewind.awaits = model.rewind.awaits.take().filter(|(awaits, _)| *awaits != PendingRewind::Points);
    list.listed(points, can_redo);
    if list.is_empty() {
        model.rewind.list = None;
        let redo = if can_redo { "; /redo undoes the last rewind" } else { "" };
        model.show_toast(format!("there is no prompt to rewind to{redo}"), now);
    }
}

/// Shown only where the person asked.
pub fn planned(model: &mut Model, plan: RewindPlan) {
    let Some((_, asked)) = model.rewind.awaits.take_if(|(awaits, _)| *awaits == PendingRewind::Plan) else { return };
    model.toast = None;
    forget_question(model);
    let last_text = model.keys.last_text;
    model.dialogs.add(Dialog::rewind(plan), false, last_text);
    // It was asked for just now; what was typed meanwhile is a draft, and the guard holds back what is typed on.
    let quiet = model.composer.is_empty() && model.keys.last_key.is_none_or(|at| at <= asked);
    if quiet && !model.is_too_small() && model.search.is_none() {
        model.dialogs.focus(model.dialogs.len() - 1, last_text);
    }
}

/// What the session says while it is asked is its answer.
pub fn noticed(model: &mut Model) {
    if model.rewind.awaits.take().is_some() {
        model.rewind.list = None;
        model.toast = None;
    }
}

/// The person said yes.
pub fn begins(model: &mut Model, now: u64) {
    model.rewind.list = None;
    model.rewind.awaits = Some((PendingRewind::Done, now));
    model.show_toast("rewinding", now);
}

/// Live, or of an earlier run.
pub fn done(model: &mut Model, done: Rewound, live: bool, now: u64) {
    forget_question(model);
    model.rewind.list = None;
    model.rewind.awaits = None;
    if live {
        model.toast = None;
    }
    super::streaming::end(model);
    if done.scope.conversation() {
        match &done.target {
            RewindTarget::Before { task_id, step_id } => model.transcript.undo(Some(task_id), step_id.as_ref()),
            RewindTarget::Last => model.transcript.undo(None, None),
            RewindTarget::Redo => model.transcript.redo(),
        }
        model.last_answer = model.transcript.last_standing_answer();
        model.task.paused = None;
        let last_text = model.keys.last_text;
        // What was asked about is undone; nothing of it runs any more.
        while model.dialogs.iter().any(is_of_task) {
            model.dialogs.forget(is_of_task, last_text);
        }
    }
    let back = live.then(|| done.prompt.clone()).flatten().map(|prompt| text::clean(&prompt).into_owned());
    let text = words(&done, back.is_some() && !model.composer.is_empty());
    let tone = if done.kept.is_empty() { Tone::Plain } else { Tone::Warning };
    model.transcript.push(Kind::Note { text, tone });
    if let Some(prompt) = back.filter(|_| model.composer.is_empty()) {
        model.composer.set(&prompt);
        draft_changed(model, now);
    }
}

/// `keeps_draft`: the prompt does not come back, for there is a draft.
fn words(done: &Rewound, keeps_draft: bool) -> String {
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
    matches!(panel.question, Question::Approval(_) | Question::Interrupted { .. })
}

fn forget_question(model: &mut Model) {
    let last_text = model.keys.last_text;
    model.dialogs.forget(|panel| matches!(panel.question, Question::Rewind(_)), last_text);
}

/// Whether the open question was a plan, and is left: back to the list, or to nothing.
pub fn leaves(model: &mut Model, now: u64) -> bool {
    if !model.dialogs.current().is_some_and(|panel| matches!(panel.question, Question::Rewind(_))) {
        return false;
    }
    forget_question(model);
    if model.rewind.list.is_none() {
        model.show_toast("nothing was undone", now);
    }
    true
}

/// Whether the letter marked a path that was changed by hand; in a sentence it is a letter.
pub fn marks(model: &mut Model, letter: char, now: u64) -> bool {
    let Some(mark) = Mark::of(letter) else { return false };
    let Some(panel) = model.dialogs.open_mut().filter(|panel| panel.marks()) else { return false };
    panel.guard.mark(letter, now) && panel.mark(mark)
}

/// Whether the list is open: then the key was for it.
pub fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let Some(list) = &mut model.rewind.list else { return false };
    model.keys.last_key = Some(now);
    model.toast = None;
    match list.picker.key(key) {
        PickerResult::Nothing | PickerResult::Refused(_) => {}
        PickerResult::Closed => {
            model.rewind.list = None;
            model.rewind.awaits = None;
        }
        PickerResult::Chosen(chosen) => {
            let task = list.task(&chosen).cloned();
            if let Some(task_id) = task {
                plan(model, RewindTarget::Before { task_id, step_id: None }, now, effects);
            }
        }
        PickerResult::Other => match key.code {
            KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => effects.push(Effect::Suspend),
            // What waits for the person comes first.
            KeyCode::Tab if waits => model.dialogs.open_current(model.keys.last_text),
            _ => {}
        },
    }
    true
}
