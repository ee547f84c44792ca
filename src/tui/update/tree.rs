//! List of the session's branches (`/tree`), from which the user can continue a branch.

use super::draft::take_draft;
use super::sessions::{has_words, may_leave, query, resume};
use crate::protocol::{Branch, ForkUntil, HostRequest};
use crate::tui::layers::BranchList;
use crate::tui::model::{UiEffect, UiModel};

pub(crate) fn open(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(session_id) = has_words(model, "/tree", now) else { return };
    take_draft(model, now, effects);
    model.layers.open(BranchList::new());
    query(effects, HostRequest::Branches { session_id });
}

pub(crate) fn set_branches(model: &mut UiModel, branches: Vec<Branch>) {
    if let Some(list) = model.layers.find_mut::<BranchList>() {
        list.set_branches(branches, model.info.session.as_ref(), &model.screen.glyphs);
    }
}

/// Opens a branch. A branch that was undone is forked first, because undone content is never restored automatically.
pub(crate) fn open_branch(model: &mut UiModel, branch: Branch, now: u64, effects: &mut Vec<UiEffect>) {
    let Branch { session_id, records, .. } = branch;
    if records.is_none() && model.info.session.as_ref() == Some(&session_id) {
        model.layers.close::<BranchList>();
        return model.show_toast("this branch is already open", now);
    }
    let Some(count) = records else { return resume(model, session_id, now, effects) };
    if may_leave(model, "/tree", now) {
        model.show_toast("forking the session", now);
        query(effects, HostRequest::Fork { session_id, until: ForkUntil::Records { count } });
    }
}
