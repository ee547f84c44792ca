//! Requesting and displaying the changed files (`/diff`).

use super::draft::take_draft;
use crate::protocol::{ChangedFiles, Query, SessionQuery};
use crate::tui::interface::ModelAccess;
use crate::tui::layers::{ChangesView, Help};
use crate::tui::model::{UiEffect, UiModel};

pub(crate) fn request_changes(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    if model.info.model_access != Some(ModelAccess::Ready) {
        return model.show_toast("no changes: no session has started yet", now);
    }
    request(model, now, effects);
}

/// Requests the files that the session has changed.
pub(super) fn request(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    model.info.awaits_changes = true;
    model.show_toast("loading changes", now);
    effects.push(UiEffect::Ask(Query::Session(SessionQuery::ListChanges { task_id: None })));
}

/// Shows the changed files if the user requested them.
pub(crate) fn show(model: &mut UiModel, changed: ChangedFiles) {
    if !std::mem::take(&mut model.info.awaits_changes) {
        return;
    }
    model.toast = None;
    model.layers.close::<Help>();
    if let Some(open) = model.layers.find_mut::<ChangesView>() {
        return open.set_files(changed);
    }
    // A list that the user has since opened keeps keyboard focus.
    model.layers.insert_below(ChangesView::new(changed));
}
