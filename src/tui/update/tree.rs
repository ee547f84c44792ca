//! The `/tree` list: branches of this session, to continue one of them.

use super::draft::take_draft;
use super::sessions::{has_words, may_leave, query, resume};
use crate::protocol::{Branch, ForkUntil, HostRequest};
use crate::tui::model::{Effect, Model};
use crate::tui::picker::PickerResult;
use crate::tui::tree::Tree;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) fn open(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    let Some(session_id) = has_words(model, "/tree", now) else { return };
    take_draft(model, now, effects);
    model.overlays.make_room();
    model.overlays.tree = Some(Tree::new());
    query(effects, HostRequest::Branches { session_id });
}

pub(crate) fn set_branches(model: &mut Model, branches: Vec<Branch>) {
    if let Some(tree) = &mut model.overlays.tree {
        tree.set_branches(branches, model.info.session.as_ref(), &model.screen.glyphs);
    }
}

/// Handles a key of the list. Returns whether the list is open.
pub(crate) fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let Some(tree) = &mut model.overlays.tree else { return false };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    model.keys.last_key = Some(now);
    model.toast = None;
    match tree.picker.key(key) {
        PickerResult::Nothing | PickerResult::Refused(_) => {}
        PickerResult::Closed => model.overlays.tree = None,
        PickerResult::Chosen(chosen) => {
            let Some(branch) = tree.find_branch(&chosen).cloned() else { return true };
            open_branch(model, branch, now, effects);
        }
        PickerResult::Other => match key.code {
            KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
            // Pending dialogs come first.
            KeyCode::Tab if waits => model.dialogs.open_current(model.keys.last_text),
            _ => {}
        },
    }
    true
}

/// Opens a session; an undone branch is forked instead, because undone content is not restored automatically.
pub(crate) fn open_branch(model: &mut Model, branch: Branch, now: u64, effects: &mut Vec<Effect>) {
    let Branch { session_id, records, .. } = branch;
    if records.is_none() && model.info.session.as_ref() == Some(&session_id) {
        model.overlays.tree = None;
        return model.show_toast("this branch is already open", now);
    }
    let Some(count) = records else { return resume(model, session_id, now, effects) };
    if may_leave(model, "/tree", now) {
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::Records { count } });
    }
}
