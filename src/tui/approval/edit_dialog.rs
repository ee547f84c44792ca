//! Approval prompt for a file change: the diff, its layout, and the hunks that the user can select and edit.

use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, ChoiceAction, choices_for_call};
use super::dialog_kind::DialogKind;
use super::diff_layout::DiffLayout;
use super::hunks::{HunkSelection, Hunks};
use super::note::Verb;
use super::prompt::CallPrompt;
use super::{DialogAnswer, title};
use crate::protocol::{Approval, Decision};
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct EditDialog {
    prompt: CallPrompt,
    selection: Option<HunkSelection>,
    layout: DiffLayout,
}

impl EditDialog {
    pub(super) fn new(approval: Approval) -> Self {
        let selection = Hunks::for_edit(&approval).map(HunkSelection::new);
        Self { prompt: CallPrompt::new(approval), selection, layout: DiffLayout::default() }
    }
}

impl DialogKind for EditDialog {
    fn prompt(&self) -> Option<&CallPrompt> {
        Some(&self.prompt)
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        Some(&mut self.prompt)
    }

    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        match (act, self.selection.as_ref().and_then(|selection| selection.hunks.amendment())) {
            (ChoiceAction::Approve, Some(amendment)) => self.prompt.decide(Decision::Amended { amendment }),
            (act, _) => self.prompt.answer(act, reason),
        }
    }

    fn selection(&self) -> Option<&HunkSelection> {
        self.selection.as_ref().filter(|_| !self.prompt.disk.is_unseen())
    }

    fn selection_mut(&mut self) -> Option<&mut HunkSelection> {
        self.selection.as_mut().filter(|_| !self.prompt.disk.is_unseen())
    }

    fn layout(&self) -> DiffLayout {
        self.layout
    }

    fn layout_mut(&mut self) -> Option<&mut DiffLayout> {
        Some(&mut self.layout)
    }

    fn name(&self, title: &str, counts: Option<&str>) -> String {
        counts.map_or_else(|| title.to_owned(), |counts| format!("{title} {counts}"))
    }
}

impl CallDialog for EditDialog {
    fn call_prompt(&self) -> &CallPrompt {
        &self.prompt
    }

    fn title(&self) -> String {
        title::summary(&self.prompt.approval)
    }

    fn body(&self) -> Body {
        Body::for_edit(&self.prompt.approval)
    }

    fn choices(&self, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
        choices_for_call(&self.prompt.approval, verb, confirm)
    }
}
