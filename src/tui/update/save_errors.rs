//! Failures to save the session: the message, and the two keys to continue.

use crate::protocol::{Command, Failure, HostCommand, SessionStatus};
use crate::text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::save_state::SaveState;
use crate::tui::typeahead_guard::{ALONE_MS, ARMING_MS};

/// Pauses the session because it cannot be saved. Returns whether the state changed.
pub(crate) fn on_stopped(model: &mut UiModel, failure: &Failure, now: u64) -> bool {
    let words = text::clean_line(&failure.message);
    // If the failure repeats, the state of the keys does not change while the user presses one.
    let same = model.info.saving.stopped.as_ref().is_some_and(|(before, _)| *before == words);
    if !same {
        model.info.saving.stopped = Some((words, now));
    } else if std::mem::take(&mut model.info.saving.again) {
        model.show_toast("retried: the session still cannot be saved", now);
    }
    !same
}

/// Applies the session's report about its save state.
pub(crate) fn on_changed(model: &mut UiModel, saved: bool) {
    model.info.saving = SaveState { unsaved: !saved, stopped: None, again: false, lost: false };
}

/// Handles a running session, which was saved or continues in memory.
pub(crate) fn clear(model: &mut UiModel, status: SessionStatus) {
    if status != SessionStatus::Paused {
        (model.info.saving.stopped, model.info.saving.lost) = (None, false);
    }
}

/// Disables the keys, because this process can no longer save the session.
pub(crate) fn on_lost(model: &mut UiModel) {
    (model.info.saving.stopped, model.info.saving.lost) = (None, true);
}

/// Returns the message in a form that fits into this many cells. The transcript contains the full text without the
/// keys.
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

/// Handles a letter in the empty draft, which takes effect after a pause without further typing.
pub(crate) fn on_char(model: &mut UiModel, letter: char, last_text: Option<u64>, now: u64) {
    let Some((_, since)) = model.info.saving.stopped else { return };
    let alone = last_text.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS);
    let shown = now.saturating_sub(since) >= ARMING_MS;
    if ['r', 'c'].contains(&letter) && shown && alone && model.composer.is_empty() && model.dialogs.open().is_none() {
        model.keys.saving_at = Some((letter, now + ALONE_MS));
    }
}

/// Performs the action of the key, because no text followed it.
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
