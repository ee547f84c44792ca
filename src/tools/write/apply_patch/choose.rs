//! Which of its places each hunk has, so that all of them fit into one file: one reading, or none.

use super::find::Places;
use super::parse::{Hunk, Kind};
use std::ops::Range;

/// Readings that are compared; with more, the place counts as unclear.
const COMPARED_READINGS: usize = 64;
/// Steps of the search for readings in another order than that of the patch.
const SEARCHED: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// This hunk could stand at several places.
    Several { hunk: usize, starts: Vec<usize> },
    /// These two want to change the same lines.
    Overlap { first: usize, second: usize },
}

/// The lines that a hunk covers in the file, and those of them from its first change to its last.
pub fn span(hunk: &Hunk, places: &Places, start: usize, core: bool) -> Range<usize> {
    let mut at = start;
    let (mut first, mut last) = (None, start);
    for line in &hunk.lines {
        let changes = line.kind != Kind::Context;
        if changes {
            first.get_or_insert(at);
        }
        at += usize::from(line.kind != Kind::Added);
        if changes {
            last = at;
        }
    }
    match first {
        Some(first) if core => first..last,
        Some(_) | None => start..at - places.dropped,
    }
}

/// One place for each hunk. `same` says whether two choices give the same text.
pub fn choose(hunks: &[Hunk], places: &[Places], same: &dyn Fn(&[usize], &[usize]) -> bool) -> Result<Vec<usize>, Unclear> {
    let all: Vec<&[usize]> = places.iter().map(|places| places.starts.as_slice()).collect();
    let in_blocks: Vec<&[usize]> = places
        .iter()
        .map(|places| if places.in_block.is_empty() { places.starts.as_slice() } else { places.in_block.as_slice() })
        .collect();
    let mut unclear = None;
    // Hunks that share lines that stay are taken where there is no other reading.
    for core in [false, true] {
        let spans = |hunk: usize, start| span(&hunks[hunk], &places[hunk], start, core);
        for starts in [&all, &in_blocks] {
            let Some((earliest, latest)) = bounds(starts, &spans) else { break };
            if earliest == latest || all_same(starts, &spans, same, &earliest) {
                return Ok(earliest);
            }
            if let Some(hunk) = (0..hunks.len()).find(|hunk| earliest[*hunk] != latest[*hunk]) {
                let between = earliest[hunk]..=latest[hunk];
                let starts = starts[hunk].iter().copied().filter(|start| between.contains(start)).collect();
                unclear = Some(Unclear::Several { hunk, starts });
            }
        }
        if let Some(unclear) = unclear {
            return Err(unclear);
        }
    }
    for core in [false, true] {
        let spans = |hunk: usize, start| span(&hunks[hunk], &places[hunk], start, core);
        let mut found = Vec::new();
        let mut steps = SEARCHED;
        in_any_order(&all, &spans, &mut Vec::new(), &mut found, &mut steps);
        let Some(first) = found.first() else { continue };
        if steps > 0 && found.iter().all(|other| same(first, other)) {
            return Ok(first.clone());
        }
        let hunk = (0..hunks.len()).find(|hunk| all[*hunk].len() > 1).unwrap_or(0);
        return Err(Unclear::Several { hunk, starts: all[hunk].to_vec() });
    }
    Err(overlap(hunks, places))
}

type Spans<'a> = &'a dyn Fn(usize, usize) -> Range<usize>;

/// The first and the last reading in which the hunks stand in their order.
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

/// Whether every reading in order comes to the same text as this one.
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

fn in_any_order(starts: &[&[usize]], spans: Spans<'_>, taken: &mut Vec<usize>, found: &mut Vec<Vec<usize>>, steps: &mut usize) {
    let hunk = taken.len();
    if hunk == starts.len() {
        found.push(taken.clone());
        return;
    }
    for start in starts[hunk] {
        if *steps == 0 || found.len() > COMPARED_READINGS {
            *steps = 0;
            return;
        }
        *steps -= 1;
        let span = spans(hunk, *start);
        let free = taken.iter().enumerate().all(|(other, at)| {
            let other = spans(other, *at);
            other.end <= span.start || span.end <= other.start
        });
        if free {
            taken.push(*start);
            in_any_order(starts, spans, taken, found, steps);
            taken.pop();
        }
    }
}

fn overlap(hunks: &[Hunk], places: &[Places]) -> Unclear {
    for second in 0..hunks.len() {
        for first in 0..second {
            let one = span(&hunks[first], &places[first], places[first].starts[0], true);
            let other = span(&hunks[second], &places[second], places[second].starts[0], true);
            if one.start < other.end && other.start < one.end {
                return Unclear::Overlap { first, second };
            }
        }
    }
    Unclear::Overlap { first: 0, second: hunks.len().saturating_sub(1) }
}
