//! Approval prompt for the effects of a command that ran in a copy. The user can leave out individual changes.

use super::body::Body;
use super::call_dialog::CallDialog;
use super::choices::{Choice, ChoiceAction, choices_for_effects};
use super::dialog_kind::DialogKind;
use super::effect_order::arrange_effects;
use super::hunks::{HunkSelection, Hunks};
use super::note::Verb;
use super::prompt::CallPrompt;
use super::{DialogAnswer, title};
use crate::protocol::{Approval, Decision, Effects, Risk};
use crate::tui::typeahead_guard::Confirm;

pub(crate) struct EffectsDialog {
    prompt: CallPrompt,
    selection: Option<HunkSelection>,
}

impl EffectsDialog {
    pub(super) fn new(approval: Approval) -> Self {
        let approval = arrange_effects(approval);
        let selection = Hunks::for_effects(&approval).map(HunkSelection::new);
        Self { prompt: CallPrompt::new(approval), selection }
    }
}

impl DialogKind for EffectsDialog {
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

    fn name(&self, title: &str, _counts: Option<&str>) -> String {
        self.prompt.command_name().unwrap_or_else(|| title.to_owned())
    }
}

impl CallDialog for EffectsDialog {
    fn call_prompt(&self) -> &CallPrompt {
        &self.prompt
    }

    fn title(&self) -> String {
        self.prompt.approval.effects.as_deref().map(title::of_effects).unwrap_or_default()
    }

    /// Approving a run that changed nothing only gives its output to the model, whatever the command could have done.
    fn risk(&self) -> (Risk, bool) {
        let approval = &self.prompt.approval;
        let does_nothing = |effects: &Effects| effects.is_empty() && effects.refused.is_empty() && effects.conflict.is_none();
        match approval.effects.as_deref() {
            Some(effects) if does_nothing(effects) => (Risk::Low, false),
            Some(_) | None => (approval.risk_level, approval.critical),
        }
    }

    fn body(&self) -> Body {
        Body::for_effects(&self.prompt.approval)
    }

    fn choices(&self, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
        choices_for_effects(&self.prompt.approval, verb, confirm)
    }
}
