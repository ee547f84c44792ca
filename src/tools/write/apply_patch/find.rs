//! Where the lines of a hunk stand in a file: as exactly as they can be found there.

use super::parse::{Hunk, Kind};
use crate::tools::write::matching::typed;
use std::borrow::Cow;
use std::collections::HashMap;

/// How exactly lines were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Exact,
    TrailingSpace,
    OuterSpace,
    Typography,
}

const LEVELS: [Level; 4] = [Level::Exact, Level::TrailingSpace, Level::OuterSpace, Level::Typography];

/// The shortest header that git may have cut.
const CUT_HEADER_CHARACTERS: usize = 40;

/// The lines of a file, without their endings.
pub struct Lines<'a> {
    pub bodies: Vec<&'a str>,
    /// For each level a number per line; equal lines have equal numbers.
    numbers: Vec<Vec<usize>>,
    known: Vec<HashMap<Cow<'a, str>, usize>>,
}

/// The places of one hunk, and what was left out to find them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub level: Level,
    /// Indexes of first lines, ascending.
    pub starts: Vec<usize>,
    /// Those of them that lie in the block that the header opens.
    pub in_block: Vec<usize>,
    /// How many lines of the end of the hunk stand for nothing.
    pub dropped: usize,
    /// A header that no line of the file is.
    pub unknown_header: Option<String>,
    /// `*** End of File` that is not true.
    pub not_at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Nowhere.
    Nowhere,
    /// Only before the header, which these lines are.
    OnlyBefore { header: String, starts: Vec<usize> },
    /// Only lines to be added, in a file that has lines.
    NothingToFind,
}

impl<'a> Lines<'a> {
    pub fn of(text: &'a str) -> Self {
        let bodies: Vec<&str> = text.split_inclusive('\n').map(body).collect();
        let (mut numbers, mut known) = (Vec::new(), Vec::new());
        for level in LEVELS {
            let mut names: HashMap<Cow<'a, str>, usize> = HashMap::new();
            let number = |line: &&'a str| {
                let next = names.len();
                *names.entry(level.of(line)).or_insert(next)
            };
            numbers.push(bodies.iter().map(number).collect());
            known.push(names);
        }
        Self { bodies, numbers, known }
    }

    /// The places of a hunk but those that `refused` names. Of each level only what a better one lacks.
    pub fn find(&self, hunk: &Hunk, is_last: bool, refused: &dyn Fn(usize, usize) -> bool) -> Result<Places, Lost> {
        let old: Vec<&str> = hunk.old().collect();
        if old.is_empty() {
            return self.end_for(hunk, is_last);
        }
        let mut lost = Lost::Nowhere;
        for (dropped, at_end) in attempts(hunk, &old) {
            let wanted = &old[..old.len() - dropped];
            // Without one line that is not empty any place would do.
            if dropped > 0 && wanted.iter().all(|line| line.trim().is_empty()) {
                continue;
            }
            for level in LEVELS {
                let mut starts = self.starts(wanted, level);
                starts.retain(|start| !refused(*start, wanted.len()) && (!at_end || start + wanted.len() == self.bodies.len()));
                if starts.is_empty() {
                    continue;
                }
                let (after, unknown_header) = self.below(&hunk.headers, &starts, wanted.len());
                if after.is_empty() {
                    if lost == Lost::Nowhere {
                        lost = Lost::OnlyBefore { header: hunk.headers.join(" / "), starts };
                    }
                    continue;
                }
                let in_block = self.in_block(&hunk.headers, &after);
                let not_at_end = hunk.at_end && !at_end;
                return Ok(Places { level, starts: after, in_block, dropped, unknown_header, not_at_end });
            }
        }
        Err(lost)
    }

    /// Where lines are added that stand beside no others: at the end, where that is what was said or all there is.
    fn end_for(&self, hunk: &Hunk, is_last: bool) -> Result<Places, Lost> {
        let end = self.bodies.len();
        if end > 0 && !hunk.at_end && !(is_last && hunk.headers.is_empty()) {
            return Err(Lost::NothingToFind);
        }
        let places = Places {
            level: Level::Exact,
            starts: vec![end],
            in_block: Vec::new(),
            dropped: 0,
            unknown_header: None,
            not_at_end: false,
        };
        Ok(places)
    }

    fn starts(&self, wanted: &[&str], level: Level) -> Vec<usize> {
        let (numbers, known) = (&self.numbers[level as usize], &self.known[level as usize]);
        let Some(wanted) = wanted.iter().map(|line| known.get(&level.of(line)).copied()).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        if wanted.is_empty() {
            return Vec::new();
        }
        let found = numbers.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted);
        found.map(|(start, _)| start).collect()
    }

    /// Those of `starts` that have the headers above them, in their order; and the first header that the file does not have.
    fn below(&self, headers: &[String], starts: &[usize], length: usize) -> (Vec<usize>, Option<String>) {
        let mut unknown = None;
        // The earliest line that can be the last of the headers.
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
        // Some repeat the header as the first line that stays.
        let after = starts.iter().copied().filter(|start| earliest.is_none_or(|line| line < start + length)).collect();
        (after, unknown)
    }

    fn in_block(&self, headers: &[String], starts: &[usize]) -> Vec<usize> {
        let blocks = headers.iter().map(|header| self.header_lines(header)).filter(|lines| !lines.is_empty());
        let Some(openers) = blocks.reduce(|outer, inner| {
            inner.into_iter().filter(|line| outer.iter().any(|opener| self.is_in_block(*opener, *line))).collect()
        }) else {
            return Vec::new();
        };
        starts.iter().copied().filter(|start| openers.iter().any(|opener| self.is_in_block(*opener, *start))).collect()
    }

    /// Whether no line between them is less indented than what the first one opens.
    fn is_in_block(&self, opener: usize, line: usize) -> bool {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let outer = indent(self.bodies[opener]);
        let closes = |body: &&str| {
            !body.trim().is_empty() && indent(body) <= outer && !body.trim_start().starts_with([')', ']', '}', '{'])
        };
        opener < line && !self.bodies[opener + 1..=line].iter().any(closes)
    }

    /// The lines that a header can stand for: itself, as exactly as there is; or lines that begin with it, as git cuts long ones.
    fn header_lines(&self, header: &str) -> Vec<usize> {
        for level in LEVELS {
            let found = self.starts(&[header], level);
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

/// What is to be found: first all of it at the end, if it says so; at last without what only seems to be a line.
fn attempts(hunk: &Hunk, old: &[&str]) -> Vec<(usize, bool)> {
    let blank = hunk.lines.iter().rev().take_while(|line| line.kind == Kind::Context && line.bare).count();
    // The empty line after the last one is no line, for those who do not split a text at its endings.
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

/// A line without its ending.
pub fn body(line: &str) -> &str {
    line.strip_suffix('\n').map_or(line, |body| body.strip_suffix('\r').unwrap_or(body))
}

impl Level {
    pub fn of(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::TrailingSpace => Cow::Borrowed(line.trim_end()),
            Self::OuterSpace => Cow::Borrowed(line.trim()),
            Self::Typography => plain(line),
        }
    }
}

/// With the characters that a keyboard has in the place of those that a typesetter would use.
fn plain(line: &str) -> Cow<'_, str> {
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
            other => match typed(other) {
                Some(plain) => text.push_str(plain),
                None => text.push(other),
            },
        }
    }
    Cow::Owned(text.trim().to_owned())
}
