//! Approval prompt for tool calls that have no more specific prompt. It shows the call's summary and paths.

use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, choices_for_call};
use super::dialog_kind::DialogKind;
use super::note::Verb;
use super::prompt::CallPrompt;
use super::title;
use crate::protocol::Approval;
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct ToolDialog {
    prompt: CallPrompt,
}

impl ToolDialog {
    pub(super) fn new(approval: Approval) -> Self {
        Self { prompt: CallPrompt::new(approval) }
    }
}

impl DialogKind for ToolDialog {
    fn prompt(&self) -> Option<&CallPrompt> {
        Some(&self.prompt)
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        Some(&mut self.prompt)
    }
}

impl CallDialog for ToolDialog {
    fn call_prompt(&self) -> &CallPrompt {
        &self.prompt
    }

    fn title(&self) -> String {
        title::summary(&self.prompt.approval)
    }

    fn body(&self) -> Body {
        Body::for_tool(&self.prompt.approval)
    }

    fn choices(&self, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
        choices_for_call(&self.prompt.approval, verb, confirm)
    }
}
