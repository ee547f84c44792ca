//! Browse mode: the keyboard is the transcript's.

use super::transcript::SearchMatches;

#[derive(Debug, Default)]
pub struct Browse {
    /// What is looked for, while it is typed.
    pub typing: Option<String>,
    pub found: SearchMatches,
    /// Whose code the next `c` copies, and which piece of it.
    pub code: (usize, usize),
    /// Lines or columns are being selected.
    pub selects: bool,
}

impl Browse {
    /// `3 of 17`, while something is looked for.
    pub fn count(&self) -> String {
        match self.found.count() {
            0 => "no matches".to_owned(),
            count => format!("{} of {count}", self.found.at + 1),
        }
    }
}
