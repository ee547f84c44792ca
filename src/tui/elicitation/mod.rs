//! What an MCP server asks the person: a form to be filled in, or an address to be visited. Nothing of it is sent before the person
//! says so, and nothing is typed into it before they chose to.
//!
//! What happens goes in, the answer comes out; the panel that shows it is that of all questions, with its guard.

mod dialog;
mod entry;
#[cfg(test)]
mod tests;

pub use entry::Entry;

use crate::protocol::{Elicitation, ElicitationAnswer, Wanted};
use crate::text;
use serde_json::Map;

/// A question of a server, and how far it is answered.
#[derive(Debug)]
pub struct ElicitationForm {
    pub id: String,
    /// Who asks, as one line that no terminal obeys.
    pub server: String,
    message: String,
    wants: FormContent,
    /// The field that is being filled in.
    at: Option<usize>,
    /// What is wrong is said at the fields, because it was to be sent as it is.
    checked: bool,
}

#[derive(Debug)]
enum FormContent {
    Form(Vec<Entry>),
    Visit(String),
}

/// A choice of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormAction {
    /// As it stands.
    Send,
    Fill,
    Copy,
    Decline,
    /// Neither yes nor no.
    Dismiss,
}

/// What Enter came to.
#[derive(Debug, PartialEq)]
pub enum EnterResult {
    /// On to the next field, or to the first that is not as it has to be.
    Next,
    /// All is there: it is to be sent.
    Whole(ElicitationAnswer),
}

impl ElicitationForm {
    pub fn new(elicitation: Elicitation) -> Self {
        let Elicitation { elicitation_id, server, message, wanted } = elicitation;
        let wants = match wanted {
            Wanted::Form { fields } => FormContent::Form(fields.into_iter().map(Entry::new).collect()),
            Wanted::Visit { url } => FormContent::Visit(url),
        };
        Self { id: elicitation_id, server: text::reveal_line(&server), message, wants, at: None, checked: false }
    }

    /// The address that is to be visited, as it is.
    pub fn address(&self) -> Option<&str> {
        match &self.wants {
            FormContent::Visit(url) => Some(url),
            FormContent::Form(_) => None,
        }
    }

    pub fn is_filling(&self) -> bool {
        self.at.is_some()
    }

    fn entries(&self) -> &[Entry] {
        match &self.wants {
            FormContent::Form(entries) => entries,
            FormContent::Visit(_) => &[],
        }
    }

    /// The field that is filled in, and its place.
    pub fn entry(&self) -> Option<(usize, &Entry)> {
        let at = self.at?;
        Some((at, self.entries().get(at)?))
    }

    pub fn entry_mut(&mut self) -> Option<&mut Entry> {
        match &mut self.wants {
            FormContent::Form(entries) => entries.get_mut(self.at?),
            FormContent::Visit(_) => None,
        }
    }

    /// The first field that is not as it has to be, else the first; whether there is one.
    pub fn fill(&mut self) -> bool {
        let wrong = self.entries().iter().position(|entry| entry.value().is_err());
        self.at = Some(wrong.unwrap_or(0)).filter(|at| *at < self.entries().len());
        self.at.is_some()
    }

    /// Back to the choices; what was filled in stays.
    pub fn leave(&mut self) {
        self.at = None;
    }

    /// Another field, around the end.
    pub fn turn(&mut self, forward: bool) {
        let count = self.entries().len().max(1);
        let step = if forward { 1 } else { count - 1 };
        self.at = self.at.map(|at| (at + step) % count);
    }

    /// Enter in a field: on to the next, and behind the last it is sent where nothing is wrong.
    pub fn enter(&mut self) -> EnterResult {
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

    /// What is sent as it stands; nothing where something is missing or wrong.
    pub fn answer(&self) -> Option<ElicitationAnswer> {
        let mut content = Map::new();
        for entry in self.entries() {
            if let Some(value) = entry.value().ok()? {
                content.insert(entry.name().to_owned(), value);
            }
        }
        Some(ElicitationAnswer::Accept { content })
    }

    /// What is wrong with a field, where that is to be said: where something was done to it, or all was to be sent.
    fn problem(&self, entry: &Entry) -> Option<String> {
        entry.value().err().filter(|_| self.checked || entry.is_touched())
    }

    /// A line for the field that is filled in, as it is typed without a screen; an empty one leaves it as it is.
    pub fn take_line(&mut self, words: &str) -> Result<(), String> {
        let Some(entry) = self.entry_mut() else { return Ok(()) };
        let before = entry.clone();
        if !words.trim().is_empty() {
            entry.take_words(words)?;
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
