//! Unified and side-by-side layouts, which determine the lines that share a row.

use super::entries::DiffEntry;
use crate::protocol::DiffSide;
use std::ops::Range;

/// Layout options of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether the old and new sides are shown next to each other.
    pub beside: bool,
    /// Whether long lines are wrapped. Otherwise, they are truncated and marked as such.
    pub wraps: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { beside: false, wraps: true }
    }
}

/// Group of diff entries that share rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    One(usize),
    /// Indexes of an old and a new line that share rows. A side without a line is `None`.
    Two(Option<usize>, Option<usize>),
}

impl Unit {
    pub(crate) fn entries(self) -> impl Iterator<Item = usize> {
        let (one, other) = match self {
            Self::One(entry) => (Some(entry), None),
            // A context line has the same entry on both sides.
            Self::Two(old, new) => (old, new.filter(|new| old != Some(*new))),
        };
        one.into_iter().chain(other)
    }
}

pub(super) fn units(entries: &[DiffEntry], beside: bool) -> Vec<Unit> {
    if !beside {
        return (0..entries.len()).map(Unit::One).collect();
    }
    let mut units = Vec::with_capacity(entries.len());
    let mut first = 0;
    for file in entries.chunk_by(|_, next| !matches!(next, DiffEntry::File(_))) {
        if has_both_sides(file) {
            pair(entries, first..first + file.len(), &mut units);
        } else {
            units.extend((first..first + file.len()).map(Unit::One));
        }
        first += file.len();
    }
    units
}

/// Returns whether a file exists in both the old and the new version, as opposed to having been created or deleted.
fn has_both_sides(file: &[DiffEntry]) -> bool {
    let has = |side: DiffSide| file.iter().any(|entry| entry.side() == Some(side));
    has(DiffSide::Context) || has(DiffSide::Added) == has(DiffSide::Removed)
}

/// Adds the entries of one file as units in which old and new lines share rows.
fn pair(entries: &[DiffEntry], file: Range<usize>, units: &mut Vec<Unit>) {
    let mut at = file.start;
    while at < file.end {
        let end = at
            + entries[at..file.end]
                .iter()
                .take_while(|entry| matches!(entry.side(), Some(DiffSide::Removed | DiffSide::Added)))
                .count();
        if end == at {
            units.push(match entries[at].side() {
                Some(_) => Unit::Two(Some(at), Some(at)),
                None => Unit::One(at),
            });
            at += 1;
            continue;
        }
        let of = |side| (at..end).filter(move |entry| entries[*entry].side() == Some(side)).collect::<Vec<_>>();
        zip(entries, &of(DiffSide::Removed), &of(DiffSide::Added), units);
        at = end;
    }
}

/// Adds a run of changed lines. Paired lines share rows. The lines between the pairs share rows in the order in which
/// they appear.
fn zip(entries: &[DiffEntry], removed: &[usize], added: &[usize], units: &mut Vec<Unit>) {
    let (mut old, mut new) = (0, 0);
    let mut fill = |old: &mut usize, new: &mut usize, until: (usize, usize)| {
        while *old < until.0 || *new < until.1 {
            let left = (*old < until.0).then(|| removed[*old]);
            let right = (*new < until.1).then(|| added[*new]);
            units.push(Unit::Two(left, right));
            (*old, *new) = ((*old + 1).min(until.0), (*new + 1).min(until.1));
        }
    };
    for (place, entry) in removed.iter().enumerate() {
        let partner = match &entries[*entry] {
            DiffEntry::Line(line) => line.partner,
            DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_) => None,
        };
        let partner = partner.and_then(|partner| added.iter().position(|added| *added == partner)).filter(|at| *at >= new);
        if let Some(partner) = partner {
            fill(&mut old, &mut new, (place, partner));
            fill(&mut old, &mut new, (place + 1, partner + 1));
        }
    }
    fill(&mut old, &mut new, (removed.len(), added.len()));
}
