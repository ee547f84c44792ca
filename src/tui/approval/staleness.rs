//! A question whose file is another one on disk by now: what was shown cannot be done any more, and is asked about anew only once the
//! person wants to see it. Where that is told while the question stands, it stays as it is, with other choices.

use super::{Approval, ApprovalId, Body, Choice, ChoiceAction, Confirm, Dialog, DialogStack, Question, choices};

/// Stands in the body of what was made anew, which every size of screen shows, and in the head of what was not.
pub const CHANGED: &str = "⚠ changed on disk since the model read it";
/// The same where the head has no more room.
pub const CHANGED_SHORT: &str = "⚠ changed on disk";
pub const CHANGED_SHORTEST: &str = "⚠ changed";

const NOTHING_DONE: &str = "Nothing was written. The edit was re-applied to the current file; \
                            review the new diff.";

/// How what a question shows stands to what is on disk.
#[derive(Debug, Default)]
pub enum Staleness {
    /// What is shown is what would be done.
    #[default]
    AsShown,
    /// It was made anew when it was to be done, and nobody looked at it yet.
    MadeAnew,
    /// It cannot be done; the choices of before come back where the file does.
    Outdated { before: Vec<Choice> },
    /// The person wants to see it made anew, and that is on its way.
    Awaited,
}

impl Dialog {
    /// As it is asked first.
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

    /// Whether its head says that the file is another one.
    pub fn says_changed(&self) -> bool {
        self.changed_on_disk || matches!(self.disk, Staleness::Outdated { .. } | Staleness::Awaited)
    }

    /// Whether there is nothing to answer until it is made anew.
    pub fn is_awaited(&self) -> bool {
        matches!(self.disk, Staleness::Awaited)
    }

    /// The question about the new proposal: whether it was there already, else whom it is to be asked for.
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

    /// Gives it the choices that fit what is on disk, but takes no field away that is being typed into; whether they are others now.
    fn fit_disk(&mut self) -> bool {
        if self.shown().has_field() {
            return false;
        }
        match (&mut self.disk, self.changed_on_disk) {
            (Staleness::AsShown, true) => {
                // A rule is no answer to it any more.
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
    /// What a question would change is another file on disk by now, or is again the one that is shown.
    pub fn outdated(&mut self, id: &ApprovalId, outdated: bool) {
        if let Some(panel) = self.list.iter_mut().find(|panel| panel.is_of(id)) {
            panel.changed_on_disk = outdated;
        }
    }

    /// The choices of each question are those that fit what is on disk; of the open one they arm anew.
    pub(super) fn fit_disk(&mut self, now: u64) {
        for at in 0..self.list.len() {
            if self.list[at].fit_disk() && at == self.current {
                self.arm_anew(Some(now));
            }
        }
    }

    /// The new proposal, in the place of the question about what is not there any more; the question that it is to be asked for in,
    /// where it is not there yet.
    pub fn show_new(&mut self, last_text: Option<u64>) -> Option<ApprovalId> {
        let id = self.list.get_mut(self.current)?.show_new();
        self.arm_anew(last_text);
        id
    }

    /// It is being made anew, whoever wanted that.
    pub fn expect_replacement(&mut self, id: &ApprovalId, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| panel.is_of(id)) else { return };
        if !matches!(self.list[at].disk, Staleness::Awaited) {
            self.list[at].await_new();
            if at == self.current {
                self.arm_anew(last_text);
            }
        }
    }

    /// What was awaited takes the place of the question that waited for it; whether there was one.
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
