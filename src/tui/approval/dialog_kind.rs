//! Interface of the kinds of dialogs: the subject of a dialog, and the behaviour specific to its kind.

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

/// State of a dialog that its key hints depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HintState {
    /// Whether the dialog has just opened, so that keys do not answer it yet.
    pub is_arming: bool,
    /// Whether its line field is open.
    pub has_field: bool,
    /// Whether its content is longer than the screen.
    pub scrolls: bool,
}

/// Kind of a dialog, with the state that only this kind has.
pub(crate) trait DialogKind: Any {
    /// Returns the answer that a choice gives, or `None` if the dialog has no such choice.
    fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        self.prompt()?.answer(act, reason)
    }

    /// Returns the call of an approval prompt.
    fn prompt(&self) -> Option<&CallPrompt> {
        None
    }

    fn prompt_mut(&mut self) -> Option<&mut CallPrompt> {
        None
    }

    /// Returns the call that the dialog is about.
    fn call(&self) -> Option<&CallId> {
        self.prompt().map(|prompt| &prompt.approval.tool_call_id)
    }

    /// Returns the changes that can be selected individually.
    fn selection(&self) -> Option<&HunkSelection> {
        None
    }

    fn selection_mut(&mut self) -> Option<&mut HunkSelection> {
        None
    }

    /// Returns the layout of the diff that the user chose.
    fn layout(&self) -> DiffLayout {
        DiffLayout::default()
    }

    fn layout_mut(&mut self) -> Option<&mut DiffLayout> {
        None
    }

    /// Returns the field for the text that replaces the proposal, if the proposal can be edited.
    fn amend_field(&self) -> Option<&AmendField> {
        self.prompt()?.amend_field.as_ref()
    }

    fn amend_field_mut(&mut self) -> Option<&mut Option<AmendField>> {
        self.prompt_mut().map(|prompt| &mut prompt.amend_field)
    }

    /// Returns the pages to read in front of the dialog, if it is not an approval prompt. Those show the rules.
    fn details(&self) -> Option<Dialog> {
        None
    }

    /// Returns the dialog with another selection or page, if it is one in front of another dialog.
    fn turn(self: Box<Self>, _act: ChoiceAction) -> Option<Dialog> {
        None
    }

    /// Returns whether the dialog is in front of another one, to which it returns.
    fn is_in_front(&self) -> bool {
        false
    }

    /// Returns whether the first choices are the scopes of a rule, each with its own row.
    fn lists_scopes(&self) -> bool {
        false
    }

    /// Returns whether the diff is only a sample, which changes nothing.
    fn shows_sample(&self) -> bool {
        false
    }

    /// Returns whether the dialog is removed when the user closes it, because no task waits for the answer, or because
    /// a command can give it too.
    fn is_called_for(&self) -> bool {
        false
    }

    /// Returns whether the line field is part of a form, so that its text is not a draft.
    fn is_form(&self) -> bool {
        false
    }

    /// Closes the open field, after the dialog lost keyboard focus.
    fn leave_field(&mut self) {}

    /// Returns the line field that is open once the dialog has keyboard focus.
    fn field_when_armed(&self, _current: Option<TextField>) -> Option<TextField> {
        None
    }

    /// Returns the label of the line field.
    fn field_label(&self) -> Cow<'_, str> {
        "deny because: ".into()
    }

    /// Returns the line below the line field.
    fn field_hint(&self) -> Option<String> {
        None
    }

    /// Returns the question about the open field of a form, for line mode.
    fn field_question(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns the key hints, most likely first, if this kind has its own.
    fn key_hints(&self, _state: HintState) -> Option<Vec<&'static str>> {
        None
    }

    /// Returns text that differs whenever the content does and the visible words do not, for line mode.
    fn identity(&self) -> String {
        self.prompt().map(CallPrompt::identity).unwrap_or_default()
    }

    /// Returns the short name of the dialog in a list; `counts` are the added and removed lines of its diff.
    fn name(&self, title: &str, _counts: Option<&str>) -> String {
        title.to_owned()
    }

    /// Returns the effect of leaving the dialog undecided, for line mode.
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
