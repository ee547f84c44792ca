//! Searches a file for the lines of a hunk, matching them as exactly as possible.

use super::parse::{PatchHunk, PatchLineKind};
use crate::tools::document::line_breaks::Breaks;
use crate::tools::write::find_lines::occurrences;
use crate::tools::write::matching::typed_equivalent;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

/// How exactly lines are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchLevel {
    Exact,
    TrailingSpace,
    OuterSpace,
    Typography,
}

const LEVELS: [MatchLevel; 4] = [MatchLevel::Exact, MatchLevel::TrailingSpace, MatchLevel::OuterSpace, MatchLevel::Typography];

/// Minimum number of characters in a header for it to be one that git may have truncated.
const CUT_HEADER_CHARACTERS: usize = 40;
/// Maximum number of empty lines that may be ignored at the end of a hunk.
const MAX_BLANK: usize = 32;

/// The lines of a file, without their endings.
pub(crate) struct Lines<'a> {
    pub bodies: Vec<&'a str>,
    /// Normalized lines for each level, created on demand.
    levels: [OnceCell<LineNumbers<'a>>; LEVELS.len()],
    /// For each line, the first line after the block that it opens.
    block_ends: OnceCell<Vec<usize>>,
}

/// A number for each line. Equal lines have equal numbers.
struct LineNumbers<'a> {
    numbers: Vec<usize>,
    known: HashMap<Cow<'a, str>, usize>,
    /// The lines that have each number.
    lines: Vec<Vec<usize>>,
}

/// Positions at which a hunk matches, and the differences that had to be ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HunkPositions {
    pub level: MatchLevel,
    /// First line of each match, in ascending order.
    pub starts: Vec<usize>,
    /// First line of each match that is inside the block opened by the header.
    pub in_block: Vec<usize>,
    /// Number of lines at the end of the hunk that were ignored.
    pub dropped: usize,
    /// A header of the hunk that matches no line in the file.
    pub unknown_header: Option<String>,
    /// Whether the hunk contains `*** End of File` but does not match at the end of the file.
    pub not_at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HunkNotFound {
    /// The lines do not occur in the file.
    Nowhere,
    /// The lines occur only before the line to which the header refers.
    OnlyBefore { header: String, starts: Vec<usize> },
    /// The hunk consists only of added lines, but the file is not empty.
    NothingToFind,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str, breaks: Breaks) -> Self {
        let bodies: Vec<&str> = breaks.lines(text).into_iter().map(|line| breaks.body(line)).collect();
        Self { bodies, levels: Default::default(), block_ends: OnceCell::new() }
    }

    fn level(&self, level: MatchLevel) -> &LineNumbers<'a> {
        self.levels[level as usize].get_or_init(|| LineNumbers::normalize(&self.bodies, level))
    }

    /// Finds the positions of a hunk at the most exact level at which there are any. Positions that `refused` rejects
    /// are omitted.
    pub(crate) fn find(
        &self,
        hunk: &PatchHunk,
        is_last: bool,
        refused: &dyn Fn(usize, usize) -> bool,
    ) -> Result<HunkPositions, HunkNotFound> {
        let old: Vec<&str> = hunk.old().collect();
        if old.is_empty() {
            return self.end_for(hunk, is_last);
        }
        let mut lost = HunkNotFound::Nowhere;
        for (dropped, at_end) in attempts(hunk, &old) {
            let wanted = &old[..old.len() - dropped];
            // Without any non-empty line, every position would match.
            if dropped > 0 && wanted.iter().all(|line| line.trim().is_empty()) {
                continue;
            }
            for level in LEVELS {
                let mut starts = self.find_starts(wanted, level);
                starts.retain(|start| !refused(*start, wanted.len()) && (!at_end || start + wanted.len() == self.bodies.len()));
                if starts.is_empty() {
                    continue;
                }
                let (after, unknown_header) = self.below_headers(&hunk.headers, &starts, wanted.len());
                if after.is_empty() {
                    if lost == HunkNotFound::Nowhere {
                        lost = HunkNotFound::OnlyBefore { header: hunk.headers.join(" / "), starts };
                    }
                    continue;
                }
                let in_block = self.starts_in_block(&hunk.headers, &after);
                let not_at_end = hunk.at_end && !at_end;
                return Ok(HunkPositions { level, starts: after, in_block, dropped, unknown_header, not_at_end });
            }
        }
        Err(lost)
    }

    /// Returns the end of the file as the position for lines that are added without context. Fails unless the hunk says
    /// so, the file is empty, or the hunk is the last one and has no header.
    fn end_for(&self, hunk: &PatchHunk, is_last: bool) -> Result<HunkPositions, HunkNotFound> {
        let end = self.bodies.len();
        if end > 0 && !hunk.at_end && !(is_last && hunk.headers.is_empty()) {
            return Err(HunkNotFound::NothingToFind);
        }
        let places = HunkPositions {
            level: MatchLevel::Exact,
            starts: vec![end],
            in_block: Vec::new(),
            dropped: 0,
            unknown_header: None,
            not_at_end: false,
        };
        Ok(places)
    }

    fn find_starts(&self, wanted: &[&str], level: MatchLevel) -> Vec<usize> {
        let numbered = self.level(level);
        let wanted: Option<Vec<usize>> = wanted.iter().map(|line| numbered.known.get(&level.normalize(line)).copied()).collect();
        wanted.map_or_else(Vec::new, |wanted| numbered.find(&wanted))
    }

    /// Returns those of `starts` that come after all headers, which must occur in the given order, and the first header
    /// that matches no line, if any. Headers that match no line are otherwise ignored.
    fn below_headers(&self, headers: &[String], starts: &[usize], length: usize) -> (Vec<usize>, Option<String>) {
        let mut unknown = None;
        // The earliest line that can be the last header.
        let mut earliest = None;
        for header in headers {
            let lines = self.header_lines(header);
            if lines.is_empty() {
                unknown.get_or_insert_with(|| header.clone());
                continue;
            }
            match lines.into_iter().find(|line| earliest.is_none_or(|above| *line > above)) {
                Some(line) => earliest = Some(line),
                None => return (Vec::new(), unknown),
            }
        }
        // Some models repeat the header as the first context line.
        let after = starts.iter().copied().filter(|start| earliest.is_none_or(|line| line < start + length)).collect();
        (after, unknown)
    }

    fn starts_in_block(&self, headers: &[String], starts: &[usize]) -> Vec<usize> {
        let blocks = headers.iter().map(|header| self.header_lines(header)).filter(|lines| !lines.is_empty());
        let openers = blocks.reduce(|outer, inner| self.inside_blocks(&outer, &inner));
        openers.map_or_else(Vec::new, |openers| self.inside_blocks(&openers, starts))
    }

    /// Returns those of `lines` that are inside a block opened by one of `openers`, that is, no line in between is
    /// indented less than the block's first line. Both lists are in ascending order.
    fn inside_blocks(&self, openers: &[usize], lines: &[usize]) -> Vec<usize> {
        let ends = self.block_ends.get_or_init(|| block_ends(&self.bodies));
        let mut openers = openers.iter().copied().peekable();
        let mut reach = 0;
        let mut inside = |line: &usize| {
            while let Some(opener) = openers.next_if(|opener| opener < line) {
                reach = reach.max(ends[opener]);
            }
            *line < reach
        };
        lines.iter().copied().filter(|line| inside(line)).collect()
    }

    /// Returns the lines to which a header may refer: lines that equal it at the most exact level possible or, because
    /// git truncates long headers, lines that start with it.
    fn header_lines(&self, header: &str) -> Vec<usize> {
        for level in LEVELS {
            let found = self.find_starts(&[header], level);
            if !found.is_empty() {
                return found;
            }
        }
        if header.chars().count() < CUT_HEADER_CHARACTERS {
            return Vec::new();
        }
        let begins = |line: &str| line.trim().starts_with(header.trim());
        self.bodies.iter().enumerate().filter(|(_, line)| begins(line)).map(|(index, _)| index).collect()
    }
}

impl<'a> LineNumbers<'a> {
    fn normalize(bodies: &[&'a str], level: MatchLevel) -> Self {
        let mut known: HashMap<Cow<'a, str>, usize> = HashMap::new();
        let mut lines: Vec<Vec<usize>> = Vec::new();
        let mut numbers = Vec::with_capacity(bodies.len());
        for (index, line) in bodies.iter().enumerate() {
            let number = *known.entry(level.normalize(line)).or_insert(lines.len());
            if number == lines.len() {
                lines.push(Vec::new());
            }
            lines[number].push(index);
            numbers.push(number);
        }
        Self { numbers, known, lines }
    }

    /// Returns the positions at which these numbers occur one after the other. Takes linear time.
    fn find(&self, wanted: &[usize]) -> Vec<usize> {
        let rarest = wanted.iter().enumerate().min_by_key(|(_, number)| self.lines[**number].len());
        let Some((offset, number)) = rarest else { return Vec::new() };
        let candidates = &self.lines[*number];
        if candidates.len().saturating_mul(wanted.len()) > self.numbers.len() {
            return occurrences(&self.numbers, wanted);
        }
        let is_there = |start: &usize| self.numbers.get(*start..start + wanted.len()).is_some_and(|there| there == wanted);
        candidates.iter().filter_map(|line| line.checked_sub(offset)).filter(is_there).collect()
    }
}

/// Returns, for each line, the next line that is not indented more deeply, ignoring empty lines and brackets.
fn block_ends(bodies: &[&str]) -> Vec<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut ends = vec![bodies.len(); bodies.len()];
    // Lines below that close a block, nearest last, each less indented than those after it.
    let mut closing: Vec<(usize, usize)> = Vec::new();
    for (index, body) in bodies.iter().enumerate().rev() {
        let depth = indent(body);
        let nearest = closing.partition_point(|(other, _)| *other <= depth).checked_sub(1);
        ends[index] = nearest.map_or(bodies.len(), |nearest| closing[nearest].1);
        if !body.trim().is_empty() && !body.trim_start().starts_with([')', ']', '}', '{']) {
            while closing.pop_if(|(other, _)| *other >= depth).is_some() {}
            closing.push((depth, index));
        }
    }
    ends
}

/// Returns the variants of a hunk to search for. The first is the whole hunk at the end of the file, if the hunk says
/// so, and the last is the hunk without phantom lines.
fn attempts(hunk: &PatchHunk, old: &[&str]) -> Vec<(usize, bool)> {
    let blank =
        hunk.lines.iter().rev().take_while(|line| line.kind == PatchLineKind::Context && line.bare).take(MAX_BLANK).count();
    // An empty line after the last one is not a line of the file; some models produce it by splitting at line breaks.
    let phantom = usize::from(old.last().is_some_and(|line| line.is_empty()));
    let mut attempts = Vec::new();
    if hunk.at_end {
        attempts.push((0, true));
    }
    attempts.push((0, false));
    attempts.extend((1..=blank).map(|dropped| (dropped, false)));
    if phantom > blank {
        attempts.push((1, true));
    }
    attempts
}

impl MatchLevel {
    pub(crate) fn normalize(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::TrailingSpace => Cow::Borrowed(line.trim_end()),
            Self::OuterSpace => Cow::Borrowed(line.trim()),
            Self::Typography => to_ascii_punctuation(line),
        }
    }
}

/// Replaces typographic characters with the ones found on a keyboard.
fn to_ascii_punctuation(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return Cow::Borrowed(line.trim());
    }
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{00B4}' => text.push('\''),
            '\u{00AB}' | '\u{00BB}' => text.push('"'),
            '\u{1680}' => text.push(' '),
            '\u{200C}' | '\u{200D}' => {}
            other => match typed_equivalent(other) {
                Some(plain) => text.push_str(plain),
                None => text.push(other),
            },
        }
    }
    Cow::Owned(text.trim().to_owned())
}
