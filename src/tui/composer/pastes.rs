//! Long pastes in a draft, which the draft shows as a chip: `[pasted 10,000 lines]`.

use crate::tui::format::format_large_count;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of lines above which a paste counts as long.
const LONG: usize = 10;
/// Maximum number of stored long pastes.
const MAX_PASTES: usize = 8;

/// Stored pastes, and those that the draft contains as chips.
#[derive(Debug, Default)]
pub(super) struct Pastes {
    /// Long pastes, newest first.
    known: VecDeque<String>,
    /// Chips of the draft.
    chips: Vec<Chip>,
}

/// Text in a draft that represents a paste.
#[derive(Debug)]
struct Chip {
    label: String,
    text: String,
}

/// Returns the label of a paste: `[pasted 10,000 lines]`.
pub(crate) fn label(pasted: &str) -> String {
    format!("[pasted {}]", format_large_count(pasted.lines().count(), "line"))
}

impl Pastes {
    /// Stores a long paste. Returns the label that represents it in this draft, or `None` if the paste is short.
    pub(super) fn add(&mut self, pasted: &str, draft: &str) -> Option<String> {
        if pasted.trim().lines().count() <= LONG {
            return None;
        }
        self.known.retain(|known| known != pasted);
        self.known.truncate(MAX_PASTES - 1);
        self.known.push_front(pasted.to_owned());
        Some(self.add_chip(pasted, draft))
    }

    fn add_chip(&mut self, pasted: &str, draft: &str) -> String {
        let plain = label(pasted);
        let numbered = (2..).map(|number| format!("{} #{number}]", plain.trim_end_matches(']')));
        let is_free = |label: &String| !draft.contains(label.as_str()) && self.chips.iter().all(|chip| chip.label != *label);
        let label = [plain.clone()].into_iter().chain(numbered).find(is_free).unwrap_or_default();
        self.chips.push(Chip { label: label.clone(), text: pasted.to_owned() });
        label
    }

    /// Returns the draft with chips in place of the stored pastes that the text contains.
    pub(super) fn fold(&mut self, text: &str) -> String {
        self.chips.retain(|chip| text.contains(&chip.label));
        let mut draft = text.to_owned();
        for pasted in self.known.clone() {
            if draft.contains(&pasted) {
                let label = self.add_chip(&pasted, &draft);
                draft = draft.replacen(&pasted, &label, 1);
            }
        }
        draft
    }

    /// Returns the text of a draft, with the pastes in place of their chips.
    pub(super) fn unfold<'t>(&self, draft: &'t str) -> Cow<'t, str> {
        let place = |chip: &'_ Chip| draft.find(&chip.label).map(|at| at..at + chip.label.len());
        let mut found: Vec<(Range<usize>, &str)> =
            self.chips.iter().filter_map(|chip| Some((place(chip)?, chip.text.as_str()))).collect();
        if found.is_empty() {
            return Cow::Borrowed(draft);
        }
        found.sort_by_key(|(range, _)| range.start);
        let (mut text, mut at) = (String::new(), 0);
        for (range, pasted) in found {
            text.push_str(&draft[at..range.start]);
            text.push_str(pasted);
            at = range.end;
        }
        text.push_str(&draft[at..]);
        Cow::Owned(text)
    }

    /// Returns the number of characters of the chip at the end of a text, or at its start.
    pub(super) fn chip_length(&self, text: &str, is_at_end: bool) -> Option<usize> {
        let is_here = |chip: &&Chip| if is_at_end { text.ends_with(&chip.label) } else { text.starts_with(&chip.label) };
        self.chips.iter().find(is_here).map(|chip| chip.label.chars().count())
    }

    /// Returns the ranges of the stored pastes in a text, in order and without overlaps.
    pub(super) fn ranges_in(&self, text: &str) -> Vec<Range<usize>> {
        let place = |pasted: &String| {
            let pasted = pasted.trim();
            text.find(pasted).map(|at| at..at + pasted.len())
        };
        let mut found: Vec<Range<usize>> = self.known.iter().filter_map(place).collect();
        // A paste that contains another one hides it.
        found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        found.retain(|range| {
            let is_after = range.start >= end;
            end = if is_after { range.end } else { end };
            is_after
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(word: &str, count: usize) -> String {
        (1..=count).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_paste_is_folded_to_a_chip_and_sent_in_full() {
        let mut pastes = Pastes::default();
        let (one, other) = (lines("a", 10_000), lines("b", 10_000));
        assert_eq!(pastes.add(&lines("a", 10), ""), None);
        let first = pastes.add(&one, "").unwrap();
        assert_eq!(first, "[pasted 10,000 lines]");
        let draft = format!("why? {first}");
        let second = pastes.add(&other, &draft).unwrap();
        assert_eq!(second, "[pasted 10,000 lines #2]");
        let draft = format!("{draft} and {second} end");
        let whole = format!("why? {one} and {other} end");
        assert_eq!(pastes.unfold(&draft), whole);
        assert_eq!(pastes.ranges_in(&whole).len(), 2);
        assert_eq!(pastes.chip_length("x [pasted 10,000 lines]", true), Some(first.len()));
        // A prompt from the history is folded again.
        assert_eq!(pastes.fold(""), "");
        assert_eq!(pastes.unfold(&draft), draft, "a label without its chip is only text");
        let folded = pastes.fold(&whole);
        assert!(folded.len() < 80 && pastes.unfold(&folded) == whole, "{folded}");
    }

    #[test]
    fn only_some_pastes_are_stored() {
        let mut pastes = Pastes::default();
        for number in 0..20 {
            pastes.add(&lines(&number.to_string(), 11), "");
        }
        assert_eq!(pastes.known.len(), MAX_PASTES);
    }
}
