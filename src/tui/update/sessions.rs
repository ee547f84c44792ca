//! Sessions: the session list, and commands that create, fork, rename and delete sessions.

use super::draft::{save_draft, take_draft};
use crate::protocol::{Command, ForkUntil, HostRequest, Query, RunningState, SessionId, TaskId};
use crate::text;
use crate::tui::approval::{DeletionDialog, deletion_dialog};
use crate::tui::interface::{ExitReason, SessionTarget};
use crate::tui::layers::SessionList;
use crate::tui::model::{Activity, UiEffect, UiModel};

/// Maximum length of a session title, in characters.
const TITLE_CHARS: usize = 80;

/// Opens the session list and requests its contents.
pub(crate) fn open(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if !model.composer.is_empty() {
        take_draft(model, now, effects);
    }
    let list = SessionList::new(model.info.session.clone(), &model.screen.glyphs);
    show(model, list, effects);
}

/// Opens the session list as the only view, so the user can choose which session to open.
pub(crate) fn choose(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    model.startup.is_session_chooser = true;
    let list = SessionList::alone(model.info.session.clone(), &model.screen.glyphs);
    show(model, list, effects);
}

fn show(model: &mut UiModel, list: SessionList, effects: &mut Vec<UiEffect>) {
    model.layers.open(list);
    request_list(model, effects);
}

/// Requests the sessions that match the list's filter, if the list is open.
pub(super) fn request_list(model: &UiModel, effects: &mut Vec<UiEffect>) {
    if let Some(list) = model.layers.find::<SessionList>() {
        let words = list.filter().to_owned();
        query(effects, HostRequest::Sessions { words, all: list.all, archived: list.archived });
    }
}

pub(super) fn query(effects: &mut Vec<UiEffect>, what: HostRequest) {
    effects.push(UiEffect::Ask(Query::LookUp(what)));
}

/// Returns whether the user can switch to another session, which is only possible while no task or command is running.
/// If not, shows a notice.
pub(super) fn may_leave(model: &mut UiModel, name: &str, now: u64) -> bool {
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

/// Handles `/new` by switching to a new session. The user can resume the current session later.
pub(crate) fn new(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if may_leave(model, "/new", now) {
        take_draft(model, now, effects);
        leave(model, SessionTarget::New, effects);
    }
}

pub(super) fn leave(model: &mut UiModel, next: SessionTarget, effects: &mut Vec<UiEffect>) {
    save_draft(model, effects);
    effects.push(UiEffect::Send(Command::Quit));
    effects.push(UiEffect::Exit(ExitReason::Open(next)));
}

/// Resumes a session that the user named or chose from the list.
pub(super) fn resume(model: &mut UiModel, id: SessionId, now: u64, effects: &mut Vec<UiEffect>) {
    if model.info.session.as_ref() == Some(&id) {
        model.layers.close::<SessionList>();
        return model.show_toast("this session is already open", now);
    }
    if may_leave(model, "/resume", now) {
        leave(model, SessionTarget::Session(id), effects);
    }
}

/// Handles `/resume`, `/resume ID` and `/resume WORDS`.
pub(crate) fn resume_by_id(model: &mut UiModel, id: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if id.is_empty() {
        return open(model, now, effects);
    }
    let looks_like_one = (6..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if looks_like_one {
        take_draft(model, now, effects);
        return resume(model, SessionId::new(id.to_ascii_lowercase()), now, effects);
    }
    take_draft(model, now, effects);
    let list = SessionList::new(model.info.session.clone(), &model.screen.glyphs).with_filter(id);
    show(model, list, effects);
}

/// Handles `/fork` by copying the conversation into a new session.
pub(crate) fn fork(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(session_id) = has_words(model, "/fork", now) else { return };
    if may_leave(model, "/fork", now) {
        take_draft(model, now, effects);
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::End });
    }
}

/// Forks the session just before a prompt, as chosen in the rewind dialog. The current session does not change.
pub(super) fn fork_before(model: &mut UiModel, task_id: TaskId, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(session_id) = has_words(model, "/fork", now) else { return };
    if may_leave(model, "the fork", now) {
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::Prompt { task_id } });
    }
}

/// Handles `/rename TITLE`.
pub(crate) fn rename(model: &mut UiModel, title: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect();
    if title.is_empty() {
        return model.show_toast("missing title: `/rename Validate the name`", now);
    }
    let Some(session_id) = has_words(model, "/rename", now) else { return };
    take_draft(model, now, effects);
    query(effects, HostRequest::Rename { session_id, title });
}

pub(super) fn has_words(model: &mut UiModel, name: &str, now: u64) -> Option<SessionId> {
    if model.info.session.is_none() {
        model.show_toast(format!("this session has no messages yet, so {name} is not available"), now);
    }
    model.info.session.clone()
}

/// Opens the session chosen from the list. If a dialog is asking whether to delete that session, focuses the dialog
/// instead.
pub(super) fn open_chosen(model: &mut UiModel, id: SessionId, now: u64, effects: &mut Vec<UiEffect>) {
    if model.dialogs.iter().any(|panel| panel.kind.find::<DeletionDialog>().is_some_and(|deletion| deletion.session == id)) {
        model.dialogs.open_current(model.keys.last_text);
        return;
    }
    resume(model, id, now, effects);
}

/// Forks the session that is highlighted in the list.
pub(super) fn fork_chosen(model: &mut UiModel, session_id: SessionId, now: u64, effects: &mut Vec<UiEffect>) {
    if may_leave(model, "the fork", now) {
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::End });
    }
}

/// Asks whether to delete the session with this ID and title.
pub(super) fn ask_to_delete(model: &mut UiModel, id: SessionId, title: &str) {
    let last_text = model.keys.last_text;
    model.dialogs.forget(|panel| panel.kind.is::<DeletionDialog>(), last_text);
    model.dialogs.add(deletion_dialog(id, title), false, last_text);
    model.dialogs.focus(model.dialogs.len() - 1, last_text);
}

/// Adds text that was typed into a dialog in front of the session list to the list's filter. Returns `false` if the
/// list is not open.
pub(crate) fn add_to_filter(model: &mut UiModel, words: &str) -> bool {
    let Some(list) = model.layers.find_mut::<SessionList>() else { return false };
    list.insert_typed_elsewhere(words);
    true
}

/// Requests the sessions again if text typed elsewhere has changed the list's filter.
pub(crate) fn refresh_if_filter_changed(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    if model.layers.find_mut::<SessionList>().is_some_and(SessionList::take_stale) {
        request_list(model, effects);
    }
}

/// Deletes a session once the user has confirmed.
pub(crate) fn forget(id: SessionId, effects: &mut Vec<UiEffect>) {
    query(effects, HostRequest::Delete { session_id: id });
}
