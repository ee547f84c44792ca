//! A session that cannot be saved: what is said, and the two keys that go on.

use crate::protocol::{Command, Failure, SessionStatus};
use crate::text;
use crate::tui::model::{Effect, Model};
use crate::tui::typeahead_guard::{ALONE_MS, ARMING_MS};

/// Whether what is said and done is on the disk.
#[derive(Debug, Default)]
pub struct SaveState {
    /// It goes on in memory, and a crash loses it.
    pub unsaved: bool,
    /// Nothing goes on until it can be saved, or the person says so: why, in one line, and since when that is said.
    pub stopped: Option<(String, u64)>,
    /// The person had it tried again, and what came of that is not said yet.
    pub again: bool,
    /// Another process has the session: no key goes on from here.
    pub lost: bool,
}

impl SaveState {
    pub fn is_saved(&self) -> bool {
        !self.unsaved && self.stopped.is_none() && !self.lost
    }
}

/// Nothing can be saved, and nothing goes on; whether that is news.
pub fn stopped(model: &mut Model, failure: &Failure, now: u64) -> bool {
    let words = text::clean_line(&failure.message);
    // The same again: the keys do not begin anew under a finger.
    let same = model.saving.stopped.as_ref().is_some_and(|(before, _)| *before == words);
    if !same {
        model.saving.stopped = Some((words, now));
    } else if std::mem::take(&mut model.saving.again) {
        model.show_toast("retried: the session still cannot be saved", now);
    }
    !same
}

/// The session says how it stands.
pub fn changed(model: &mut Model, saved: bool) {
    model.saving = SaveState { unsaved: !saved, stopped: None, again: false, lost: false };
}

/// Something goes on: then it could be saved, or is kept in memory.
pub fn stands(model: &mut Model, status: SessionStatus) {
    if status != SessionStatus::Paused {
        (model.saving.stopped, model.saving.lost) = (None, false);
    }
}

/// Nothing can be saved here any more, so what an earlier pause offered is off.
pub fn lost(model: &mut Model) {
    (model.saving.stopped, model.saving.lost) = (None, true);
}

/// What is said of it in so many cells; the whole sentence stands in the transcript too, the keys do not.
pub fn words(model: &Model, room: usize) -> Option<String> {
    let (why, _) = model.saving.stopped.as_ref()?;
    let dot = model.glyphs.dot;
    // The keys count in an empty draft.
    if !model.composer.is_empty() || model.dialogs.is_open() {
        return Some(format!("Not saved, paused {dot} /continue to retry"));
    }
    let long = format!("r retry {dot} c continue unsaved (lost in a crash)");
    let ways =
        [format!("{why} {long}"), format!("Not saved, paused: {long}"), format!("Not saved: r retry {dot} c continue unsaved")];
    let fits = ways.iter().position(|words| text::width(words) <= room).unwrap_or(ways.len() - 1);
    ways.into_iter().nth(fits)
}

/// A letter in the empty draft that counts once it has stood there alone.
pub fn letter(model: &mut Model, letter: char, last_text: Option<u64>, now: u64) {
    let Some((_, since)) = model.saving.stopped else { return };
    let alone = last_text.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS);
    let shown = now.saturating_sub(since) >= ARMING_MS;
    if ['r', 'c'].contains(&letter) && shown && alone && model.composer.is_empty() && model.dialogs.open().is_none() {
        model.keys.saving_at = Some((letter, now + ALONE_MS));
    }
}

/// Nothing more was typed: it was no word that begins with it.
pub fn due(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    let Some((letter, _)) = model.keys.saving_at.take_if(|(_, at)| now >= *at) else { return };
    if model.saving.stopped.is_none() || model.composer.text() != letter.to_string() {
        return;
    }
    model.composer.set("");
    super::draft_changed(model, now);
    let (command, words) = match letter {
        'r' => (Command::Continue, "retrying to save"),
        _ => (Command::GoOnUnsaved, "continuing unsaved: a crash loses unsaved messages"),
    };
    model.saving.again = letter == 'r';
    effects.push(Effect::Send(command));
    model.show_toast(words, now);
}
