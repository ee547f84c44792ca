//! Search through the whole transcript, including its folded parts.

use super::{Transcript, TranscriptEntry, TranscriptEntryKind};
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;

/// Search query, which is case-sensitive only if it contains a capital letter.
#[derive(Debug, Clone)]
pub(crate) struct FindQuery {
    pub words: String,
    pattern: Regex,
    /// Whether the query contains Markdown markup. If it does not, markup in the text is ignored.
    has_marks: bool,
}

impl FindQuery {
    pub(crate) fn new(words: &str) -> Option<Self> {
        let exact = words.chars().any(char::is_uppercase);
        // A space in the query also matches a line break.
        let pattern = words.split(' ').map(regex::escape).collect::<Vec<_>>().join(r"\s");
        let pattern = RegexBuilder::new(&pattern).case_insensitive(!exact).build().ok().filter(|_| !words.is_empty())?;
        Some(Self { words: words.to_owned(), pattern, has_marks: words.contains(['*', '`']) })
    }

    /// Returns the byte ranges in `text` that match the query.
    pub(crate) fn find_matches<'t>(&self, text: &'t str) -> impl Iterator<Item = std::ops::Range<usize>> + use<'_, 't> {
        self.pattern.find_iter(text).map(|found| found.range())
    }

    fn count(&self, text: &str) -> usize {
        self.pattern.find_iter(text).count()
    }

    /// Returns the number of matches in an entry, including those in folded text.
    fn count_in(&self, entry: &TranscriptEntry) -> usize {
        match &entry.kind {
            TranscriptEntryKind::User(text)
            | TranscriptEntryKind::Reasoning { text, .. }
            | TranscriptEntryKind::Note { text, .. } => self.count(text),
            TranscriptEntryKind::Answer { document, .. } => self.count(&self.without_marks(document.text())),
            TranscriptEntryKind::Card(card) => [card.summary(), card.message(), card.output(), card.changes_text()]
                .into_iter()
                .map(|text| self.count(text))
                .sum(),
            TranscriptEntryKind::Summary { head, text } => self.count(head) + self.count(text),
            TranscriptEntryKind::Problem { problem, .. } => self.count(&problem.text()),
            TranscriptEntryKind::Greeting(_) | TranscriptEntryKind::Recovery(_) => 0,
        }
    }

    fn without_marks<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.has_marks || !text.contains(['*', '`']) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.replace(['*', '`'], ""))
    }
}

/// Entries that contain matches, and which match is the current one.
#[derive(Debug, Default, Clone)]
pub(crate) struct SearchMatches {
    pub entries: Vec<(usize, usize)>,
    /// Index of the current match, counted over all entries.
    pub at: usize,
    words: String,
}

impl SearchMatches {
    pub(crate) fn count(&self) -> usize {
        self.entries.iter().map(|(_, count)| count).sum()
    }

    /// Returns the index of the entry that contains the current match, and the match's index within that entry.
    pub(crate) fn position(&self) -> Option<(usize, usize)> {
        let mut left = self.at;
        for (entry, count) in &self.entries {
            if left < *count {
                return Some((*entry, left));
            }
            left -= count;
        }
        None
    }

    /// Makes the next or previous match the current one, wrapping around at the ends.
    pub(crate) fn step(&mut self, forward: bool) {
        let count = self.count();
        if count > 0 {
            self.at = (self.at + if forward { 1 } else { count - 1 }) % count;
        }
    }

    /// Makes the first match at or after the entry `from` the current one. If there is none, uses the transcript's
    /// first match.
    fn go_to(&mut self, from: usize) {
        let before: usize = self.entries.iter().filter(|(entry, _)| *entry < from).map(|(_, count)| count).sum();
        self.at = if before < self.count() { before } else { 0 };
    }
}

/// Finds all entries that match the query. If the query extends the previous one, only entries that matched before are
/// searched.
pub(crate) fn find_all(transcript: &Transcript, query: &FindQuery, before: &SearchMatches, from: usize) -> SearchMatches {
    let narrows = !before.words.is_empty() && query.words.starts_with(&before.words);
    let count = |at: usize| transcript.entries.get(at).map_or(0, |entry| query.count_in(entry));
    let hits = |at: usize| Some((at, count(at))).filter(|(_, count)| *count > 0);
    let entries = if narrows {
        before.entries.iter().filter_map(|(at, _)| hits(*at)).collect()
    } else {
        (0..transcript.entries.len()).filter_map(hits).collect()
    };
    let mut found = SearchMatches { entries, at: 0, words: query.words.clone() };
    found.go_to(from);
    found
}
