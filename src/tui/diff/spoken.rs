//! Diffs as sentences, one per line, each of which states the kind of change.

use super::Diff;
use super::entries::DiffEntry;
use crate::protocol::DiffSide;

impl Diff {
    /// Returns the sentences, such as `removed line 10: …` or `added line 10: …`. Context lines are included for
    /// orientation.
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
