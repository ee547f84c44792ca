//! Searches for a passage that a model quotes, either exactly or with looser comparisons, which must match at exactly
//! one position.
//!
//! Looser levels are tried in a fixed order, until one of them has a result. A single match is used, while several
//! matches are an error. All text has LF line endings.

mod elision;
mod fold;
mod indent;
mod merge;
#[cfg(test)]
mod tests;
mod variants;
mod window;

use crate::tools::document::replacement::Occurrences;
pub(in crate::tools::write) use fold::typed_equivalent;
use fold::{FoldLevel, FoldedText};
use indent::Indents;
use merge::merge;
use std::ops::Range;
use variants::{Variant, variants};

/// Maximum number of matches to count.
const MAX_PLACES: usize = 1_000;
/// Text size in bytes above which only exact matches are searched for.
const MAX_LOOSE_BYTES: usize = 16 << 20;

/// A match, and the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Place {
    pub range: Range<usize>,
    pub new: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Match {
    /// Matches in order. They do not overlap.
    pub places: Vec<Place>,
    /// The differences that were ignored, or `None` if the match is exact.
    pub how: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) enum MatchFailure {
    Nowhere,
    Several {
        places: Vec<Range<usize>>,
        how: Option<String>,
    },
    /// The passage matches except for its indentation, and how to indent the new text is ambiguous.
    Indentation(Range<usize>),
    /// The new text omits lines that the old text contains.
    Elided,
}

/// The passage to find.
pub(super) struct Passage<'a> {
    pub text: &'a str,
    pub which: Occurrences,
    /// Ranges that were not shown to the model. A match that overlaps with one of them is ignored.
    pub hidden: &'a [Range<usize>],
}

/// Finds the matches of `old`, along with what each becomes when it is replaced with `new`.
pub(in crate::tools) fn find(
    text: &str,
    old: &str,
    new: &str,
    which: Occurrences,
    hidden: &[Range<usize>],
) -> Result<Match, MatchFailure> {
    let wanted = Passage { text, which, hidden };
    let exact = wanted.find_exact(old);
    if !exact.is_empty() {
        return wanted.accept(exact.into_iter().map(|range| (range, new.to_owned())).collect(), None);
    }
    if text.len() > MAX_LOOSE_BYTES || old.trim().is_empty() {
        return Err(MatchFailure::Nowhere);
    }
    FuzzySearch { wanted, folded: Vec::new() }.find(old, new)
}

impl Passage<'_> {
    fn is_visible(&self, place: &Range<usize>) -> bool {
        let near = self.hidden.partition_point(|hidden| hidden.end <= place.start);
        let mut over = self.hidden[near..].iter().take_while(|hidden| hidden.start < place.end);
        !over.any(|hidden| hidden.start < place.start || place.end < hidden.end)
    }

    fn find_exact(&self, old: &str) -> Vec<Range<usize>> {
        let all = occurrences(self.text, old, self.which);
        all.into_iter().map(|at| at..at + old.len()).filter(|place| self.is_visible(place)).collect()
    }

    /// Accepts a single match, or all of them if all are to be replaced.
    fn accept(&self, places: Vec<(Range<usize>, String)>, how: Option<String>) -> Result<Match, MatchFailure> {
        let places: Vec<Place> = places.into_iter().map(|(range, new)| Place { range, new }).collect();
        if places.len() == 1 || self.which == Occurrences::All || self.has_same_result(&places) {
            let kept = if self.which == Occurrences::All { places } else { places.into_iter().take(1).collect() };
            return Ok(Match { places: kept, how });
        }
        Err(MatchFailure::Several { places: places.into_iter().map(|place| place.range).collect(), how })
    }

    /// Returns whether overlapping matches all have the same result, as for two of three empty lines.
    fn has_same_result(&self, places: &[Place]) -> bool {
        const COMPARED: usize = 8;
        let overlap = places.windows(2).all(|pair| pair[1].range.start < pair[0].range.end);
        let result = |place: &Place| [&self.text[..place.range.start], &place.new, &self.text[place.range.end..]].concat();
        (2..=COMPARED).contains(&places.len()) && overlap && {
            let first = result(&places[0]);
            places[1..].iter().all(|place| result(place) == first)
        }
    }
}

/// Finds `needle`. Overlapping matches are included, unless all matches are to be replaced.
fn occurrences(text: &str, needle: &str, which: Occurrences) -> Vec<usize> {
    if which == Occurrences::All {
        return text.match_indices(needle).map(|(at, _)| at).collect();
    }
    let step = needle.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(needle)) {
        found.push(from + at);
        from += at + step;
        if found.len() > MAX_PLACES {
            break;
        }
    }
    found
}

/// A search that ignores certain differences.
struct FuzzySearch<'a> {
    wanted: Passage<'a>,
    /// The text normalized for each level, created on demand.
    folded: Vec<(FoldLevel, FoldedText)>,
}

type Places = Vec<(Range<usize>, Option<String>)>;

impl FuzzySearch<'_> {
    fn find(mut self, old: &str, new: &str) -> Result<Match, MatchFailure> {
        let own = Variant {
            old: old.to_owned(),
            new: new.to_owned(),
            how: "",
            at_start: false,
            at_end: false,
            at_eof: false,
            unfenced: false,
        };
        let readings = variants(self.wanted.text, old, new);
        let worth = |text: &str| text.chars().any(char::is_alphanumeric);
        for level in [FoldLevel::Trailing, FoldLevel::Characters] {
            if let Some(decided) = self.find_at_level(level, &own) {
                return decided;
            }
        }
        for reading in readings.iter().filter(|reading| worth(&reading.old)) {
            for level in [FoldLevel::Exact, FoldLevel::Trailing, FoldLevel::Characters] {
                if let Some(decided) = self.find_at_level(level, reading) {
                    return decided;
                }
            }
        }
        if worth(old)
            && let Some(decided) = self.find_at_level(FoldLevel::Spaces, &own)
        {
            return decided;
        }
        elision::find(&self.wanted, old, new).unwrap_or(Err(MatchFailure::Nowhere))
    }

    /// Searches at one level, first with the indentation as given and then with any indentation. Returns `None` if
    /// nothing matches.
    fn find_at_level(&mut self, level: FoldLevel, reading: &Variant) -> Option<Result<Match, MatchFailure>> {
        let words = match level {
            FoldLevel::Exact => "",
            FoldLevel::Trailing => "ignoring trailing whitespace",
            FoldLevel::Characters => "ignoring typographic characters",
            FoldLevel::Spaces => "ignoring spaces within lines",
        };
        let index = self.fold(level);
        let passages = self.passages(level, index, reading);
        if !passages.is_empty() {
            return Some(self.accept(passages, words, reading));
        }
        if level == FoldLevel::Exact {
            return None;
        }
        let windows = self.windows(level, index, reading);
        let words = match level {
            FoldLevel::Exact | FoldLevel::Trailing => "ignoring its indentation",
            FoldLevel::Characters => "ignoring its indentation and typographic characters",
            FoldLevel::Spaces => "ignoring its indentation and spaces within lines",
        };
        (!windows.is_empty()).then(|| self.accept(windows, words, reading))
    }

    fn fold(&mut self, level: FoldLevel) -> usize {
        if let Some(index) = self.folded.iter().position(|(known, _)| *known == level) {
            return index;
        }
        self.folded.push((level, FoldedText::fold(self.wanted.text, level)));
        self.folded.len() - 1
    }

    fn accept(&self, places: Places, words: &str, reading: &Variant) -> Result<Match, MatchFailure> {
        let how = [reading.how, words].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ");
        let ranges = || places.iter().map(|(range, _)| range.clone()).collect::<Vec<_>>();
        let same =
            || places.windows(2).all(|pair| alike(&self.wanted.text[pair[0].0.clone()], &self.wanted.text[pair[1].0.clone()]));
        if places.len() > 1 && (self.wanted.which == Occurrences::TheOnly || !same()) {
            return Err(MatchFailure::Several { places: ranges(), how: Some(how) });
        }
        let mut made = Vec::with_capacity(places.len());
        for (range, new) in places {
            let Some(new) = new else { return Err(MatchFailure::Indentation(range)) };
            made.push((range, new));
        }
        self.wanted.accept(made, Some(how))
    }

    /// Finds passages that match after normalization and may start anywhere in a line.
    fn passages(&self, level: FoldLevel, index: usize, reading: &Variant) -> Places {
        let folded = &self.folded[index].1;
        let needle = needle(&reading.old, level);
        let last = reading.old.rsplit('\n').next().unwrap_or_default();
        // Whitespace at the end of the old text marks a line end.
        let rest = level > FoldLevel::Exact
            && !last.trim().is_empty()
            && needle.rsplit('\n').next() != Some(last)
            && last.ends_with([' ', '\t']);
        if needle.trim().is_empty() {
            return Vec::new();
        }
        let text = self.wanted.text;
        let whole = |range: &Range<usize>| {
            let (before, after) = (&folded.text[..range.start], &folded.text[range.end..]);
            let at_end = after.is_empty() || after.starts_with('\n') || needle.ends_with('\n');
            (!reading.at_start || before.is_empty() || before.ends_with('\n'))
                && (!(reading.at_end || rest) || at_end)
                && (!reading.at_eof || after.is_empty())
        };
        let found = occurrences(&folded.text, &needle, self.wanted.which)
            .into_iter()
            .map(|at| at..at + needle.len())
            .filter(whole)
            .filter_map(|range| folded.original(range, rest))
            .filter(|range| self.can_match(range, reading));
        self.build_places(found.collect(), reading, |range| {
            let merged = || merge(&text[range.clone()], &reading.old, &reading.new, |line| Some(line.to_owned()));
            if level == FoldLevel::Exact { Some(reading.new.clone()) } else { merged() }
        })
    }

    /// Finds whole lines that match after normalization, whatever their indentation.
    fn windows(&self, level: FoldLevel, index: usize, reading: &Variant) -> Places {
        let text = self.wanted.text;
        let needle = needle(&reading.old, level);
        let ranges = window::find(text, &self.folded[index].1.text, &needle);
        let unit = if ranges.is_empty() { 0 } else { indent::unit(text) };
        let found =
            ranges.into_iter().filter(|range| self.can_match(range, reading) && (!reading.at_eof || range.end == text.len()));
        self.build_places(found.collect(), reading, |range| indented(&text[range.clone()], reading, unit))
    }

    /// Computes the replacement for each match. If there are several matches although only one is allowed, the
    /// replacements are `None`.
    fn build_places(
        &self,
        places: Vec<Range<usize>>,
        reading: &Variant,
        new: impl Fn(&Range<usize>) -> Option<String>,
    ) -> Places {
        let unclear = places.len() > 1 && self.wanted.which == Occurrences::TheOnly;
        let one = |range: Range<usize>| {
            let new = if unclear { None } else { new(&range) };
            (self.to_end(range, reading), new)
        };
        places.into_iter().map(one).collect()
    }

    /// If a range removes the last lines of a file that has no final newline, extends it to include the line break
    /// before them, so that the file still has no final newline.
    fn to_end(&self, range: Range<usize>, reading: &Variant) -> Range<usize> {
        let goes = reading.at_eof && reading.new.is_empty() && self.wanted.text[..range.start].ends_with('\n');
        if goes { range.start - 1..range.end } else { range }
    }

    fn can_match(&self, range: &Range<usize>, reading: &Variant) -> bool {
        let line_before = || self.wanted.text[..range.start].trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        let fenced = || reading.unfenced && variants::fence(line_before()).is_some();
        self.wanted.is_visible(range) && !fenced()
    }
}

/// Indents the new text for its position. Returns `None` if the indentation is ambiguous.
fn indented(there: &str, reading: &Variant, unit: usize) -> Option<String> {
    let (old, new) = (&reading.old, &reading.new);
    let like_old = Indents::derive(old.lines().zip(there.lines()), unit)
        .and_then(|indents| merge(there, old, new, |line| indents.line(line)));
    let first = |text: &str| text.lines().find(|line| !line.trim().is_empty()).map_or(0, |line| indent::indent(line).len());
    let unlike_old = (indent::margin(new) == indent::margin(there) && indent::margin(new) != indent::margin(old))
        || (first(new) == first(there) && first(new) != first(old));
    match (indent::as_there(there, old, new), like_old) {
        (Some(as_there), Some(like_old)) => (unlike_old || as_there == like_old).then_some(as_there),
        (Some(as_there), None) => Some(as_there),
        (None, _) if unlike_old && !new.trim().is_empty() => None,
        (None, like_old) => like_old,
    }
}

/// Normalizes the old text. Whitespace after its last line break is the start of a partial line and is preserved.
fn needle(old: &str, level: FoldLevel) -> String {
    let begun = old.rfind('\n').map_or("", |at| &old[at + 1..]);
    let kept = if begun.trim().is_empty() { begun } else { "" };
    FoldedText::fold(old, level).text + kept
}

/// Returns whether the lines differ only in the whitespace around them.
fn alike(left: &str, right: &str) -> bool {
    left == right || left.lines().map(str::trim).eq(right.lines().map(str::trim))
}
