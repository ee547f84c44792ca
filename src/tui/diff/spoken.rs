//! Diff as sentences, one for each line, which name the kind of change.

use super::Diff;
use super::entries::DiffEntry;
use crate::protocol::DiffSide;

impl Diff {
    /// Returns the sentences: `removed line 10: …`, `added line 10: …`. Includes context lines for orientation.
    pub(crate) fn to_sentences(&self) -> Vec<String> {
        let entries = self.entries.iter().map(|entry| match entry {
            DiffEntry::File(name) => format!("file {name}"),
            DiffEntry::Note(words) => words.clone(),
            DiffEntry::Break(place) if place.is_empty() => "unchanged lines skipped".to_owned(),
            DiffEntry::Break(place) => format!("unchanged lines skipped; continues in {place}"),
            DiffEntry::Line(line) => {
                let what = match line.side {
                    DiffSide::Context => "line",
                    DiffSide::Added => "added line",
                    DiffSide::Removed => "removed line",
                };
                format!("{what} {}: {}", line.number, line.text)
            }
        });
        entries.collect()
    }
}
