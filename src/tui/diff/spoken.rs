//! A diff in words: one sentence for each line, which says what becomes of it.

use super::Diff;
use super::parse::{Entry, Side};

impl Diff {
    /// `removed line 10: …`, `added line 10: …`; lines that stay are read out too, for they say where one is.
    pub fn spoken(&self) -> Vec<String> {
        let entries = self.entries.iter().map(|entry| match entry {
            Entry::File(name) => format!("file {name}"),
            Entry::Note(words) => words.clone(),
            Entry::Break(place) if place.is_empty() => "unchanged lines skipped".to_owned(),
            Entry::Break(place) => format!("unchanged lines skipped; next, in {place}"),
            Entry::Line(line) => {
                let what = match line.side {
                    Side::Context => "line",
                    Side::Added => "added line",
                    Side::Removed => "removed line",
                };
                format!("{what} {}: {}", line.number, line.text)
            }
        });
        entries.collect()
    }
}
