//! Consecutive reads and searches as one row with their count, which expands to the calls.

use super::text_rows::cut;
use super::{Fold, RenderContext};
use crate::tui::format::counted;
use crate::tui::styled_text::Row;
use crate::tui::theme::Token;
use std::cell::Cell;

/// Kind of what a call looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadKind {
    File,
    Directory,
    Search,
}

impl ReadKind {
    /// Returns the kind of a tool that only reads or searches the workspace.
    pub(crate) fn of_tool(name: &str) -> Option<Self> {
        match name {
            "ReadFile" => Some(Self::File),
            "ListDirectory" => Some(Self::Directory),
            "Grep" | "Glob" => Some(Self::Search),
            _ => None,
        }
    }
}

/// Calls that share one row.
#[derive(Debug)]
pub(crate) struct ReadGroup {
    pub files: usize,
    pub directories: usize,
    pub searches: usize,
    pub is_open: Cell<bool>,
}

impl ReadGroup {
    /// Returns whether the calls have no rows of their own.
    pub(crate) fn is_closed(&self, look: RenderContext<'_>) -> bool {
        !self.is_open.get() && look.fold == Fold::Quiet
    }

    /// Returns the shared row: `Read 4 files, searched 2 patterns`.
    pub(crate) fn row(&self, width: u16, look: RenderContext<'_>) -> Row {
        let parts =
            [(self.files, "read", "file"), (self.directories, "listed", "directory"), (self.searches, "searched", "pattern")];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts = parts.map(|(count, verb, noun)| match (count, noun) {
            (2.., "directory") => format!("{verb} {count} directories"),
            _ => format!("{verb} {}", counted(count, noun)),
        });
        let mut words = parts.collect::<Vec<_>>().join(", ");
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let mark = if self.is_closed(look) { look.glyphs.folded } else { look.glyphs.unfolded };
        cut(&format!("{words}  {mark}"), width, look, Token::Text)
    }
}
