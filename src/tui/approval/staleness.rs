//! Approval prompts for files that have changed on disk. The change that such a prompt shows can no longer be applied,
//! so aye requests an updated proposal when the user wants to see it. An open prompt keeps its content, but its choices
//! change.

use super::disk_state::{ProposalFreshness, Staleness, is_awaited};
use super::note::CHANGED;
use super::rule_choice::RuleChoice;
use super::{Approval, ApprovalId, Body, ChoiceAction, Confirm, Dialog, DialogStack, choices};

const NOTHING_DONE: &str = "Nothing was written. The edit was re-applied to the current file; \
                            review the new diff.";

/// Creates the prompt for an approval. If the proposal was updated, the prompt shows a notice first.
pub(crate) fn approval_dialog(approval: Approval) -> Dialog {
    let is_renewed = approval.amendable.renewed;
    let mut panel = Dialog::approval(approval);
    if let Some(prompt) = panel.kind.prompt_mut().filter(|_| is_renewed) {
        prompt.disk.staleness = Staleness::Renewed;
        panel.facts.clear();
        panel.body = Body::from_text(format!("{CHANGED}\n{NOTHING_DONE}"));
        panel.set_choices(choices::choices_if_outdated(Confirm::Letter));
    }
    panel
}

/// Shows the updated proposal if it is already available. Otherwise returns the ID of the approval for which an updated
/// proposal must be requested.
fn show_new(panel: &mut Dialog) -> Option<ApprovalId> {
    let prompt = panel.kind.prompt()?;
    match &prompt.disk.staleness {
        Staleness::Renewed => {
            let (ends, changed) = (prompt.ends, prompt.disk.changed);
            let mut shown = Dialog::approval(prompt.approval.clone());
            if let Some(prompt) = shown.kind.prompt_mut() {
                (prompt.ends, prompt.disk.changed) = (ends, changed);
            }
            shown.view.height = panel.view.height;
            *panel = Dialog { number: panel.number, came: panel.came, ..shown };
            None
        }
        Staleness::Outdated { .. } => {
            let id = prompt.approval.approval_id.clone();
            await_new(panel);
            Some(id)
        }
        Staleness::AsShown | Staleness::Awaited => None,
    }
}

fn await_new(panel: &mut Dialog) {
    if let Some(prompt) = panel.kind.prompt_mut() {
        prompt.disk.staleness = Staleness::Awaited;
        panel.choices = choices::choices_if_awaited();
    }
}

/// Updates the choices to match the state of the file on disk, unless a field is open. Returns whether the choices
/// changed.
fn fit_disk(panel: &mut Dialog) -> bool {
    if panel.visible().has_field() {
        return false;
    }
    let Some(ProposalFreshness { staleness, changed }) = panel.kind.prompt_mut().map(|prompt| &mut prompt.disk) else {
        return false;
    };
    match (&mut *staleness, *changed) {
        (Staleness::AsShown, true) => {
            let outdated = choices::choices_if_outdated(Confirm::Letter);
            let views =
                panel.choices.iter().filter(|choice| matches!(choice.act, ChoiceAction::View | ChoiceAction::Wrap)).cloned();
            let outdated = outdated.into_iter().chain(views).collect();
            *staleness = Staleness::Outdated { before: std::mem::replace(&mut panel.choices, outdated) };
            // An outdated prompt cannot be answered with a rule.
            panel.front.take_if(|front| front.kind.is::<RuleChoice>());
        }
        (Staleness::Outdated { before }, false) => {
            panel.choices = std::mem::take(before);
            *staleness = Staleness::AsShown;
            panel.show_hunks();
        }
        (Staleness::AsShown, false) | (Staleness::Outdated { .. }, true) | (Staleness::Renewed | Staleness::Awaited, _) => {
            return false;
        }
    }
    true
}

impl DialogStack {
    /// Records whether the file on disk differs from the content on which an approval's change is based.
    pub(crate) fn set_outdated(&mut self, id: &ApprovalId, outdated: bool) {
        let mut prompts = self.list.iter_mut().filter_map(|panel| panel.kind.prompt_mut());
        if let Some(prompt) = prompts.find(|prompt| prompt.approval.approval_id == *id) {
            prompt.disk.changed = outdated;
        }
    }

    /// Updates every prompt's choices to match the file on disk, and rearms the current prompt if its choices changed.
    pub(super) fn fit_disk(&mut self, now: u64) {
        for at in 0..self.list.len() {
            if fit_disk(&mut self.list[at]) && at == self.current {
                self.rearm(Some(now));
            }
        }
    }

    /// Shows the current prompt's updated proposal. If it is not available yet, returns the ID of the approval for
    /// which it must be requested.
    pub(crate) fn show_new(&mut self, last_text: Option<u64>) -> Option<ApprovalId> {
        let id = show_new(self.list.get_mut(self.current)?);
        self.rearm(last_text);
        id
    }

    /// Marks a prompt as waiting for an updated proposal, even if the user has not requested one.
    pub(crate) fn expect_replacement(&mut self, id: &ApprovalId, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| panel.is_for(id)) else { return };
        if !is_awaited(&self.list[at]) {
            await_new(&mut self.list[at]);
            if at == self.current {
                self.rearm(last_text);
            }
        }
    }

    /// Replaces the prompt that was waiting for this updated approval. Returns `false` if no prompt was.
    pub(crate) fn replace_pending(&mut self, approval: &Approval, last_text: Option<u64>) -> bool {
        let waits = |panel: &Dialog| is_awaited(panel) && panel.call() == Some(&approval.tool_call_id);
        let Some(at) = self.list.iter().position(waits) else { return false };
        let is_open = self.open && at == self.current;
        if is_open {
            self.take_unfinished_input();
        }
        let height = self.list[at].view.height;
        self.list[at] = Dialog::approval(approval.clone());
        self.list[at].view.height = height;
        if is_open {
            self.arm(last_text);
        }
        true
    }
}
