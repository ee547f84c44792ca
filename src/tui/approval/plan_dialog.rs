//! Approval prompt for a plan of the model.

use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, ChoiceAction, choices_for_plan};
use super::dialog_kind::DialogKind;
use super::note::Verb;
use super::pager::Pager;
use super::prompt::Prompt;
use super::{Answer, Dialog, title};
use crate::protocol::{Approval, Decision};
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct PlanDialog {
    prompt: Prompt,
}

impl PlanDialog {
    pub(super) fn new(approval: Approval) -> Self {
        Self { prompt: Prompt::new(approval) }
    }
}

impl CallDialog for PlanDialog {
    fn call_prompt(&self) -> &Prompt {
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

impl DialogKind for PlanDialog {
    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<Answer> {
        match act {
            ChoiceAction::ApproveClean => self.prompt.decide(Decision::ApprovedInCleanContext),
            act => self.prompt.answer(act, reason),
        }
    }

    fn prompt(&self) -> Option<&Prompt> {
        Some(&self.prompt)
    }

    fn prompt_mut(&mut self) -> Option<&mut Prompt> {
        Some(&mut self.prompt)
    }

    fn details(&self, choices: &[Choice]) -> Option<Dialog> {
        Pager::rules(&self.prompt.approval, choices).panel()
    }

    fn identity(&self) -> String {
        self.prompt.identity()
    }
}
