//! Consecutive reads and searches that are shown as one row with their counts, which the user can unfold.

use super::text_rows::truncated_row;
use super::{Fold, RenderContext};
use crate::protocol::CallId;
use crate::tui::format::format_count;
use crate::tui::styled_text::Row;
use crate::tui::theme::Token;
use std::cell::Cell;

/// Kind of content that a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadKind {
    File,
    Directory,
    Search,
}

impl ReadKind {
    /// Returns the kind of content that a tool reads, or `None` if the tool does more than read or search the
    /// workspace.
    pub(crate) fn for_tool(name: &str) -> Option<Self> {
        match name {
            "ReadFile" => Some(Self::File),
            "ListDirectory" => Some(Self::Directory),
            "Grep" | "Glob" => Some(Self::Search),
            _ => None,
        }
    }
}

/// Group of calls shown as a single row.
#[derive(Debug)]
pub(crate) struct ReadGroup {
    /// ID of the group's first call, whose entry shows the row.
    pub leader: CallId,
    files: Cell<usize>,
    directories: Cell<usize>,
    searches: Cell<usize>,
    pub is_open: Cell<bool>,
}

impl ReadGroup {
    pub(crate) fn new(leader: CallId, is_open: bool) -> Self {
        let none = || Cell::new(0);
        Self { leader, files: none(), directories: none(), searches: none(), is_open: Cell::new(is_open) }
    }

    /// Adds a call of the given kind to the group's counts.
    pub(crate) fn add(&self, kind: ReadKind) {
        let count = match kind {
            ReadKind::File => &self.files,
            ReadKind::Directory => &self.directories,
            ReadKind::Search => &self.searches,
        };
        count.set(count.get() + 1);
    }

    /// Returns the number of files read, directories listed and searches made.
    pub(crate) fn counts(&self) -> [usize; 3] {
        [self.files.get(), self.directories.get(), self.searches.get()]
    }

    /// Returns whether the group is shown as one row rather than one row per call.
    pub(crate) fn is_closed(&self, look: RenderContext<'_>) -> bool {
        !self.is_open.get() && look.fold == Fold::Quiet
    }

    /// Returns the group's row, such as `Read 4 files, searched 2 patterns`.
    pub(crate) fn row(&self, width: u16, look: RenderContext<'_>) -> Row {
        let [files, directories, searches] = self.counts();
        let parts = [(files, "read", "file"), (directories, "listed", "directory"), (searches, "searched", "pattern")];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts = parts.map(|(count, verb, noun)| match (count, noun) {
            (2.., "directory") => format!("{verb} {count} directories"),
            _ => format!("{verb} {}", format_count(count, noun)),
        });
        let mut words = parts.collect::<Vec<_>>().join(", ");
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let mark = if self.is_closed(look) { look.glyphs.fold.folded } else { look.glyphs.fold.unfolded };
        truncated_row(&format!("{words}  {mark}"), width, look, Token::Text)
    }
}
