//! Failures to save the session: the message, and the two keys with which the user can continue.

use crate::protocol::{Command, Failure, HostCommand, SessionStatus};
use crate::text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::save_state::SaveState;
use crate::tui::typeahead_guard::{ALONE_MS, ARMING_MS};

/// Shows that the session is paused because it cannot be saved. Returns whether the reason differs from the one already
/// shown.
pub(crate) fn on_stopped(model: &mut UiModel, failure: &Failure, now: u64) -> bool {
    let words = text::clean_line(&failure.message);
    // If the failure repeats, the state of the keys must not change while the user presses one.
    let same = model.info.saving.stopped.as_ref().is_some_and(|(before, _)| *before == words);
    if !same {
        model.info.saving.stopped = Some((words, now));
    } else if std::mem::take(&mut model.info.saving.again) {
        model.show_toast("retried: the session still cannot be saved", now);
    }
    !same
}

/// Applies the session's report on whether it is saved.
pub(crate) fn on_changed(model: &mut UiModel, saved: bool) {
    model.info.saving = SaveState { unsaved: !saved, stopped: None, again: false, lost: false };
}

/// Clears the reason for the pause once the session is no longer paused.
pub(crate) fn clear(model: &mut UiModel, status: SessionStatus) {
    if status != SessionStatus::Paused {
        (model.info.saving.stopped, model.info.saving.lost) = (None, false);
    }
}

/// Disables the two keys, because this process can no longer save the session.
pub(crate) fn on_lost(model: &mut UiModel) {
    (model.info.saving.stopped, model.info.saving.lost) = (None, true);
}

/// Returns the message and its keys in the longest form that fits into `room` cells. The full message, without the
/// keys, is in the transcript.
pub(crate) fn status_text(model: &UiModel, room: usize) -> Option<String> {
    let (why, _) = model.info.saving.stopped.as_ref()?;
    let dot = model.screen.glyphs.dot;
    // The keys work only in an empty draft.
    if !model.composer.is_empty() || model.dialogs.is_open() {
        return Some(format!("Not saved, paused {dot} /continue to retry"));
    }
    let long = format!("r retry {dot} c continue unsaved (lost in a crash)");
    let ways =
        [format!("{why} {long}"), format!("Not saved, paused: {long}"), format!("Not saved: r retry {dot} c continue unsaved")];
    let fits = ways.iter().position(|words| text::width(words) <= room).unwrap_or(ways.len() - 1);
    ways.into_iter().nth(fits)
}

/// Handles `r` or `c` in an empty draft. The key takes effect only if no other typing follows within a short time.
pub(crate) fn on_char(model: &mut UiModel, letter: char, last_text: Option<u64>, now: u64) {
    let Some((_, since)) = model.info.saving.stopped else { return };
    let alone = last_text.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS);
    let shown = now.saturating_sub(since) >= ARMING_MS;
    if ['r', 'c'].contains(&letter) && shown && alone && model.composer.is_empty() && model.dialogs.open().is_none() {
        model.keys.saving_at = Some((letter, now + ALONE_MS));
    }
}

/// Carries out the action of `r` or `c` once it is due, provided nothing was typed after it.
pub(crate) fn perform_due_key(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some((letter, _)) = model.keys.saving_at.take_if(|(_, at)| now >= *at) else { return };
    if model.info.saving.stopped.is_none() || model.composer.text() != letter.to_string() {
        return;
    }
    model.composer.set("");
    super::draft::on_draft_changed(model, now);
    let (effect, words) = match letter {
        'r' => (UiEffect::Send(Command::Continue), "retrying to save"),
        _ => (UiEffect::SendToHost(HostCommand::GoOnUnsaved), "continuing unsaved: a crash loses unsaved messages"),
    };
    model.info.saving.again = letter == 'r';
    effects.push(effect);
    model.show_toast(words, now);
}
