//! Interface implemented by every kind of dialog, which defines the dialog's subject and behaviour.

use super::amend_field::AmendField;
use super::choices::ChoiceAction;
use super::diff_layout::DiffLayout;
use super::hunks::HunkSelection;
use super::prompt::CallPrompt;
use super::{Dialog, DialogAnswer};
use crate::protocol::CallId;
use crate::tui::composer::TextField;
use std::any::Any;
use std::borrow::Cow;

/// Part of a dialog's state that determines which key hints are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HintState {
    /// Whether the dialog has only just opened, so keys do not trigger choices yet.
    pub is_arming: bool,
    /// Whether the dialog's line field is open.
    pub has_field: bool,
    /// Whether the body is longer than the visible area.
    pub scrolls: bool,
}

/// Behaviour and state specific to one kind of dialog.
pub(crate) trait DialogKind: Any {
    /// Returns the answer that an action produces, or `None` if this dialog does not offer the action.
    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        self.prompt()?.answer(act, reason)
    }

    /// Returns the call that needs approval, or `None` if the dialog is not an approval prompt.
    fn prompt(&self) -> Option<&CallPrompt> {
        None
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        None
    }

    /// Returns the ID of the call that the dialog is about, if any.
    fn call(&self) -> Option<&CallId> {
        self.prompt().map(|prompt| &prompt.approval.tool_call_id)
    }

    /// Returns the selection of hunks or effects, if they can be selected individually.
    fn selection(&self) -> Option<&HunkSelection> {
        None
    }

    fn selection_mut(&mut self) -> Option<&mut HunkSelection> {
        None
    }

    /// Returns the diff layout that the user chose.
    fn layout(&self) -> DiffLayout {
        DiffLayout::default()
    }

    fn layout_mut(&mut self) -> Option<&mut DiffLayout> {
        None
    }

    /// Returns the field in which the user edits the proposal, if the field is open.
    fn amend_field(&self) -> Option<&AmendField> {
        self.prompt()?.amend_field.as_ref()
    }

    fn amend_field_mut(&mut self) -> Option<&mut Option<AmendField>> {
        self.prompt_mut().map(|prompt| &mut prompt.amend_field)
    }

    /// Returns the pager that opens in front of the dialog, if there is one. Approval prompts open the page about rules
    /// instead.
    fn details(&self) -> Option<Dialog> {
        None
    }

    /// Handles an action that selects another rule, expiry, view or page. Returns the updated dialog, or `None` if this
    /// kind of dialog has nothing to select.
    fn turn(self: Box<Self>, _act: ChoiceAction) -> Option<Dialog> {
        None
    }

    /// Returns whether the dialog opens in front of another dialog and returns to it when closed.
    fn is_in_front(&self) -> bool {
        false
    }

    /// Returns whether the first choices are rule scopes, each drawn on its own row.
    fn lists_scopes(&self) -> bool {
        false
    }

    /// Returns whether the dialog's diff is only a sample that will not be applied.
    fn shows_sample(&self) -> bool {
        false
    }

    /// Returns whether closing the dialog removes it. This is the case if no task is waiting for an answer, or if the
    /// user can also answer with a command.
    fn is_called_for(&self) -> bool {
        false
    }

    /// Returns whether the line field belongs to a form, whose text must never move to the draft.
    fn is_form(&self) -> bool {
        false
    }

    /// Closes a field that is still open from the last time the dialog had keyboard focus.
    fn leave_field(&mut self) {}

    /// Returns the line field to show when the dialog receives keyboard focus. `_current` is the field that was open
    /// before.
    fn field_when_armed(&self, _current: Option<TextField>) -> Option<TextField> {
        None
    }

    /// Returns the label shown before the line field.
    fn field_label(&self) -> Cow<'_, str> {
        "deny because: ".into()
    }

    /// Returns the hint shown below the line field.
    fn field_hint(&self) -> Option<String> {
        None
    }

    /// Returns the lines that line mode prints to ask for the value of the form's open field.
    fn field_question(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns the key hints specific to this kind of dialog, most useful first, or `None` to use the common ones.
    fn key_hints(&self, _state: HintState) -> Option<Vec<&'static str>> {
        None
    }

    /// Returns text that line mode uses to distinguish dialogs that look the same but differ in content.
    fn identity(&self) -> String {
        self.prompt().map(CallPrompt::identity).unwrap_or_default()
    }

    /// Returns the short name of the dialog for lists. `_counts` is the text with the numbers of added and removed
    /// lines in its diff.
    fn name(&self, title: &str, _counts: Option<&str>) -> String {
        title.to_owned()
    }

    /// Returns the description, for line mode, of what happens if the user leaves the dialog undecided.
    fn later_words(&self) -> &'static str {
        "postpone the answer; /answer returns to it"
    }
}

impl dyn DialogKind {
    pub(crate) fn is<T: DialogKind>(&self) -> bool {
        (self as &dyn Any).is::<T>()
    }

    pub(crate) fn find<T: DialogKind>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    pub(crate) fn find_mut<T: DialogKind>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any).downcast_mut()
    }

    pub(crate) fn take<T: DialogKind>(self: Box<Self>) -> Option<Box<T>> {
        (self as Box<dyn Any>).downcast().ok()
    }
}
