//! Pairing of similar changed lines, and the words that differ between the lines of a pair.

use std::ops::Range;

use similar::{ChangeTag, TextDiff};

use super::entries::DiffEntry;
use crate::protocol::DiffSide;

/// Maximum length, in bytes, of lines that are compared with each other.
const LINE: usize = 2000;
/// Maximum number of added lines with which each removed line is compared.
const REACH: usize = 8;
/// Minimum similarity, from 0 to 1, at which two lines are treated as versions of the same line.
const ALIKE: f32 = 0.4;

/// Pairs removed lines with the added lines that follow them. Each removed line in turn is paired with the most similar
/// of the next few unpaired added lines.
pub(super) fn pair(entries: &mut [DiffEntry]) {
    let mut at = 0;
    while at < entries.len() {
        let removed = run(entries, at, DiffSide::Removed);
        let added = run(entries, removed.end, DiffSide::Added);
        if !removed.is_empty() && !added.is_empty() {
            pair_runs(entries, removed, added.clone());
        }
        at = added.end.max(at + 1);
    }
}

fn run(entries: &[DiffEntry], start: usize, side: DiffSide) -> Range<usize> {
    let note = |entry: &DiffEntry| matches!(entry, DiffEntry::Note(_));
    let len = entries[start.min(entries.len())..].iter().take_while(|entry| entry.side() == Some(side) || note(entry)).count();
    start..start + len
}

fn pair_runs(entries: &mut [DiffEntry], removed: Range<usize>, added: Range<usize>) {
    let mut next = added.start;
    for old in removed {
        let candidates = next..added.end.min(next + REACH);
        let likeness =
            |new: &usize| line_text(entries, old).zip(line_text(entries, *new)).map_or(0.0, |(old, new)| likeness(old, new));
        let rated = candidates.map(|new| (likeness(&new), new)).filter(|(likeness, _)| *likeness >= ALIKE);
        // Among equally similar lines, the first one is used.
        let best = rated.reduce(|best, other| if other.0 > best.0 { other } else { best });
        if let Some((_, new)) = best {
            set_partner(entries, old, new);
            set_partner(entries, new, old);
            next = new + 1;
        }
    }
}

fn line_text(entries: &[DiffEntry], index: usize) -> Option<&str> {
    match entries.get(index)? {
        DiffEntry::Line(line) => Some(&line.text),
        DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_) => None,
    }
}

fn set_partner(entries: &mut [DiffEntry], of: usize, partner: usize) {
    if let Some(DiffEntry::Line(line)) = entries.get_mut(of) {
        line.partner = Some(partner);
    }
}

/// Returns the similarity of two lines, from 0 to 1: the fraction of the longer line that is a common prefix or suffix.
/// It is cheap enough to compute for every pair.
fn likeness(old: &str, new: &str) -> f32 {
    let (old, new) = (old.trim(), new.trim());
    let longest = old.len().max(new.len());
    if longest == 0 || longest > LINE {
        return 0.0;
    }
    let same = |(one, two): &(u8, u8)| one == two;
    let head = old.bytes().zip(new.bytes()).take_while(same).count();
    let shortest = old.len().min(new.len());
    let tail = old.bytes().rev().zip(new.bytes().rev()).take(shortest - head).take_while(same).count();
    (head + tail) as f32 / longest as f32
}

/// Returns the byte ranges of the words in `line` that are missing from `partner`. `side` is the side of `line`.
pub(super) fn differing(line: &str, partner: &str, side: DiffSide) -> Vec<Range<usize>> {
    let (old, new, wanted) = match side {
        DiffSide::Removed => (line, partner, ChangeTag::Delete),
        DiffSide::Added | DiffSide::Context => (partner, line, ChangeTag::Insert),
    };
    let diff = TextDiff::from_unicode_words(old, new);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for change in diff.iter_all_changes() {
        let len = change.value().len();
        if change.tag() == wanted {
            match ranges.last_mut() {
                Some(last) if line[last.end..at].trim().is_empty() => last.end = at + len,
                _ => ranges.push(at..at + len),
            }
        }
        if change.tag() == wanted || change.tag() == ChangeTag::Equal {
            at += len;
        }
    }
    ranges
}
