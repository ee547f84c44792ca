//! A question whose file changed on disk while it was open: what was shown cannot be done any more, and is asked about anew only
//! once the person wants to see it.

use super::{Approval, Body, Confirm, Panel, Question, choices};

/// Stands in the body, which every size of screen shows.
pub const CHANGED: &str = "⚠ changed on disk since the model read it";

const NOTHING_DONE: &str = "Nothing was written. The same change was made anew for what stands there now: \
                            look at it, and then decide.";

impl Panel {
    /// As it is asked first.
    pub fn asked(approval: Approval) -> Self {
        if !approval.amendable.renewed {
            return Self::approval(approval);
        }
        let whole = Self::approval(approval.clone());
        let body = Body::words(format!("{CHANGED}\n{NOTHING_DONE}"));
        let (title, reason) = (whole.title, whole.reason);
        let panel = Self::new(Question::Approval(Box::new(approval)), title, reason, choices::of_stale(Confirm::Letter), body);
        let (risk_words, risk, critical) = (whole.risk_words, whole.risk, whole.critical);
        Self { risk_words, risk, critical, stale: true, ..panel }
    }

    /// The question about the new proposal.
    pub(super) fn show_new(&mut self) {
        let Question::Approval(approval) = &self.question else { return };
        if !self.stale {
            return;
        }
        let (number, came, ends, height) = (self.number, self.came, self.ends, self.height);
        *self = Self { number, came, ends, height, ..Self::approval((**approval).clone()) };
    }
}
