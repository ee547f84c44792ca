//! Approval prompt for a plan proposed by the model, with a field in which to edit the plan.

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

/// Progress of editing the plan in its prompt.
enum PlanEditing {
    Closed,
    /// The plan's text has been requested from the session.
    Requested,
    /// The dialog lost keyboard focus before the requested text arrived.
    Cancelled,
    /// The field is open. The value is the plan's text as proposed.
    Open(String),
}

impl PlanDialog {
    pub(super) fn new(approval: Approval) -> Self {
        Self { prompt: CallPrompt::new(approval), editing: PlanEditing::Closed }
    }

    /// Records that the plan's text has been requested so that the user can edit it in this dialog.
    pub(crate) fn await_text(&mut self) {
        self.editing = PlanEditing::Requested;
    }

    /// Opens the field with the plan's text, provided that the dialog `is_shown` and the user still wants to edit it.
    /// Returns whether the text had been requested for this dialog.
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

    /// Ends editing and returns the plan's text as proposed, or an empty string if the field was not open.
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
