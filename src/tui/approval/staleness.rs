//! Approval prompts for a file that has changed on disk. The shown change can no longer be applied; an updated proposal
//! is requested once the user wants to see it. An open prompt keeps its content, but its choices change.

use super::disk_state::Staleness;
use super::note::CHANGED;
use super::{Approval, ApprovalId, Body, ChoiceAction, Confirm, Dialog, DialogStack, Question, choices};

const NOTHING_DONE: &str = "Nothing was written. The edit was re-applied to the current file; \
                            review the new diff.";

/// Creates the dialog of an approval, with a notice if its proposal was updated.
pub(crate) fn approval_dialog(approval: Approval) -> Dialog {
    if !approval.amendable.renewed {
        return Dialog::approval(approval);
    }
    let whole = Dialog::approval(approval.clone());
    let body = Body::from_text(format!("{CHANGED}\n{NOTHING_DONE}"));
    let (title, reason) = (whole.title, whole.reason);
    let panel =
        Dialog::new(Question::Approval(Box::new(approval)), title, reason, choices::choices_if_outdated(Confirm::Letter), body);
    let (risk_words, risk, critical) = (whole.risk_words, whole.risk, whole.critical);
    Dialog { risk_words, risk, critical, disk: Staleness::Renewed, ..panel }
}

/// Shows the updated proposal if it is available. Otherwise returns the approval for which it must be requested.
fn show_new(panel: &mut Dialog) -> Option<ApprovalId> {
    let Question::Approval(approval) = &panel.question else { return None };
    match &panel.disk {
        Staleness::Renewed => {
            let Dialog { number, came, ends, changed_on_disk, height, .. } = *panel;
            *panel = Dialog { number, came, ends, changed_on_disk, height, ..Dialog::approval((**approval).clone()) };
            None
        }
        Staleness::Outdated { .. } => {
            let id = approval.approval_id.clone();
            await_new(panel);
            Some(id)
        }
        Staleness::AsShown | Staleness::Awaited => None,
    }
}

fn await_new(panel: &mut Dialog) {
    panel.disk = Staleness::Awaited;
    panel.choices = choices::choices_if_awaited();
}

/// Updates the choices to match the state on disk, unless a field is open. Returns whether the choices changed.
fn fit_disk(panel: &mut Dialog) -> bool {
    if panel.visible().has_field() {
        return false;
    }
    match (&mut panel.disk, panel.changed_on_disk) {
        (Staleness::AsShown, true) => {
            // A rule cannot answer an outdated prompt.
            panel.front.take_if(|front| matches!(front.question, Question::Keep(_)));
            let outdated = choices::choices_if_outdated(Confirm::Letter);
            let views =
                panel.choices.iter().filter(|choice| matches!(choice.act, ChoiceAction::View | ChoiceAction::Wrap)).cloned();
            let outdated = outdated.into_iter().chain(views).collect();
            panel.disk = Staleness::Outdated { before: std::mem::replace(&mut panel.choices, outdated) };
        }
        (Staleness::Outdated { before }, false) => {
            panel.choices = std::mem::take(before);
            panel.disk = Staleness::AsShown;
            panel.show_hunks();
        }
        (Staleness::AsShown, false) | (Staleness::Outdated { .. }, true) | (Staleness::Renewed | Staleness::Awaited, _) => {
            return false;
        }
    }
    true
}

impl DialogStack {
    /// Records that the file of an approval has changed on disk, or matches the shown change again.
    pub(crate) fn set_outdated(&mut self, id: &ApprovalId, outdated: bool) {
        if let Some(panel) = self.list.iter_mut().find(|panel| is_of(panel, id)) {
            panel.changed_on_disk = outdated;
        }
    }

    /// Updates the choices of every prompt to match the state on disk, and arms the open prompt again.
    pub(super) fn fit_disk(&mut self, now: u64) {
        for at in 0..self.list.len() {
            if fit_disk(&mut self.list[at]) && at == self.current {
                self.rearm(Some(now));
            }
        }
    }

    /// Shows the updated proposal of the open prompt. Returns the approval for which it must be requested.
    pub(crate) fn show_new(&mut self, last_text: Option<u64>) -> Option<ApprovalId> {
        let id = show_new(self.list.get_mut(self.current)?);
        self.rearm(last_text);
        id
    }

    /// Marks the prompt as waiting for an updated proposal, even if the user did not request one.
    pub(crate) fn expect_replacement(&mut self, id: &ApprovalId, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| is_of(panel, id)) else { return };
        if !matches!(self.list[at].disk, Staleness::Awaited) {
            await_new(&mut self.list[at]);
            if at == self.current {
                self.rearm(last_text);
            }
        }
    }

    /// Replaces the waiting prompt with the updated approval. Returns whether there was one.
    pub(crate) fn replace_pending(&mut self, approval: &Approval, last_text: Option<u64>) -> bool {
        let waits = |panel: &Dialog| matches!(panel.disk, Staleness::Awaited) && panel.call() == Some(&approval.tool_call_id);
        let Some(at) = self.list.iter().position(waits) else { return false };
        let is_open = self.open && at == self.current;
        if is_open {
            self.take_unfinished_input();
        }
        let height = self.list[at].height;
        self.list[at] = Dialog { height, ..Dialog::approval(approval.clone()) };
        if is_open {
            self.arm(last_text);
        }
        true
    }
}

fn is_of(panel: &Dialog, id: &ApprovalId) -> bool {
    matches!(&panel.question, Question::Approval(approval) if approval.approval_id == *id)
}
