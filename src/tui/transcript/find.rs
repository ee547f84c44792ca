//! Words looked for in all that was said, what is folded too.

use super::{Entry, Kind, Transcript};
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;

/// What is looked for: as it is typed, or in any case where it has no capital letter.
#[derive(Debug, Clone)]
pub struct Query {
    pub words: String,
    pattern: Regex,
    /// Marks of Markdown between the letters do not count unless they are looked for.
    has_marks: bool,
}

impl Query {
    pub fn new(words: &str) -> Option<Self> {
        let exact = words.chars().any(char::is_uppercase);
        // A blank may stand where a line was broken.
        let pattern = words.split(' ').map(regex::escape).collect::<Vec<_>>().join(r"\s");
        let pattern = RegexBuilder::new(&pattern).case_insensitive(!exact).build().ok().filter(|_| !words.is_empty())?;
        Some(Self { words: words.to_owned(), pattern, has_marks: words.contains(['*', '`']) })
    }

    /// Where the words stand in a text.
    pub fn places<'t>(&self, text: &'t str) -> impl Iterator<Item = std::ops::Range<usize>> + use<'_, 't> {
        self.pattern.find_iter(text).map(|found| found.range())
    }

    fn count(&self, text: &str) -> usize {
        self.pattern.find_iter(text).count()
    }

    /// How often the words stand in an entry.
    fn count_in(&self, entry: &Entry) -> usize {
        match &entry.kind {
            Kind::User(text) | Kind::Reasoning { text, .. } | Kind::Note { text, .. } => self.count(text),
            Kind::Answer { document, .. } => self.count(&self.without_marks(document.text())),
            Kind::Card(card) => {
                [card.summary(), card.message(), card.output(), card.changed()].into_iter().map(|text| self.count(text)).sum()
            }
            Kind::Summary { head, text } => self.count(head) + self.count(text),
            Kind::Greeting(_) | Kind::Window(_) | Kind::Recovery(_) => 0,
        }
    }

    fn without_marks<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.has_marks || !text.contains(['*', '`']) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.replace(['*', '`'], ""))
    }
}

/// The entries in which something was found, with how often, and which of all of it is looked at.
#[derive(Debug, Default, Clone)]
pub struct SearchMatches {
    pub entries: Vec<(usize, usize)>,
    /// Counted from 0 over all entries.
    pub at: usize,
    words: String,
}

impl SearchMatches {
    pub fn count(&self) -> usize {
        self.entries.iter().map(|(_, count)| count).sum()
    }

    /// The entry that is looked at, and which of those in it.
    pub fn place(&self) -> Option<(usize, usize)> {
        let mut left = self.at;
        for (entry, count) in &self.entries {
            if left < *count {
                return Some((*entry, left));
            }
            left -= count;
        }
        None
    }

    /// The next one, or the one before, around the ends.
    pub fn step(&mut self, forward: bool) {
        let count = self.count();
        if count > 0 {
            self.at = (self.at + if forward { 1 } else { count - 1 }) % count;
        }
    }

    /// The first at or after this entry; from the start again where there is none.
    fn go_to(&mut self, from: usize) {
        let before: usize = self.entries.iter().filter(|(entry, _)| *entry < from).map(|(_, count)| count).sum();
        self.at = if before < self.count() { before } else { 0 };
    }
}

impl Transcript {
    /// Looks in all entries; where the words only got longer, in those they stood in before.
    pub fn find(&self, query: &Query, before: &SearchMatches, from: usize) -> SearchMatches {
        let narrows = !before.words.is_empty() && query.words.starts_with(&before.words);
        let count = |at: usize| self.entries.get(at).map_or(0, |entry| query.count_in(entry));
        let hits = |at: usize| Some((at, count(at))).filter(|(_, count)| *count > 0);
        let entries = if narrows {
            before.entries.iter().filter_map(|(at, _)| hits(*at)).collect()
        } else {
            (0..self.entries.len()).filter_map(hits).collect()
        };
        let mut found = SearchMatches { entries, at: 0, words: query.words.clone() };
        found.go_to(from);
        found
    }
}
