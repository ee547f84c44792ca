//! Effects of events that concern tasks and their steps.

use super::activity::set_activity;
use super::notes::{note, note_event};
use super::quit::refresh_quit_hint;
use super::{compaction, failures, planned_steps, queue, save_errors, streaming};
use crate::protocol::{EventKind, SessionStatus, Usage};
use crate::text;
use crate::tui::model::{Activity, TOAST_MS, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Minimum time, in milliseconds, for which a notice stays visible even if the task it is about ends.
const READ_MS: u64 = 2000;

/// Applies an event that concerns a task or step.
pub(crate) fn apply(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::TaskStarted { prompt, .. } => on_started(model, &prompt, now),
        EventKind::QueueChanged { waiting } => queue::on_queue_changed(model, waiting, now),
        EventKind::Steered { text } => {
            queue::on_delivered(model, &text, now);
            streaming::complete_response(model);
            show_prompt(model, &text);
        }
        // Other events report what the session does. This event is needed only for the end of a compaction or pause.
        EventKind::StateChanged { session_status, .. } => {
            if session_status != SessionStatus::Running {
                compaction::on_end(model, now);
            }
            save_errors::clear(model, session_status);
        }
        EventKind::StepStarted { step_count } => {
            model.task.step = step_count;
            model.task.goes_on = true;
            compaction::on_end(model, now);
            set_activity(model, Activity::Thinking, now);
        }
        EventKind::StepLimitApproaching { .. } => note_event(model, &kind, ""),
        EventKind::PlannedStepsChanged { steps } => planned_steps::changed(model, steps),
        EventKind::TaskCompleted { cost_usd, text, .. } => {
            on_ended(model, now);
            if !text.is_empty() {
                model.info.last_answer = Some(text);
            }
            // Some requests did not report their cost.
            if model.task.cost_usd.is_none() {
                model.info.tally.spend(cost_usd);
                model.task.cost_usd = cost_usd;
            }
        }
        EventKind::TaskFailed { failure, .. } | EventKind::PromptBlocked { failure, .. } => {
            on_ended(model, now);
            failures::on_failed(model, &failure);
        }
        EventKind::TaskCancelled { .. } => {
            on_ended(model, now);
            note(model, "interrupted", NoteTone::Plain);
        }
        EventKind::SessionPaused { failure } => {
            on_ended(model, now);
            failures::on_paused(model, &failure, now);
        }
        _ => {}
    }
}

fn on_started(model: &mut UiModel, prompt: &str, now: u64) {
    model.toast = None;
    queue::on_delivered(model, prompt, now);
    model.task.paused = None;
    show_prompt(model, prompt);
    model.task.usage = Usage::default();
    model.task.cost_usd = None;
    model.task.is_estimated = false;
    model.task.step = 0;
    model.task.goes_on = true;
    model.set_activity(Activity::Thinking, now);
    refresh_quit_hint(model, now);
}

/// Ends the displayed activity when a task or a command run by the user has ended.
pub(crate) fn on_ended(model: &mut UiModel, now: u64) {
    streaming::complete_response(model);
    model.task.goes_on = false;
    model.task.summarized_messages = None;
    model.set_activity(Activity::Idle, now);
    remove_outdated_notices(model, now);
    refresh_quit_hint(model, now);
}

/// Removes the current notice, because the task that it may be about has ended. A notice that has only just appeared,
/// such as the response to a key press, stays long enough to be read.
fn remove_outdated_notices(model: &mut UiModel, now: u64) {
    if let Some((_, until)) = &mut model.toast {
        *until = (*until).min((*until + READ_MS).saturating_sub(TOAST_MS));
    }
    model.toast.take_if(|(_, until)| *until <= now);
}

/// Adds the user's prompt to the transcript, with long pastes folded.
fn show_prompt(model: &mut UiModel, prompt: &str) {
    let prompt = text::clean(prompt).into_owned();
    let pastes = model.composer.pastes_in(&prompt);
    model.transcript.push(TranscriptEntryKind::User(prompt));
    if let Some(entry) = model.transcript.last_mut() {
        entry.pastes = pastes;
    }
}
