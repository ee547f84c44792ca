//! Approval prompts for a file that has changed on disk since. The shown change can no longer be applied; an updated
//! proposal is requested once the user wants to see it. A prompt that is open keeps its content and gets other choices.

use super::note::CHANGED;
use super::{Approval, ApprovalId, Body, Choice, ChoiceAction, Confirm, Dialog, DialogStack, Question, choices};

const NOTHING_DONE: &str = "Nothing was written. The edit was re-applied to the current file; \
                            review the new diff.";

/// Relation between the shown change and the file on disk.
#[derive(Debug, Default)]
pub enum Staleness {
    /// The shown change is the one that would be applied.
    #[default]
    AsShown,
    /// The change was updated just before it was to be applied, and has not been shown yet.
    MadeAnew,
    /// The change cannot be applied; the former choices come back if the file does.
    Outdated { before: Vec<Choice> },
    /// The user requested the updated proposal, which has not arrived yet.
    Awaited,
}

impl Dialog {
    /// Creates the first dialog of an approval, with a notice if its proposal was updated.
    pub fn asked(approval: Approval) -> Self {
        if !approval.amendable.renewed {
            return Self::approval(approval);
        }
        let whole = Self::approval(approval.clone());
        let body = Body::words(format!("{CHANGED}\n{NOTHING_DONE}"));
        let (title, reason) = (whole.title, whole.reason);
        let panel = Self::new(Question::Approval(Box::new(approval)), title, reason, choices::of_outdated(Confirm::Letter), body);
        let (risk_words, risk, critical) = (whole.risk_words, whole.risk, whole.critical);
        Self { risk_words, risk, critical, disk: Staleness::MadeAnew, ..panel }
    }

    /// Returns whether the head says that the file has changed.
    pub fn says_changed(&self) -> bool {
        self.changed_on_disk || matches!(self.disk, Staleness::Outdated { .. } | Staleness::Awaited)
    }

    /// Returns whether it waits for the updated proposal.
    pub fn is_awaited(&self) -> bool {
        matches!(self.disk, Staleness::Awaited)
    }

    /// Shows the updated proposal if it is known. Returns the approval for which it must be requested otherwise.
    fn show_new(&mut self) -> Option<ApprovalId> {
        let Question::Approval(approval) = &self.question else { return None };
        match &self.disk {
            Staleness::MadeAnew => {
                let Self { number, came, ends, changed_on_disk, height, .. } = *self;
                *self = Self { number, came, ends, changed_on_disk, height, ..Self::approval((**approval).clone()) };
                None
            }
            Staleness::Outdated { .. } => {
                let id = approval.approval_id.clone();
                self.await_new();
                Some(id)
            }
            Staleness::AsShown | Staleness::Awaited => None,
        }
    }

    fn await_new(&mut self) {
        self.disk = Staleness::Awaited;
        self.choices = choices::of_awaited();
    }

    /// Updates the choices to the state on disk, but not while a field is open. Returns whether they changed.
    fn fit_disk(&mut self) -> bool {
        if self.shown().has_field() {
            return false;
        }
        match (&mut self.disk, self.changed_on_disk) {
            (Staleness::AsShown, true) => {
                // A rule cannot answer an outdated prompt.
                self.front.take_if(|front| matches!(front.question, Question::Keep(_)));
                let outdated = choices::of_outdated(Confirm::Letter);
                let views =
                    self.choices.iter().filter(|choice| matches!(choice.act, ChoiceAction::View | ChoiceAction::Wrap)).cloned();
                let outdated = outdated.into_iter().chain(views).collect();
                self.disk = Staleness::Outdated { before: std::mem::replace(&mut self.choices, outdated) };
            }
            (Staleness::Outdated { before }, false) => {
                self.choices = std::mem::take(before);
                self.disk = Staleness::AsShown;
                self.show_hunks();
            }
            (Staleness::AsShown, false) | (Staleness::Outdated { .. }, true) | (Staleness::MadeAnew | Staleness::Awaited, _) => {
                return false;
            }
        }
        true
    }
}

impl DialogStack {
    /// Records that the file of an approval has changed on disk, or is the shown one again.
    pub fn outdated(&mut self, id: &ApprovalId, outdated: bool) {
        if let Some(panel) = self.list.iter_mut().find(|panel| panel.is_of(id)) {
            panel.changed_on_disk = outdated;
        }
    }

    /// Updates the choices of every prompt to the state on disk, and arms the open one again.
    pub(super) fn fit_disk(&mut self, now: u64) {
        for at in 0..self.list.len() {
            if self.list[at].fit_disk() && at == self.current {
                self.arm_anew(Some(now));
            }
        }
    }

    /// Shows the updated proposal of the open prompt. Returns the approval for which it must be requested.
    pub fn show_new(&mut self, last_text: Option<u64>) -> Option<ApprovalId> {
        let id = self.list.get_mut(self.current)?.show_new();
        self.arm_anew(last_text);
        id
    }

    /// Marks the prompt as waiting for an updated proposal, regardless of who requested it.
    pub fn expect_replacement(&mut self, id: &ApprovalId, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| panel.is_of(id)) else { return };
        if !matches!(self.list[at].disk, Staleness::Awaited) {
            self.list[at].await_new();
            if at == self.current {
                self.arm_anew(last_text);
            }
        }
    }

    /// Replaces the waiting prompt with the updated approval. Returns whether there was one.
    pub fn replace_pending(&mut self, approval: &Approval, last_text: Option<u64>) -> bool {
        let waits = |panel: &Dialog| matches!(panel.disk, Staleness::Awaited) && panel.call() == Some(&approval.tool_call_id);
        let Some(at) = self.list.iter().position(waits) else { return false };
        let is_open = self.open && at == self.current;
        if is_open {
            self.leave();
        }
        let height = self.list[at].height;
        self.list[at] = Dialog { height, ..Dialog::approval(approval.clone()) };
        if is_open {
            self.arm(last_text);
        }
        true
    }
}

impl Dialog {
    fn is_of(&self, id: &ApprovalId) -> bool {
        matches!(&self.question, Question::Approval(approval) if approval.approval_id == *id)
    }
}
