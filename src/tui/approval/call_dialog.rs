//! Interface of the approval prompts: the content that each kind computes from its approval, and what they share.

use super::amend_field::AmendField;
use super::body::Body;
use super::choices::{Choice, ChoiceAction};
use super::dialog_kind::DialogKind;
use super::diff_layout::DiffLayout;
use super::hunks::HunkSelection;
use super::note::Verb;
use super::pager::Pager;
use super::prompt::CallPrompt;
use super::title;
use super::{Dialog, DialogAnswer, reasons};
use crate::protocol::Risk;
use crate::text;
use crate::tui::typeahead_guard::Confirm;
use std::any::Any;

/// Approval prompt of a kind of call. Everything but the content has a default.
pub(super) trait CallDialog: Any {
    fn call_prompt(&self) -> &CallPrompt;

    fn call_prompt_mut(&mut self) -> &mut CallPrompt;

    /// Returns the effect of the call in one sentence, or its name.
    fn title(&self) -> String;

    fn body(&self) -> Body;

    fn choices(&self, verb: &Verb, confirm: Confirm) -> Vec<Choice>;

    /// Returns the answer that a choice gives.
    fn answer_choice(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        self.call_prompt().answer(act, reason)
    }

    /// Returns the changes that can be selected individually.
    fn hunk_selection(&self) -> Option<&HunkSelection> {
        None
    }

    fn hunk_selection_mut(&mut self) -> Option<&mut HunkSelection> {
        None
    }

    fn diff_layout(&self) -> DiffLayout {
        DiffLayout::default()
    }

    fn diff_layout_mut(&mut self) -> Option<&mut DiffLayout> {
        None
    }

    /// Notes that the dialog lost the keyboard.
    fn cancel_edit(&mut self) {}

    /// Returns the short name in a list; `counts` are the added and removed lines of its diff.
    fn short_name(&self, title: &str, _counts: Option<&str>) -> String {
        title.to_owned()
    }

    /// Returns the dialog with the whole content.
    fn dialog(self) -> Dialog
    where
        Self: Sized,
    {
        let approval = &self.call_prompt().approval;
        let (risk, critical) = (approval.risk_level, approval.critical);
        let strict = critical || risk == Risk::High;
        let body = self.body();
        let choices = self.choices(&body.verb(), if strict { Confirm::LetterThenEnter } else { Confirm::Letter });
        let risk_words = if critical { "critical risk".to_owned() } else { format!("{} risk", risk.as_str()) };
        let reason = text::reveal_line(&format!("ask: {}", reasons(approval).join("; ")));
        let title = title::with_agent(approval, self.title());
        let facts = body.facts().unwrap_or_default();
        // The counts are shown at the right.
        let title = match body.line_counts() {
            Some(counts) => title.strip_suffix(&counts).map(|title| title.trim_end().to_owned()).unwrap_or(title),
            None => title,
        };
        let title =
            if approval.amendable.edited && !title::is_unsandboxed(approval) { format!("{title}, edited by you") } else { title };
        let dialog = Dialog::new(Box::new(self), title, reason, choices, body);
        let mut dialog = Dialog { facts, risk_words, risk: Some(risk), critical, ..dialog };
        dialog.show_hunks();
        dialog
    }
}

impl<T: CallDialog> DialogKind for T {
    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        self.answer_choice(act, reason)
    }

    fn prompt(&self) -> Option<&CallPrompt> {
        Some(self.call_prompt())
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        Some(self.call_prompt_mut())
    }

    fn selection(&self) -> Option<&HunkSelection> {
        self.hunk_selection().filter(|_| !self.call_prompt().disk.is_unseen())
    }

    fn selection_mut(&mut self) -> Option<&mut HunkSelection> {
        let is_unseen = self.call_prompt().disk.is_unseen();
        self.hunk_selection_mut().filter(|_| !is_unseen)
    }

    fn layout(&self) -> DiffLayout {
        self.diff_layout()
    }

    fn layout_mut(&mut self) -> Option<&mut DiffLayout> {
        self.diff_layout_mut()
    }

    fn amend_field(&self) -> Option<&AmendField> {
        self.call_prompt().amend_field.as_ref()
    }

    fn amend_field_mut(&mut self) -> Option<&mut Option<AmendField>> {
        Some(&mut self.call_prompt_mut().amend_field)
    }

    fn leave_field(&mut self) {
        self.cancel_edit();
    }

    fn details(&self, choices: &[Choice]) -> Option<Dialog> {
        Pager::rules(&self.call_prompt().approval, choices).panel()
    }

    fn identity(&self) -> String {
        self.call_prompt().identity()
    }

    fn name(&self, title: &str, counts: Option<&str>) -> String {
        self.short_name(title, counts)
    }
}
