//! Browse mode, in which the transcript has keyboard focus.

use super::transcript::{Marks, SearchMatches, Transcript};

#[derive(Debug, Default)]
pub(crate) struct Browse {
    /// Search text, while the user is typing it.
    pub typing: Option<String>,
    pub found: SearchMatches,
    /// Index of an entry and of the code block within it that the next `c` copies.
    pub code: (usize, usize),
    /// Whether the user is selecting lines or columns.
    pub selects: bool,
}

impl Browse {
    /// Returns the position of the current match among all matches, such as `3 of 17`.
    pub(crate) fn count(&self) -> String {
        match self.found.count() {
            0 => "no matches".to_owned(),
            count => format!("{} of {count}", self.found.at + 1),
        }
    }
}

/// Leaves browse mode, clearing the selection and restoring the usual hints.
pub(crate) fn leave_browse(browse: &mut Option<Browse>, transcript: &mut Transcript) {
    if browse.take().is_some() {
        transcript.forget_layout();
    }
    transcript.marks = Marks::default();
}
