//! Sessions: the list, a new one, a fork, and renaming.

use super::draft::{save_draft, take_draft};
use crate::protocol::{Command, ForkUntil, HostRequest, Query, RunningState, SessionId, TaskId};
use crate::text;
use crate::tui::approval::deletion_dialog;
use crate::tui::interface::{ExitReason, SessionTarget};
use crate::tui::model::{Activity, Effect, Model};
use crate::tui::picker::WIDE;
use crate::tui::sessions::{Choice, Sessions};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 80;

/// Opens the list at once; its content is loaded afterwards.
pub(crate) fn open(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if !model.composer.is_empty() {
        take_draft(model, now, effects);
    }
    show(model, effects);
}

pub(crate) fn show(model: &mut Model, effects: &mut Vec<Effect>) {
    model.overlays.make_room();
    model.overlays.sessions = Some(Sessions::new(model.info.session.clone(), &model.screen.glyphs));
    request_list(model, effects);
}

/// Opens the list as the only content. Text typed in the meantime goes to the chosen session.
pub(crate) fn choose(model: &mut Model, effects: &mut Vec<Effect>) {
    model.startup.is_session_chooser = true;
    show(model, effects);
}

fn request_list(model: &Model, effects: &mut Vec<Effect>) {
    if let Some(sessions) = &model.overlays.sessions {
        let words = sessions.picker.filter().to_owned();
        query(effects, HostRequest::Sessions { words, all: sessions.all, archived: sessions.archived });
    }
}

pub(super) fn query(effects: &mut Vec<Effect>, what: HostRequest) {
    effects.push(Effect::Ask(Query::LookUp(what)));
}

/// Returns whether the session can be left, because no command is running; reports it if not.
pub(super) fn may_leave(model: &mut Model, name: &str, now: u64) -> bool {
    let words = if model.task.activity == Activity::Stopping {
        format!("the task is still stopping; try {name} again once it has stopped")
    } else if model.is_running() || model.dialogs.approvals() > 0 {
        format!("a task is running: stop it with esc, then try {name} again")
    } else if let Some(command) = model.info.commands.iter().find(|one| one.state == RunningState::Running) {
        let id = text::clean(&command.id).into_owned();
        format!("{id} is running in the background and would stop with this session; /stop {id} first")
    } else {
        return true;
    };
    model.show_toast(words, now);
    false
}

/// Handles `/new`: leaves the session unchanged, so that it can be resumed.
pub(crate) fn new(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if may_leave(model, "/new", now) {
        take_draft(model, now, effects);
        leave(model, SessionTarget::New, effects);
    }
}

pub(super) fn leave(model: &mut Model, next: SessionTarget, effects: &mut Vec<Effect>) {
    save_draft(model, effects);
    effects.push(Effect::Send(Command::Quit));
    effects.push(Effect::Exit(ExitReason::Open(next)));
}

/// Handles `/resume ID`, and the highlighted session of the list.
pub(super) fn resume(model: &mut Model, id: SessionId, now: u64, effects: &mut Vec<Effect>) {
    if model.info.session.as_ref() == Some(&id) {
        model.overlays.sessions = None;
        return model.show_toast("this session is already open", now);
    }
    if may_leave(model, "/resume", now) {
        leave(model, SessionTarget::Session(id), effects);
    }
}

/// Handles `/resume` and `/resume ID`.
pub(crate) fn resume_by_id(model: &mut Model, id: &str, now: u64, effects: &mut Vec<Effect>) {
    if id.is_empty() {
        return open(model, now, effects);
    }
    let looks_like_one = (6..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if looks_like_one {
        take_draft(model, now, effects);
        return resume(model, SessionId::new(id.to_ascii_lowercase()), now, effects);
    }
    open(model, now, effects);
    if let Some(sessions) = &mut model.overlays.sessions {
        sessions.picker.insert(id);
    }
    request_list(model, effects);
}

/// Handles `/fork`: copies the conversation into a new session.
pub(crate) fn fork(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    let Some(session_id) = has_words(model, "/fork", now) else { return };
    if may_leave(model, "/fork", now) {
        take_draft(model, now, effects);
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::End });
    }
}

/// Forks from the rewind dialog: the copy ends before that prompt, and this session is unchanged.
pub(super) fn fork_before(model: &mut Model, task_id: TaskId, now: u64, effects: &mut Vec<Effect>) {
    let Some(session_id) = has_words(model, "/fork", now) else { return };
    if may_leave(model, "the fork", now) {
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::Prompt { task_id } });
    }
}

/// Handles `/rename TITLE`.
pub(crate) fn rename(model: &mut Model, title: &str, now: u64, effects: &mut Vec<Effect>) {
    let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect();
    if title.is_empty() {
        return model.show_toast("missing title: `/rename Validate the name`", now);
    }
    let Some(session_id) = has_words(model, "/rename", now) else { return };
    take_draft(model, now, effects);
    query(effects, HostRequest::Rename { session_id, title });
}

pub(super) fn has_words(model: &mut Model, name: &str, now: u64) -> Option<SessionId> {
    if model.info.session.is_none() {
        model.show_toast(format!("this session has no messages yet, so {name} is not available"), now);
    }
    model.info.session.clone()
}

/// Handles a key of the list. Returns whether the list is open.
pub(crate) fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let wide = model.screen.size.width >= WIDE;
    let Some(sessions) = &mut model.overlays.sessions else { return false };
    model.keys.last_key = Some(now);
    model.toast = None;
    // Pending dialogs come first; Enter belongs to the dialog about the highlighted session.
    let at = sessions.highlighted().map(|at| &at.session_id);
    let asks =
        key.code == KeyCode::Enter && at.is_some_and(|at| model.dialogs.iter().any(|panel| panel.question.is_about_deleting(at)));
    if key.code == KeyCode::Tab && waits || asks {
        model.dialogs.open_current(model.keys.last_text);
        return true;
    }
    let choice = sessions.key(key, wide);
    on_choice(model, choice, key, now, effects);
    request_preview(model, effects);
    true
}

pub(crate) fn paste(model: &mut Model, words: &str, now: u64, effects: &mut Vec<Effect>) {
    let Some(sessions) = &mut model.overlays.sessions else { return };
    model.keys.last_key = Some(now);
    if sessions.paste(words) == Choice::Ask {
        request_list(model, effects);
    }
}

/// Adds text that was typed into a dialog over the list to the filter. Returns whether there is a list.
pub(crate) fn add_to_filter(model: &mut Model, words: &str) -> bool {
    let Some(sessions) = &mut model.overlays.sessions else { return false };
    sessions.is_stale |= sessions.paste(words) == Choice::Ask;
    true
}

/// Requests the list again, because its filter has changed.
pub(crate) fn refresh_if_filter_changed(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.overlays.sessions.as_mut().is_some_and(|sessions| std::mem::take(&mut sessions.is_stale)) {
        request_list(model, effects);
    }
}

fn on_choice(model: &mut Model, choice: Choice, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    match choice {
        Choice::Nothing => {}
        // Without another screen, closing the list quits.
        Choice::Closed if model.startup.is_session_chooser => effects.push(Effect::Exit(ExitReason::Quit)),
        Choice::Closed => model.overlays.sessions = None,
        Choice::Refused(why) => model.show_toast(why, now),
        Choice::Ask => request_list(model, effects),
        Choice::Open(id) => resume(model, id, now, effects),
        Choice::Fork(session_id) => {
            if may_leave(model, "the fork", now) {
                model.show_toast("forking the session", now);
                query(effects, HostRequest::Fork { session_id, until: ForkUntil::End });
            }
        }
        Choice::Transcript(session_id) => {
            model.show_toast("loading the conversation", now);
            query(effects, HostRequest::Transcript { session_id });
        }
        Choice::Archive(session_id, archived) => query(effects, HostRequest::Archive { session_id, archived }),
        Choice::Rename(session_id, title) => query(effects, HostRequest::Rename { session_id, title }),
        Choice::Delete(id, title) => {
            let last_text = model.keys.last_text;
            model.dialogs.forget(|panel| panel.question.is_deletion(), last_text);
            model.dialogs.add(deletion_dialog(id, &title), false, last_text);
            model.dialogs.focus(model.dialogs.len() - 1, last_text);
        }
        Choice::Other => match key.code {
            KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => effects.push(Effect::Suspend),
            KeyCode::Char('d') if key.modifiers.contains(KeyModifiers::CONTROL) && model.startup.is_session_chooser => {
                effects.push(Effect::Exit(ExitReason::Quit));
            }
            _ => {}
        },
    }
}

/// Requests the preview of the highlighted session, once.
pub(crate) fn request_preview(model: &mut Model, effects: &mut Vec<Effect>) {
    // Line mode has no preview.
    let Some(sessions) = model.overlays.sessions.as_mut().filter(|_| !model.in_lines) else { return };
    let Some(at) = sessions.highlighted().map(|at| at.session_id.clone()) else { return };
    if sessions.requested_preview.as_ref() != Some(&at) {
        sessions.requested_preview = Some(at.clone());
        query(effects, HostRequest::Session { session_id: at });
    }
}

/// Deletes the session that the user confirmed.
pub(crate) fn forget(id: SessionId, effects: &mut Vec<Effect>) {
    query(effects, HostRequest::Delete { session_id: id });
}
