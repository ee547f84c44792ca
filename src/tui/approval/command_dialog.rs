//! Approval prompt for a command that has not run yet: its line, its parts, and the field to edit it.

use super::amend_field::AmendField;
use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, ChoiceAction, choices_for_call};
use super::dialog_kind::DialogKind;
use super::note::Verb;
use super::pager::Pager;
use super::prompt::CallPrompt;
use super::{Dialog, DialogAnswer, title};
use crate::protocol::Approval;
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct CommandDialog {
    prompt: CallPrompt,
    amend_field: Option<AmendField>,
}

impl CommandDialog {
    pub(super) fn new(approval: Approval) -> Self {
        Self { prompt: CallPrompt::new(approval), amend_field: None }
    }
}

impl CallDialog for CommandDialog {
    fn call_prompt(&self) -> &CallPrompt {
        &self.prompt
    }

    fn title(&self) -> String {
        title::of_command(&self.prompt.approval)
    }

    fn body(&self) -> Body {
        Body::for_command(&self.prompt.approval, title::with_agent(&self.prompt.approval, self.title()))
    }

    fn choices(&self, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
        choices_for_call(&self.prompt.approval, verb, confirm)
    }
}

impl DialogKind for CommandDialog {
    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        self.prompt.answer(act, reason)
    }

    fn prompt(&self) -> Option<&CallPrompt> {
        Some(&self.prompt)
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        Some(&mut self.prompt)
    }

    fn amend_field(&self) -> Option<&AmendField> {
        self.amend_field.as_ref()
    }

    fn amend_field_mut(&mut self) -> Option<&mut Option<AmendField>> {
        Some(&mut self.amend_field)
    }

    fn details(&self, choices: &[Choice]) -> Option<Dialog> {
        Pager::rules(&self.prompt.approval, choices).panel()
    }

    fn identity(&self) -> String {
        self.prompt.identity()
    }

    fn name(&self, title: &str, _counts: Option<&str>) -> String {
        self.prompt.command_name().unwrap_or_else(|| title.to_owned())
    }
}
