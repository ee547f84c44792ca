//! Applies hunks to a text. Lines that do not change are preserved, and new lines receive the line endings of the lines
//! around them.

use super::choose::{AmbiguousHunks, choose, span};
use super::find::{HunkNotFound, HunkPositions, Lines};
use super::parse::{PatchHunk, PatchLine, PatchLineKind};
use crate::tools::document::line_breaks::{Breaks, has_lone_cr};
use std::ops::Range;

/// The text with the hunks applied, and the positions at which each hunk matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedHunks {
    pub text: String,
    pub places: Vec<HunkPositions>,
}

/// Why hunks do not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HunkMismatch {
    Lost { hunk: usize, why: HunkNotFound },
    Unclear(AmbiguousHunks),
}

/// Maximum number of positions to compare for all hunks together.
const MAX_PLACES: usize = 2_000_000;

/// Applies `hunks` to `text`. Positions that overlap with one of the `hidden` ranges, which refer to the text with LF
/// endings, are ignored.
///
/// A lone CR ends a line if the hunks match that way, and is otherwise an ordinary character.
pub(crate) fn apply(text: &str, hunks: &[PatchHunk], hidden: &[Range<usize>]) -> Result<AppliedHunks, HunkMismatch> {
    if !has_lone_cr(text) {
        return apply_with_breaks(Breaks::Lf, text, hunks, hidden);
    }
    let parted: Vec<PatchHunk> = hunks.iter().map(at_cr).collect();
    apply_with_breaks(Breaks::Cr, text, &parted, hidden).or_else(|misfit| {
        match apply_with_breaks(Breaks::Lf, text, hunks, hidden) {
            Ok(applied) => Ok(applied),
            // An ambiguous place is more informative than a missing one.
            Err(other @ HunkMismatch::Unclear(_)) if matches!(misfit, HunkMismatch::Lost { .. }) => Err(other),
            Err(_) => Err(misfit),
        }
    })
}

/// Splits the lines to search for at lone CRs, as the file's lines are split.
fn at_cr(hunk: &PatchHunk) -> PatchHunk {
    let parted = |line: &PatchLine| -> Vec<PatchLine> {
        if line.kind == PatchLineKind::Added || !line.text.contains('\r') {
            return vec![line.clone()];
        }
        line.text.split('\r').map(|text| PatchLine { text: text.to_owned(), ..line.clone() }).collect()
    };
    PatchHunk { lines: hunk.lines.iter().flat_map(parted).collect(), ..hunk.clone() }
}

fn apply_with_breaks(
    breaks: Breaks,
    text: &str,
    hunks: &[PatchHunk],
    hidden: &[Range<usize>],
) -> Result<AppliedHunks, HunkMismatch> {
    let lines = Lines::new(text, breaks);
    let offsets = offsets(&lines);
    let refused = |start: usize, length: usize| {
        let (at, end) = (offsets[start], offsets[start + length]);
        let near = hidden.partition_point(|range| range.end <= at);
        hidden[near..].iter().take_while(|range| range.start < end).any(|range| range.start < at || end < range.end)
    };
    let mut places: Vec<HunkPositions> = Vec::new();
    let mut room = MAX_PLACES;
    for (index, hunk) in hunks.iter().enumerate() {
        let found = lines.find(hunk, index + 1 == hunks.len(), &refused);
        let found = found.map_err(|why| HunkMismatch::Lost { hunk: index, why })?;
        let Some(rest) = room.checked_sub(found.starts.len()) else {
            return Err(HunkMismatch::Unclear(AmbiguousHunks::Several { hunk: index, starts: found.starts }));
        };
        room = rest;
        places.push(found);
    }
    let whole: Vec<(&str, &'static str)> =
        breaks.lines(text).into_iter().map(|line| (breaks.body(line), breaks.ending(line))).collect();
    let same = |one: &[usize], other: &[usize]| {
        one == other || join_blocks(&whole, hunks, &places, one) == join_blocks(&whole, hunks, &places, other)
    };
    let starts = choose(hunks, &places, &same).map_err(HunkMismatch::Unclear)?;
    Ok(AppliedHunks { text: join_blocks(&whole, hunks, &places, &starts), places })
}

/// Returns the position at which each line starts in the text with LF endings, followed by the end of the last line.
fn offsets(lines: &Lines<'_>) -> Vec<usize> {
    let mut at = 0;
    let ends = lines.bodies.iter().map(|body| {
        at += body.len() + 1;
        at
    });
    std::iter::once(0).chain(ends).collect()
}

/// A line, followed by its ending.
type LineWithEnding<'a> = (&'a str, &'static str);

/// Lines to remove, and the lines that replace them.
struct LineReplacement<'a> {
    at: usize,
    removed: usize,
    added: Vec<&'a str>,
}

fn join_blocks(whole: &[LineWithEnding<'_>], hunks: &[PatchHunk], places: &[HunkPositions], starts: &[usize]) -> String {
    let mut blocks: Vec<LineReplacement<'_>> =
        hunks.iter().zip(places).zip(starts).flat_map(|((hunk, places), start)| blocks(hunk, places, *start)).collect();
    blocks.sort_by_key(|block| (block.at, block.removed));
    let mut result: Vec<LineWithEnding<'_>> = Vec::with_capacity(whole.len());
    let mut done = 0;
    for block in &blocks {
        result.extend_from_slice(&whole[done..block.at]);
        // The last line may have no ending; then the lines above decide.
        let before = whole[..block.at].iter().rev().take(2).map(|line| line.1).find(|ending| !ending.is_empty());
        let after = || whole.get(block.at).map(|line| line.1).filter(|ending| !ending.is_empty());
        let mut near = before.or_else(after).unwrap_or("\n");
        for (index, line) in block.added.iter().enumerate() {
            let replaced = whole[block.at..block.at + block.removed].get(index).map(|line| line.1);
            near = replaced.filter(|ending| !ending.is_empty()).unwrap_or(near);
            result.push((line, near));
        }
        done = block.at + block.removed;
    }
    result.extend_from_slice(&whole[done..]);
    close(&mut result, whole, hunks, (places, starts), &blocks);
    let mut text = String::new();
    for (body, ending) in result {
        // An empty line after a lone CR would merge with that line's ending.
        let merges = body.is_empty() && ending == "\n" && text.ends_with('\r');
        text.push_str(body);
        text.push_str(if merges { "\r\n" } else { ending });
    }
    text
}

fn blocks<'a>(hunk: &'a PatchHunk, places: &HunkPositions, start: usize) -> Vec<LineReplacement<'a>> {
    let end = span(hunk, places, start, false).end;
    let mut blocks: Vec<LineReplacement<'a>> = Vec::new();
    let (mut at, mut open) = (start, false);
    // Lines that are not in the file can be neither removed nor replaced.
    let phantoms = hunk.lines.iter().rev().filter(|line| line.kind == PatchLineKind::Removed).take(places.dropped).count();
    let last_is_empty = hunk.added_lines().last().is_some_and(str::is_empty);
    let kept = hunk.added_lines().count() - usize::from(phantoms > 0 && last_is_empty);
    let mut seen = 0;
    for line in &hunk.lines {
        if line.kind == PatchLineKind::Context {
            open = false;
            at += 1;
            continue;
        }
        if !open {
            blocks.push(LineReplacement { at, removed: 0, added: Vec::new() });
            open = true;
        }
        let Some(block) = blocks.last_mut() else { continue };
        if line.kind == PatchLineKind::Added {
            seen += 1;
            if seen <= kept {
                block.added.push(&line.text);
            }
        } else if at < end {
            block.removed += 1;
            at += 1;
        }
    }
    // Lines added after phantom lines go to the end of the file.
    for block in &mut blocks {
        block.at = block.at.min(end);
    }
    blocks
}

/// Adds endings to all lines but the last one, which keeps its original ending or receives the one in the patch.
fn close(
    result: &mut [LineWithEnding<'_>],
    whole: &[LineWithEnding<'_>],
    hunks: &[PatchHunk],
    at: (&[HunkPositions], &[usize]),
    blocks: &[LineReplacement<'_>],
) {
    let was_open = whole.last().is_some_and(|line| line.1.is_empty());
    let touched = blocks.iter().any(|block| block.at + block.removed == whole.len() && !block.added.is_empty());
    let last_hunk =
        hunks.iter().zip(at.0).zip(at.1).find(|((hunk, places), start)| span(hunk, places, **start, false).end == whole.len());
    let says = last_hunk.and_then(|((hunk, _), _)| hunk.final_newline.or(hunk.at_end.then_some(true)));
    let mut near = "\n";
    let count = result.len();
    for (index, (body, ending)) in result.iter_mut().enumerate() {
        if index + 1 < count {
            if ending.is_empty() {
                *ending = near;
            }
            near = ending;
            continue;
        }
        if !touched {
            continue;
        }
        // If a line is replaced by itself, only its ending can change.
        let same_line = was_open && whole.last().is_some_and(|line| line.0 == *body);
        let ends = says.unwrap_or(!was_open || same_line);
        *ending = match (ends, ending.is_empty()) {
            (true, true) => near,
            (true, false) => ending,
            (false, _) => "",
        };
    }
}
