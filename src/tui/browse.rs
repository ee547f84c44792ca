//! Browse mode, in which the transcript has keyboard focus.

use super::transcript::{Marks, SearchMatches, Transcript};

#[derive(Debug, Default)]
pub(crate) struct Browse {
    /// Search text while it is being typed.
    pub typing: Option<String>,
    pub found: SearchMatches,
    /// Entry and code block index that the next `c` copies.
    pub code: (usize, usize),
    /// Whether lines or columns are being selected.
    pub selects: bool,
}

impl Browse {
    /// Returns the position in the search results: `3 of 17`.
    pub(crate) fn count(&self) -> String {
        match self.found.count() {
            0 => "no matches".to_owned(),
            count => format!("{} of {count}", self.found.at + 1),
        }
    }
}

/// Leaves browse mode: clears the selection and restores the usual hints.
pub(crate) fn leave_browse(browse: &mut Option<Browse>, transcript: &mut Transcript) {
    if browse.take().is_some() {
        transcript.forget_layout();
    }
    transcript.marks = Marks::default();
}
