//! Printing of transcript entries, both new ones and those of a resumed session.

use super::LineApp;
use crate::tui::interface::ModelAccess;
use crate::tui::plain::entries;
use crate::tui::transcript::TranscriptEntryKind;
use std::io::{self, Write};

impl<W: Write> LineApp<W> {
    /// Prints new transcript entries that have not already been printed as events.
    pub(super) fn print_entries(&mut self) -> io::Result<()> {
        let told = self.told;
        let mut lines = Vec::new();
        let count = self.model.transcript.kinds_from(told).map(|kind| lines.extend(entries::live_text(kind))).count();
        self.told += count;
        for (is_own, words) in lines {
            if is_own {
                self.paper.write_text(&words)?;
            } else if let Some(at) =
                words.strip_prefix("You: ").and_then(|prompt| self.typed.iter().position(|typed| typed == prompt))
            {
                self.typed.remove(at);
            } else {
                self.paper.write(&words)?;
            }
        }
        Ok(())
    }

    /// Prints the greeting. For a resumed session, also prints the last prompt and everything after it.
    pub(super) fn print_past(&mut self) -> io::Result<()> {
        let kinds: Vec<&TranscriptEntryKind> = self.model.transcript.kinds_from(0).collect();
        let last = kinds.iter().rposition(|kind| matches!(kind, TranscriptEntryKind::User(_)));
        let first = kinds.iter().position(|kind| matches!(kind, TranscriptEntryKind::User(_)));
        let mut lines: Vec<(bool, String)> = Vec::new();
        let until = first.unwrap_or(kinds.len());
        lines.extend(kinds[..until].iter().filter_map(|kind| entries::live_text(kind)));
        if let Some(last) = last {
            if first != Some(last) {
                lines.push((true, "Earlier messages are not shown here; `aye sessions show` prints them.".to_owned()));
            }
            lines.extend(kinds[last..].iter().filter_map(|kind| entries::past_text(kind).or_else(|| entries::live_text(kind))));
        }
        self.told = kinds.len();
        for (is_own, words) in lines {
            if is_own { self.paper.write_text(&words)? } else { self.paper.write(&words)? }
        }
        if self.model.info.model_access == Some(ModelAccess::Ready) && last.is_none() {
            self.paper.write_text("Type /help for a list of commands.")?;
        }
        Ok(())
    }
}
