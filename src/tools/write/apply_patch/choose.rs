//! Assigns hunks to positions in such a way that all of them fit. There must be exactly one way to do so.

use super::find::HunkPositions;
use super::parse::{PatchHunk, PatchLineKind};
use std::ops::Range;

/// Maximum number of solutions to compare. If there are more, the position is considered ambiguous.
const COMPARED_READINGS: usize = 64;
/// Maximum number of steps in the search for solutions in which the hunks are in another order than in the patch.
const SEARCHED: usize = 10_000;
/// Maximum number of hunks to examine for overlaps.
const COMPARED_HUNKS: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AmbiguousHunks {
    /// The hunk matches at several positions.
    Several { hunk: usize, starts: Vec<usize> },
    /// The two hunks change the same lines.
    Overlap { first: usize, second: usize },
}

/// Returns the range of lines that a hunk spans. With `core`, includes only the lines from the hunk's first change to
/// its last.
pub(crate) fn span(hunk: &PatchHunk, places: &HunkPositions, start: usize, core: bool) -> Range<usize> {
    let mut at = start;
    let (mut first, mut last) = (None, start);
    for line in &hunk.lines {
        let changes = line.kind != PatchLineKind::Context;
        if changes {
            first.get_or_insert(at);
        }
        at += usize::from(line.kind != PatchLineKind::Added);
        if changes {
            last = at;
        }
    }
    match first {
        Some(first) if core => first..last,
        Some(_) | None => start..at - places.dropped,
    }
}

/// Chooses a position for each hunk. `same` returns whether two choices lead to the same result.
pub(crate) fn choose(
    hunks: &[PatchHunk],
    places: &[HunkPositions],
    same: &dyn Fn(&[usize], &[usize]) -> bool,
) -> Result<Vec<usize>, AmbiguousHunks> {
    let all: Vec<&[usize]> = places.iter().map(|places| places.starts.as_slice()).collect();
    let in_blocks: Vec<&[usize]> = places
        .iter()
        .map(|places| if places.in_block.is_empty() { places.starts.as_slice() } else { places.in_block.as_slice() })
        .collect();
    let extents: Vec<[Range<usize>; 2]> =
        hunks.iter().zip(places).map(|(hunk, places)| [false, true].map(|core| span(hunk, places, 0, core))).collect();
    let extent = |hunk: usize, start: usize, core: bool| {
        let extent: &Range<usize> = &extents[hunk][usize::from(core)];
        extent.start + start..extent.end + start
    };
    let mut unclear = None;
    // Hunks may share unchanged lines only if there is no other solution.
    for core in [false, true] {
        let spans = |hunk: usize, start| extent(hunk, start, core);
        for starts in [&all, &in_blocks] {
            let Some((earliest, latest)) = bounds(starts, &spans) else { break };
            if earliest == latest || all_same(starts, &spans, same, &earliest) {
                return Ok(earliest);
            }
            if let Some(hunk) = (0..hunks.len()).find(|hunk| earliest[*hunk] != latest[*hunk]) {
                let between = earliest[hunk]..=latest[hunk];
                let starts = starts[hunk].iter().copied().filter(|start| between.contains(start)).collect();
                unclear = Some(AmbiguousHunks::Several { hunk, starts });
            }
        }
        if let Some(unclear) = unclear {
            return Err(unclear);
        }
    }
    for core in [false, true] {
        let spans = |hunk: usize, start| extent(hunk, start, core);
        let (found, all_of_them) = unordered_readings(&all, &spans);
        let Some(first) = found.first() else { continue };
        if all_of_them && found.iter().all(|other| same(first, other)) {
            return Ok(first.clone());
        }
        let hunk = (0..hunks.len()).find(|hunk| all[*hunk].len() > 1).unwrap_or(0);
        return Err(AmbiguousHunks::Several { hunk, starts: all[hunk].to_vec() });
    }
    Err(overlap(&all, &|hunk, start| extent(hunk, start, true)))
}

type Spans<'a> = &'a dyn Fn(usize, usize) -> Range<usize>;

/// Returns the first and the last solution in which the hunks are in order. Returns `None` if there is none.
fn bounds(starts: &[&[usize]], spans: Spans<'_>) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut free = 0;
    let mut earliest = Vec::new();
    for (hunk, starts) in starts.iter().enumerate() {
        let start = starts.iter().copied().find(|start| spans(hunk, *start).start >= free)?;
        free = spans(hunk, start).end;
        earliest.push(start);
    }
    let mut end = usize::MAX;
    let mut latest = Vec::new();
    for (hunk, starts) in starts.iter().enumerate().rev() {
        let start = starts.iter().rev().copied().find(|start| spans(hunk, *start).end <= end)?;
        end = spans(hunk, start).start;
        latest.push(start);
    }
    latest.reverse();
    Some((earliest, latest))
}

/// Returns whether every solution in which the hunks are in order produces the same text as this one.
fn all_same(starts: &[&[usize]], spans: Spans<'_>, same: &dyn Fn(&[usize], &[usize]) -> bool, one: &[usize]) -> bool {
    let mut readings: Vec<Vec<usize>> = vec![Vec::new()];
    for (hunk, starts) in starts.iter().enumerate() {
        let mut longer = Vec::new();
        for reading in &readings {
            let free = reading.last().map_or(0, |start| spans(hunk - 1, *start).end);
            for start in starts.iter().filter(|start| spans(hunk, **start).start >= free) {
                longer.push([reading.as_slice(), &[*start]].concat());
                if longer.len() > COMPARED_READINGS {
                    return false;
                }
            }
        }
        readings = longer;
    }
    readings.iter().all(|other| same(one, other))
}

/// Returns the solutions without overlaps, whatever the order of the hunks, and whether the list is complete.
fn unordered_readings(starts: &[&[usize]], spans: Spans<'_>) -> (Vec<Vec<usize>>, bool) {
    if starts.iter().all(|starts| starts.len() == 1) {
        let only: Vec<usize> = starts.iter().map(|starts| starts[0]).collect();
        let mut taken: Vec<Range<usize>> = only.iter().enumerate().map(|(hunk, start)| spans(hunk, *start)).collect();
        taken.sort_by_key(|span| (span.start, span.end));
        let apart = taken.windows(2).all(|pair| pair[0].end <= pair[1].start);
        return (if apart { vec![only] } else { Vec::new() }, true);
    }
    let (mut found, mut steps) = (Vec::new(), SEARCHED);
    // The next position to try for each placed hunk and for the current one.
    let (mut next, mut taken) = (vec![0], Vec::<usize>::new());
    while let Some(tried) = next.last_mut() {
        let hunk = taken.len();
        let Some(start) = starts.get(hunk).and_then(|starts| starts.get(*tried)).copied() else {
            if hunk == starts.len() {
                found.push(taken.clone());
            }
            next.pop();
            taken.pop();
            continue;
        };
        if steps == 0 || found.len() > COMPARED_READINGS {
            return (found, false);
        }
        steps -= 1;
        *tried += 1;
        let span = spans(hunk, start);
        let free = taken.iter().enumerate().all(|(other, at)| {
            let other = spans(other, *at);
            other.end <= span.start || span.end <= other.start
        });
        if free {
            taken.push(start);
            next.push(0);
        }
    }
    (found, true)
}

fn overlap(starts: &[&[usize]], spans: Spans<'_>) -> AmbiguousHunks {
    for second in 0..starts.len().min(COMPARED_HUNKS) {
        for first in 0..second {
            let (one, other) = (spans(first, starts[first][0]), spans(second, starts[second][0]));
            if one.start < other.end && other.start < one.end {
                return AmbiguousHunks::Overlap { first, second };
            }
        }
    }
    AmbiguousHunks::Overlap { first: 0, second: starts.len().saturating_sub(1) }
}
