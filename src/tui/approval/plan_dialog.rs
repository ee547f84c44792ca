//! Approval prompt for a plan from the model.

use super::amend_field::{AmendField, AmendTarget};
use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, ChoiceAction, choices_for_plan};
use super::dialog_kind::DialogKind;
use super::note::Verb;
use super::prompt::CallPrompt;
use super::{DialogAnswer, title};
use crate::protocol::{Approval, Decision};
use crate::tui::composer::Lines;
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct PlanDialog {
    prompt: CallPrompt,
    editing: PlanEditing,
}

/// State of editing a plan in its prompt.
enum PlanEditing {
    Closed,
    /// The session was asked for the text of the plan.
    Requested,
    /// The dialog lost keyboard focus before the text arrived.
    Cancelled,
    /// The field is open with this text.
    Open(String),
}

impl PlanDialog {
    pub(super) fn new(approval: Approval) -> Self {
        Self { prompt: CallPrompt::new(approval), editing: PlanEditing::Closed }
    }

    /// Records that the text of the plan was requested for editing in this dialog.
    pub(crate) fn await_text(&mut self) {
        self.editing = PlanEditing::Requested;
    }

    /// Opens the field with the text of the plan, if all of it can be shown. Returns whether the text was requested.
    pub(crate) fn open_field(&mut self, text: &str, is_shown: bool) -> bool {
        let is_wanted = match self.editing {
            PlanEditing::Requested => true,
            PlanEditing::Cancelled => false,
            PlanEditing::Closed | PlanEditing::Open(_) => return false,
        };
        self.editing = PlanEditing::Closed;
        if is_wanted && is_shown {
            self.editing = PlanEditing::Open(text.to_owned());
            let lines = Lines::new(text.strip_suffix('\n').unwrap_or(text));
            self.prompt.amend_field = Some(AmendField { lines, what: AmendTarget::Plan });
        }
        true
    }

    /// Closes the edit, and returns the text as it was proposed.
    pub(crate) fn take_proposed(&mut self) -> String {
        match std::mem::replace(&mut self.editing, PlanEditing::Closed) {
            PlanEditing::Open(text) => text,
            PlanEditing::Closed | PlanEditing::Requested | PlanEditing::Cancelled => String::new(),
        }
    }
}

impl DialogKind for PlanDialog {
    fn prompt(&self) -> Option<&CallPrompt> {
        Some(&self.prompt)
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        Some(&mut self.prompt)
    }

    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        match act {
            ChoiceAction::ApproveClean => self.prompt.decide(Decision::ApprovedInCleanContext),
            act => self.prompt.answer(act, reason),
        }
    }

    fn leave_field(&mut self) {
        self.editing = match self.editing {
            PlanEditing::Requested | PlanEditing::Cancelled => PlanEditing::Cancelled,
            PlanEditing::Closed | PlanEditing::Open(_) => PlanEditing::Closed,
        };
    }
}

impl CallDialog for PlanDialog {
    fn call_prompt(&self) -> &CallPrompt {
        &self.prompt
    }

    fn title(&self) -> String {
        title::summary(&self.prompt.approval)
    }

    fn body(&self) -> Body {
        Body::for_plan(&self.prompt.approval)
    }

    fn choices(&self, _verb: &Verb, confirm: Confirm) -> Vec<Choice> {
        choices_for_plan(&self.prompt.approval, confirm)
    }
}
