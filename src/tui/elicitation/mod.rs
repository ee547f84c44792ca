//! Input requests: forms to fill in or URLs to open, sent by MCP servers, and questions with options, asked by the
//! model. Nothing is sent before the user confirms, and nothing can be typed before the user starts to fill in the
//! form.
//!
//! This module only turns input into an answer. The panel and the guard of the dialog are the same as for all other
//! dialogs.

mod entry;
#[cfg(test)]
mod tests;

pub(crate) use entry::FormEntry;

use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationKind, FieldKind, FormField, QUESTION_ANSWER, QuestionOption};
use crate::text;
use serde_json::Map;

/// Input request from an MCP server or the model, and the values entered so far.
#[derive(Debug)]
pub(crate) struct ElicitationForm {
    pub id: String,
    /// Name of the server, on one line and without control characters.
    pub server: String,
    pub message: String,
    pub wants: FormContent,
    /// Index of the current field, or `None` while the user is choosing an action.
    pub at: Option<usize>,
    /// Whether problems are shown for all fields, because the user tried to send the form while it was invalid.
    checked: bool,
}

#[derive(Debug)]
pub(crate) enum FormContent {
    Form(Vec<FormEntry>),
    Visit(String),
    Question(Box<ModelQuestion>),
}

/// Options of a question from the model, and the field for an answer of the user's own.
#[derive(Debug)]
pub(crate) struct ModelQuestion {
    pub options: Vec<QuestionOption>,
    /// 1-based position of the question, and the number of questions.
    pub place: (usize, usize),
    /// Field for an answer that is not one of the options.
    pub answer: FormEntry,
}

impl ModelQuestion {
    fn new(options: Vec<QuestionOption>, place: (usize, usize)) -> Self {
        let takes = FieldKind::Text { min_length: None, max_length: None, format: None };
        let (name, title) = (QUESTION_ANSWER.to_owned(), Some("Your answer".to_owned()));
        let field = FormField { name, title, description: None, required: true, default: None, takes };
        Self { options, place, answer: FormEntry::new(field) }
    }
}

/// Action that a choice in the request's dialog triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormAction {
    /// Sends the values that have been entered.
    Send,
    Fill,
    Copy,
    /// Answers the model's question with the option at this index.
    Pick(usize),
    Decline,
    /// Dismisses the request without answering it.
    Dismiss,
}

/// Effect of pressing Enter in a field.
#[derive(Debug, PartialEq)]
pub(crate) enum EnterResult {
    /// The next field has become current or, after the last one, the first invalid field.
    Next,
    /// All fields are valid, so this answer must be sent.
    Whole(ElicitationAnswer),
}

impl ElicitationForm {
    pub(crate) fn new(elicitation: Elicitation) -> Self {
        let Elicitation { elicitation_id, server, message, wanted } = elicitation;
        let wants = match wanted {
            ElicitationKind::Form { fields } => FormContent::Form(fields.into_iter().map(FormEntry::new).collect()),
            ElicitationKind::Visit { url } => FormContent::Visit(url),
            ElicitationKind::Question { options, number, count } => {
                FormContent::Question(Box::new(ModelQuestion::new(options, (number, count))))
            }
        };
        Self { id: elicitation_id, server: text::reveal_line(&server), message, wants, at: None, checked: false }
    }

    /// Returns the URL that the request asks the user to open, unchanged, if there is one.
    pub(crate) fn address(&self) -> Option<&str> {
        match &self.wants {
            FormContent::Visit(url) => Some(url),
            FormContent::Form(_) | FormContent::Question(_) => None,
        }
    }

    /// Returns whether the request is a question from the model.
    pub(crate) fn is_of_model(&self) -> bool {
        matches!(self.wants, FormContent::Question(_))
    }

    /// Returns the answer that chooses an option of the model's question, or `None` if there is no such option.
    pub(crate) fn option_answer(&self, at: usize) -> Option<ElicitationAnswer> {
        match &self.wants {
            FormContent::Question(question) => {
                question.options.get(at).map(|option| ElicitationAnswer::to_question(option.label.clone()))
            }
            FormContent::Form(_) | FormContent::Visit(_) => None,
        }
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.at.is_some()
    }

    pub(crate) fn entries(&self) -> &[FormEntry] {
        match &self.wants {
            FormContent::Form(entries) => entries,
            FormContent::Question(question) => std::slice::from_ref(&question.answer),
            FormContent::Visit(_) => &[],
        }
    }

    /// Returns the current field and its index, or `None` if the user is not filling in the form.
    pub(crate) fn entry(&self) -> Option<(usize, &FormEntry)> {
        let at = self.at?;
        Some((at, self.entries().get(at)?))
    }

    pub(crate) fn entry_mut(&mut self) -> Option<&mut FormEntry> {
        match &mut self.wants {
            FormContent::Form(entries) => entries.get_mut(self.at?),
            FormContent::Question(question) => self.at.map(|_| &mut question.answer),
            FormContent::Visit(_) => None,
        }
    }

    /// Makes the first invalid field the current one or, if all are valid, the first field. Returns whether the form
    /// has any fields.
    pub(crate) fn fill(&mut self) -> bool {
        let wrong = self.entries().iter().position(|entry| entry.value().is_err());
        self.at = Some(wrong.unwrap_or(0)).filter(|at| *at < self.entries().len());
        self.at.is_some()
    }

    /// Returns from the fields to the choices, preserving the values.
    pub(crate) fn leave(&mut self) {
        self.at = None;
    }

    /// Moves to the next or previous field, wrapping around at the ends.
    pub(crate) fn turn(&mut self, forward: bool) {
        let count = self.entries().len().max(1);
        let step = if forward { 1 } else { count - 1 };
        self.at = self.at.map(|at| (at + step) % count);
    }

    /// Handles Enter in a field by moving to the next field. After the last field, completes the form if all fields are
    /// valid.
    pub(crate) fn on_enter(&mut self) -> EnterResult {
        let Some(at) = self.at else { return EnterResult::Next };
        if at + 1 < self.entries().len() {
            self.at = Some(at + 1);
            return EnterResult::Next;
        }
        if let Some(answer) = self.answer() {
            return EnterResult::Whole(answer);
        }
        self.checked = true;
        self.fill();
        EnterResult::Next
    }

    /// Returns the answer that contains the current values, or `None` if any of them is invalid.
    pub(crate) fn answer(&self) -> Option<ElicitationAnswer> {
        let mut content = Map::new();
        for entry in self.entries() {
            if let Some(value) = entry.value().ok()? {
                content.insert(entry.name().to_owned(), value);
            }
        }
        Some(ElicitationAnswer::Accept { content })
    }

    /// Returns the problem with a field's value, provided the user has changed the value or tried to send the form.
    pub(crate) fn problem(&self, entry: &FormEntry) -> Option<String> {
        entry.value().err().filter(|_| self.checked || entry.is_touched())
    }

    /// Sets the current field from a line of text and moves to the next field. An empty line keeps the current value.
    /// Fails with a message if the value is invalid.
    pub(crate) fn take_line(&mut self, words: &str) -> Result<(), String> {
        let Some(entry) = self.entry_mut() else { return Ok(()) };
        let before = entry.clone();
        if !words.trim().is_empty() {
            entry.set_from_text(words)?;
        }
        if let Err(why) = entry.value() {
            *entry = before;
            return Err(why);
        }
        let next = self.at.map(|at| at + 1);
        self.at = next.filter(|next| *next < self.entries().len());
        Ok(())
    }
}
