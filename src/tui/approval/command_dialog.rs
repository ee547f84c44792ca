//! Approval prompt for a command that has not run yet: the command line, its parts, and a field in which to edit it.

use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, choices_for_call};
use super::dialog_kind::DialogKind;
use super::note::Verb;
use super::prompt::CallPrompt;
use super::title;
use crate::protocol::Approval;
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct CommandDialog {
    prompt: CallPrompt,
}

impl CommandDialog {
    pub(super) fn new(approval: Approval) -> Self {
        Self { prompt: CallPrompt::new(approval) }
    }
}

impl DialogKind for CommandDialog {
    fn prompt(&self) -> Option<&CallPrompt> {
        Some(&self.prompt)
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        Some(&mut self.prompt)
    }

    fn name(&self, title: &str, _counts: Option<&str>) -> String {
        self.prompt.command_name().unwrap_or_else(|| title.to_owned())
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
