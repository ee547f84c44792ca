//! Long pastes, which the draft shows as chips such as `[pasted 10,000 lines]`.

use super::paste_marks::{MAX_TEXT_BYTES, PasteMarks, is_long, without_overlaps};
use crate::text;
use crate::tui::format::format_count;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of pastes that are stored.
const MAX_PASTES: usize = 8;
/// Maximum total size of the stored pastes, in bytes. If the chips exceed it as well, those removed from the draft are
/// dropped.
const MAX_BYTES: usize = 16 << 20;

/// Long pastes that are stored, and the chips that represent them in the draft.
#[derive(Debug, Default)]
pub(super) struct Pastes {
    /// Long pastes, newest first.
    known: VecDeque<Arc<str>>,
    /// Chips that are in the draft, or were removed from it but can be restored by an undo.
    chips: Vec<Chip>,
    /// Fingerprints of pastes from before a restart.
    marks: PasteMarks,
}

/// Label that represents a paste in the draft, and the pasted text.
#[derive(Debug)]
struct Chip {
    label: String,
    text: Arc<str>,
}

/// Change to a draft that either keeps or removes each chip as a whole. It replaces a byte range of the old draft with
/// `text`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WholeChange<'t> {
    pub range: Range<usize>,
    pub text: &'t str,
}

/// Returns the label for a paste, such as `[pasted 10,000 lines]`.
pub(crate) fn label(pasted: &str) -> String {
    format!("[pasted {}]", format_count(pasted.lines().count(), "line"))
}

/// Returns whether text at the start of a draft may be a command, which must never be hidden in a chip.
fn may_be_command(pasted: &str) -> bool {
    pasted.trim_start().starts_with(['!', '/'])
}

impl Pastes {
    /// Creates an empty list; `file` stores the fingerprints of pastes.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { marks: PasteMarks::new(file), ..Self::default() }
    }

    /// Records a paste, so that it is recognized after a restart, unless it is too large. `redact`: removes the secrets
    /// from the paste, as it will be saved.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn record(&mut self, pasted: &str, redact: impl FnOnce(&str) -> String) -> io::Result<()> {
        if pasted.len() > MAX_TEXT_BYTES {
            return Ok(());
        }
        let saved = redact(pasted);
        // A draft is restored without control characters.
        self.marks.add(pasted, &[&saved, &text::clean(&saved)])
    }

    /// Stores a paste if it is long. Returns the label of the chip to insert into `draft`, or `None` if the paste is
    /// short or may be a command. `before` is the draft up to the cursor.
    pub(super) fn add(&mut self, pasted: &str, draft: &str, before: &str) -> Option<String> {
        if !is_long(pasted) || before.trim().is_empty() && may_be_command(pasted) {
            return None;
        }
        let pasted: Arc<str> = pasted.into();
        self.known.retain(|known| *known != pasted);
        self.known.push_front(pasted.clone());
        let mut bytes = 0;
        let fits = |known: &&Arc<str>| {
            bytes += known.len();
            bytes <= MAX_BYTES
        };
        let count = self.known.iter().take(MAX_PASTES).take_while(fits).count();
        self.known.truncate(count);
        Some(self.add_chip(pasted, draft))
    }

    fn add_chip(&mut self, pasted: Arc<str>, draft: &str) -> String {
        if self.chips.iter().map(|chip| chip.text.len()).sum::<usize>() + pasted.len() > MAX_BYTES {
            self.chips.retain(|chip| draft.contains(&chip.label));
        }
        let plain = label(&pasted);
        let numbered = (2..).map(|number| format!("{} #{number}]", plain.trim_end_matches(']')));
        let is_free = |label: &String| !draft.contains(label.as_str()) && self.chips.iter().all(|chip| chip.label != *label);
        let label = [plain.clone()].into_iter().chain(numbered).find(is_free).unwrap_or_default();
        self.chips.push(Chip { label: label.clone(), text: pasted });
        label
    }

    /// Returns `text` with each stored paste that it contains replaced by a chip.
    pub(super) fn fold(&mut self, text: &str) -> String {
        self.chips.retain(|chip| text.contains(&chip.label));
        let mut draft = text.to_owned();
        for known in self.known.clone() {
            let pasted = known.trim();
            let Some(at) = draft.find(pasted) else { continue };
            if draft[..at].trim().is_empty() && may_be_command(pasted) {
                continue;
            }
            let stored = if pasted.len() == known.len() { known.clone() } else { pasted.into() };
            let label = self.add_chip(stored, &draft);
            draft.replace_range(at..at + pasted.len(), &label);
        }
        self.fold_recorded(draft)
    }

    /// Returns the draft with chips in place of pastes from before a restart.
    fn fold_recorded(&mut self, draft: String) -> String {
        if !is_long(&draft) {
            return draft;
        }
        let (mut folded, mut at) = (String::new(), 0);
        for range in self.marks.find(&draft) {
            let pasted = &draft[range.clone()];
            if draft[..range.start].trim().is_empty() && may_be_command(pasted) {
                continue;
            }
            folded.push_str(&draft[at..range.start]);
            let others = format!("{folded}{}", &draft[range.end..]);
            folded.push_str(&self.add_chip(pasted.into(), &others));
            at = range.end;
        }
        folded + &draft[at..]
    }

    /// Returns the chips in a draft and their byte ranges, in order.
    fn chips_in<'s>(&'s self, draft: &str) -> Vec<(Range<usize>, &'s Chip)> {
        let places = |chip: &'s Chip| {
            draft.match_indices(&chip.label).map(move |(at, label)| (at..at + label.len(), chip)).collect::<Vec<_>>()
        };
        let mut found: Vec<(Range<usize>, &Chip)> = self.chips.iter().flat_map(places).collect();
        found.sort_by_key(|(range, _)| range.start);
        found
    }

    /// Returns the draft with its chips replaced by the full text of the pastes.
    pub(super) fn unfold<'t>(&self, draft: &'t str) -> Cow<'t, str> {
        let found = self.chips_in(draft);
        if found.is_empty() {
            return Cow::Borrowed(draft);
        }
        let (mut text, mut at) = (String::new(), 0);
        for (range, chip) in found {
            text.push_str(&draft[at..range.start]);
            text.push_str(&chip.text);
            at = range.end;
        }
        text.push_str(&draft[at..]);
        Cow::Owned(text)
    }

    /// Returns whether the draft contains chips, or has contained any that can be restored.
    pub(super) fn has_chips(&self) -> bool {
        !self.chips.is_empty()
    }

    /// Returns the label of the newest chip that represents this paste, if there is one.
    pub(super) fn label_of(&self, pasted: &str) -> Option<&str> {
        self.chips.iter().rev().find(|chip| *chip.text == *pasted).map(|chip| chip.label.as_str())
    }

    /// Returns the change to make in place of one that would damage a chip. Text inserted into a chip is moved behind
    /// the chip, and a partly removed chip is removed entirely. Returns `None` if no chip would be damaged.
    pub(super) fn whole_change<'t>(&self, old: &str, new: &'t str) -> Option<WholeChange<'t>> {
        let chips: Vec<Range<usize>> = self.chips_in(old).into_iter().map(|(range, _)| range).collect();
        if chips.is_empty() || old == new {
            return None;
        }
        let before = common_prefix(old, new);
        let behind = common_suffix(old, new).min(old.len().min(new.len()) - before);
        let behind = (0..=behind).rev().find(|count| old.is_char_boundary(old.len() - count)).unwrap_or(0);
        let changed = before..old.len() - behind;
        let cuts = |range: &Range<usize>| chips.iter().any(|chip| is_cut(chip, range));
        // If text was only inserted or only deleted, the change may have happened at any of several places.
        let length = changed.len();
        let is_one_sided = length == 0 || before + behind == new.len();
        let first = (old.len() - length).saturating_sub(common_suffix(old, new)).min(before);
        let edges = chips.iter().flat_map(|chip| [chip.start, chip.end]);
        let mut starts = edges.flat_map(|edge| [Some(edge), edge.checked_sub(length)]).flatten().chain([first]);
        let is_clean = |start: usize| (first..=before).contains(&start) && !cuts(&(start..start + length));
        if !cuts(&changed) || is_one_sided && starts.any(is_clean) {
            return None;
        }
        let mut range = changed.clone();
        for chip in chips.iter().filter(|chip| is_cut(chip, &changed)) {
            range = if length == 0 { chip.end..chip.end } else { range.start.min(chip.start)..range.end.max(chip.end) };
        }
        Some(WholeChange { range, text: &new[before..new.len() - behind] })
    }

    /// Returns the length, in characters, of the chip at the end or start of `text`, if there is one.
    pub(super) fn chip_length(&self, text: &str, is_at_end: bool) -> Option<usize> {
        let is_here = |chip: &&Chip| if is_at_end { text.ends_with(&chip.label) } else { text.starts_with(&chip.label) };
        self.chips.iter().find(is_here).map(|chip| chip.label.chars().count())
    }

    /// Returns the ranges of long pastes in a text, in order and without overlaps.
    pub(super) fn ranges_in(&mut self, text: &str) -> Vec<Range<usize>> {
        if !is_long(text) {
            return Vec::new();
        }
        let place = |pasted: &Arc<str>| {
            let pasted = pasted.trim();
            text.find(pasted).map(|at| at..at + pasted.len())
        };
        let known: Vec<Range<usize>> = self.known.iter().filter_map(place).collect();
        without_overlaps(known.into_iter().chain(self.marks.find(text)).collect())
    }
}

/// Returns whether replacing the range `changed` would split the chip or remove only part of it.
fn is_cut(chip: &Range<usize>, changed: &Range<usize>) -> bool {
    let touches = changed.start < chip.end && chip.start < changed.end;
    touches && !(changed.start <= chip.start && chip.end <= changed.end)
}

/// Returns the length, in bytes, of the longest common prefix of two texts that consists of whole characters.
fn common_prefix(left: &str, right: &str) -> usize {
    let same = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    (0..=same).rev().find(|count| left.is_char_boundary(*count) && right.is_char_boundary(*count)).unwrap_or(0)
}

/// Returns the length, in bytes, of the longest common suffix of two texts that consists of whole characters.
fn common_suffix(left: &str, right: &str) -> usize {
    let same = left.bytes().rev().zip(right.bytes().rev()).take_while(|(left, right)| left == right).count();
    let is_whole = |count: &usize| left.is_char_boundary(left.len() - count) && right.is_char_boundary(right.len() - count);
    (0..=same).rev().find(is_whole).unwrap_or(0)
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
        assert_eq!(pastes.add(&lines("a", 10), "", ""), None);
        let first = pastes.add(&one, "", "").unwrap();
        assert_eq!(first, "[pasted 10,000 lines]");
        let draft = format!("why? {first}");
        let second = pastes.add(&other, &draft, &draft).unwrap();
        assert_eq!(second, "[pasted 10,000 lines #2]");
        let draft = format!("{draft} and {second} end");
        let whole = format!("why? {one} and {other} end");
        assert_eq!(pastes.unfold(&draft), whole);
        assert_eq!(pastes.ranges_in(&whole).len(), 2);
        assert_eq!(pastes.chip_length("x [pasted 10,000 lines]", true), Some(first.len()));
        // Pastes in a prompt from the history become chips again.
        assert_eq!(pastes.fold(""), "");
        assert_eq!(pastes.unfold(&draft), draft, "a label without its chip is only text");
        let folded = pastes.fold(&whole);
        assert!(folded.len() < 80 && pastes.unfold(&folded) == whole, "{folded}");
    }

    #[test]
    fn only_some_pastes_are_stored() {
        let mut pastes = Pastes::default();
        for number in 0..20 {
            pastes.add(&lines(&number.to_string(), 11), "", "");
        }
        assert_eq!(pastes.known.len(), MAX_PASTES);
    }

    #[test]
    fn a_possible_command_at_the_start_of_a_draft_is_never_hidden() {
        let mut pastes = Pastes::default();
        for start in ["!", " /", "!!"] {
            let command = lines(&format!("{start}rm"), 20);
            assert_eq!(pastes.add(&command, "", " \n"), None, "{start}");
            let label = pastes.add(&command, "run ", "run ").unwrap();
            let folded = pastes.fold(&format!("run {command}"));
            assert!(folded.starts_with("run ") && folded.contains("[pasted"), "{label}: {folded}");
            assert_eq!(pastes.fold(&command), command);
        }
    }

    #[test]
    fn a_paste_that_is_too_large_is_neither_redacted_nor_recorded() {
        let mut pastes = Pastes::default();
        let (small, large) = (lines("small", 100), lines("large", MAX_TEXT_BYTES / 6));
        pastes.record(&small, str::to_owned).unwrap();
        pastes.record(&large, |_| panic!("redacted")).unwrap();
        assert_eq!((pastes.ranges_in(&small).len(), pastes.ranges_in(&large).len()), (1, 0));
    }

    #[test]
    fn stored_pastes_have_a_limit_in_bytes() {
        let mut pastes = Pastes::default();
        let large = |word: &str| format!("{}{}", lines(word, 20), "x".repeat(MAX_BYTES / 2));
        for word in ["a", "b", "c"] {
            pastes.add(&large(word), "", "");
        }
        assert_eq!((pastes.known.len(), pastes.chips.len()), (1, 1));
    }

    #[test]
    fn every_occurrence_of_a_chip_is_its_paste() {
        let mut pastes = Pastes::default();
        let pasted = format!("{}\n", lines("a", 11));
        let label = pastes.add(&pasted, "", "").unwrap();
        assert_eq!(pastes.unfold(&format!("{label} {label}")), format!("{pasted} {pasted}"));
        // Prompts are stored without surrounding whitespace.
        assert_eq!(pastes.fold(pasted.trim()), label);
        assert_eq!(pastes.unfold(&label), pasted.trim());
    }

    #[test]
    fn changes_leave_chips_whole_or_remove_them() {
        let mut pastes = Pastes::default();
        let labels = ["a", "b", "c"].map(|word| {
            let count = 11 + usize::from(word.as_bytes()[0] - b'a');
            pastes.add(&lines(word, count), "", "").unwrap()
        });
        let [one, two, three] = &labels;
        let all = labels.concat();
        let end = all.len();
        let change = |old: &str, new: &str| pastes.whole_change(old, new).map(|change| (change.range, change.text.to_owned()));
        // Changes that remove, move or add whole chips are left as they are.
        for new in [format!("{one}{three}"), format!("{two}{three}"), format!("{one}{two}"), String::new(), format!("x{all}x")] {
            assert_eq!(change(&all, &new), None, "{new}");
        }
        assert_eq!(change(&all, &format!("{one}é{two}{three}")), None);
        // A character typed inside a chip goes after the chip.
        let inside = format!("[pasx{}", &all[4..]);
        assert_eq!(change(&all, &inside), Some((one.len()..one.len(), "x".to_owned())));
        // Removing part of a chip removes the whole chip.
        assert_eq!(change(&all, &all[..end - 6]), Some((end - three.len()..end, String::new())));
        assert_eq!(change(&all, &all[5..]), Some((0..one.len(), String::new())));
        let replaced = format!("é{}", &all[5..]);
        assert_eq!(change(&all, &replaced), Some((0..one.len(), "é".to_owned())));
    }
}
