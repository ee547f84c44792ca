//! Layout of diff entries in rows.

use std::ops::Range;

use ratatui::style::Modifier;

use super::entries::{ChangeLine, DiffEntry, HunkEntries};
use super::shape::{Shape, Unit};
use super::words;
use crate::protocol::DiffSide;
use crate::text;
use crate::tui::highlight::HighlightedBlock;
use crate::tui::styled_text::{SpanStyle, StyledText};
use crate::tui::theme::Token;

/// Distance between tab stops, in cells.
const TAB: usize = 4;
/// Number of lines after the last visible one that are highlighted in advance.
const AHEAD: usize = 64;

/// Layout for one width: the units and, for each unit, the index of the row that follows it.
#[derive(Default)]
pub(super) struct Layout {
    width: Option<usize>,
    pub units: Vec<Unit>,
    pub ends: Vec<usize>,
    /// Whether any line is truncated.
    pub cut: bool,
}

impl Layout {
    pub(crate) fn update(
        &mut self,
        entries: &[DiffEntry],
        width: usize,
        number_width: usize,
        shape: Shape,
        units: impl FnOnce() -> Vec<Unit>,
    ) {
        if self.width == Some(width) {
            return;
        }
        self.units = units();
        let mut cut = false;
        let mut of_line = |entry: usize, width: usize| match &entries[entry] {
            DiffEntry::File(name) | DiffEntry::Note(name) => text::wrap_exact(name, width).len(),
            DiffEntry::Break(_) => 1,
            DiffEntry::Line(line) => {
                let text = visible(&StyledText::new(&line.text, SpanStyle::from_token(Token::Text))).text;
                let room = text_width(width, number_width);
                if shape.wraps {
                    return text::wrap_exact(&text, room).len();
                }
                cut |= text::width(&text) > room;
                1
            }
        };
        let mut end = 0;
        let mut ends = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            end += match *unit {
                Unit::One(entry) => of_line(entry, width),
                Unit::Two(old, new) => {
                    let (left, right) = halves(width);
                    let old = old.map_or(1, |entry| of_line(entry, left));
                    old.max(new.map_or(1, |entry| of_line(entry, right)))
                }
            };
            ends.push(end);
        }
        self.ends = ends;
        self.cut = cut;
        self.width = Some(width);
    }
}

/// Separator between the two sides. It is followed by a space before the line numbers of the right side.
pub(crate) const BETWEEN_SIGN: &str = "│";
const BETWEEN_CELLS: usize = 2;

/// Returns the widths of the left and right sides, in cells.
pub(super) fn halves(width: usize) -> (usize, usize) {
    let left = width.saturating_sub(1) / 2;
    (left, width.saturating_sub(left + BETWEEN_CELLS))
}

/// Returns the width, in cells, that is left for a line's text next to its number and sign. On a very narrow screen,
/// only the text is shown.
fn text_width(width: usize, number_width: usize) -> usize {
    let gutter = number_width + 2;
    if width >= gutter * 2 { width - gutter } else { width.max(1) }
}

/// Syntax highlighting for both sides of every hunk. A line is highlighted when it becomes visible.
pub(super) struct HunkHighlights {
    pub number_width: usize,
    tracks: Vec<(HighlightedBlock, HighlightedBlock)>,
    /// Whether the user has left out each hunk.
    pub left: Vec<bool>,
}

impl HunkHighlights {
    pub(crate) fn new(hunks: &[HunkEntries], number_width: usize) -> Self {
        let track =
            |hunk: &HunkEntries| hunk.path.as_deref().map_or_else(|| HighlightedBlock::new(""), HighlightedBlock::for_path);
        Self { number_width, tracks: hunks.iter().map(|hunk| (track(hunk), track(hunk))).collect(), left: Vec::new() }
    }

    pub(crate) fn unit_rows(
        &mut self,
        entries: &[DiffEntry],
        hunks: &[HunkEntries],
        unit: Unit,
        width: usize,
        wraps: bool,
    ) -> Vec<StyledText> {
        let (old, new) = match unit {
            Unit::One(entry) => return self.rows(entries, hunks, entry, (width, wraps)),
            Unit::Two(old, new) => (old, new),
        };
        let (left_width, right_width) = halves(width);
        let left = old.map(|entry| self.rows_of_side(entries, hunks, entry, DiffSide::Removed, (left_width, wraps)));
        let right = new.map(|entry| self.rows_of_side(entries, hunks, entry, DiffSide::Added, (right_width, wraps)));
        let count = [&left, &right].into_iter().flatten().map(Vec::len).max().unwrap_or(0).max(1);
        let nothing = |row: usize| if row == 0 { format!("{:>1$}╌", "", self.number_width) } else { String::new() };
        let mut rows = Vec::with_capacity(count);
        for at in 0..count {
            let mut row = match &left {
                Some(rows) => rows.get(at).cloned().unwrap_or_default(),
                None => StyledText::new(&nothing(at), SpanStyle::from_token(Token::Faint)),
            };
            // A tint that fills the first row also fills the blank rows below it.
            let tint = |side: &Option<Vec<StyledText>>| side.as_ref().and_then(|rows| rows.first()).map(|row| row.style_at(0));
            let blank = |row: &StyledText, ink: Option<SpanStyle>| if row.is_empty() { ink } else { None };
            let ink = blank(&row, tint(&left)).unwrap_or(SpanStyle::from_token(Token::Text));
            row.push(&" ".repeat(left_width.saturating_sub(row.width())), ink);
            row.push(BETWEEN_SIGN, SpanStyle::from_token(Token::Faint));
            row.push(" ", SpanStyle::from_token(Token::Text));
            match &right {
                Some(rows) => match rows.get(at) {
                    Some(other) => row.append(other),
                    None => row.push(&" ".repeat(right_width), tint(&right).unwrap_or(SpanStyle::from_token(Token::Text))),
                },
                None => row.push(&nothing(at), SpanStyle::from_token(Token::Faint)),
            }
            rows.push(row);
        }
        rows
    }

    /// Returns the rows for one side of a unit. Context lines appear on both sides, each time with the line number for
    /// that side.
    fn rows_of_side(
        &mut self,
        entries: &[DiffEntry],
        hunks: &[HunkEntries],
        index: usize,
        side: DiffSide,
        shape: (usize, bool),
    ) -> Vec<StyledText> {
        match &entries[index] {
            DiffEntry::Line(line) if line.side == DiffSide::Context && side == DiffSide::Removed => {
                let old = ChangeLine { number: line.old_number, text: line.text.clone(), marks: line.marks.clone(), ..*line };
                self.line_rows(entries, hunks, &old, shape)
            }
            _ => self.rows(entries, hunks, index, shape),
        }
    }

    fn rows(&mut self, entries: &[DiffEntry], hunks: &[HunkEntries], index: usize, shape: (usize, bool)) -> Vec<StyledText> {
        let width = shape.0;
        match &entries[index] {
            DiffEntry::File(name) => wrapped(name, Token::Heading, width),
            DiffEntry::Note(note) => wrapped(note, Token::Muted, width),
            DiffEntry::Break(place) => vec![self.break_row(place, width)],
            DiffEntry::Line(line) => self.line_rows(entries, hunks, line, shape),
        }
    }

    fn break_row(&self, place: &str, width: usize) -> StyledText {
        let row = format!("{:>1$} ╌  {place}", "", self.number_width);
        StyledText::new(&text::truncate(&row, width), SpanStyle::from_token(Token::Faint))
    }

    fn line_rows(
        &mut self,
        entries: &[DiffEntry],
        hunks: &[HunkEntries],
        line: &ChangeLine,
        (width, wraps): (usize, bool),
    ) -> Vec<StyledText> {
        let left_out = self.left.get(line.hunk).copied().unwrap_or(false);
        let (token, sign) = match line.side {
            DiffSide::Context => (Token::Text, " "),
            DiffSide::Added => (if left_out { Token::Faint } else { Token::Added }, "+"),
            DiffSide::Removed => (if left_out { Token::Faint } else { Token::Removed }, "−"),
        };
        let mut inked = if left_out && line.side != DiffSide::Context {
            StyledText::new(&line.text, SpanStyle::from_token(Token::Faint))
        } else {
            highlight_changes(
                &self.highlight_line(entries, &hunks[line.hunk], line, token),
                &changed_words(entries, line),
                line.side,
            )
        };
        if !line.marks.is_empty() {
            inked = inked.with_modifier_at(&line.marks, Modifier::REVERSED);
        }
        let shown = visible(&inked);
        let room = text_width(width, self.number_width);
        let gutter_ink = SpanStyle::from_token(if line.side == DiffSide::Context { Token::Faint } else { token });
        let mut rows = Vec::new();
        let is_cut = !wraps && text::width(&shown.text) > room;
        let mut parts = text::wrap_exact(&shown.text, room.saturating_sub(usize::from(is_cut)).max(1));
        if !wraps {
            parts.truncate(1);
        }
        for (nth, range) in parts.into_iter().enumerate() {
            let mut row = StyledText::default();
            if room < width {
                let number = if nth == 0 { line.number.to_string() } else { String::new() };
                let join = if nth == 0 { " " } else { "↪" };
                row.push(&format!("{number:>0$}{join}{sign}", self.number_width), gutter_ink);
            }
            row.append_range(&shown, range);
            if is_cut {
                row.push("…", gutter_ink);
            }
            if line.side != DiffSide::Context {
                row.push(&" ".repeat(width.saturating_sub(row.width())), SpanStyle::from_token(token));
            }
            rows.push(row);
        }
        rows
    }

    fn highlight_line(&mut self, entries: &[DiffEntry], hunk: &HunkEntries, line: &ChangeLine, token: Token) -> StyledText {
        let (old, new) = &mut self.tracks[line.hunk];
        let (track, side) = if line.side == DiffSide::Removed { (old, &hunk.old) } else { (new, &hunk.new) };
        track.want((line.index + AHEAD).min(side.len()), |range| {
            side[range].iter().map(|entry| entry_text(&entries[*entry])).collect()
        });
        track.ink(line.index, &line.text, token)
    }
}

fn entry_text(entry: &DiffEntry) -> String {
    match entry {
        DiffEntry::Line(line) => line.text.clone(),
        DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_) => String::new(),
    }
}

fn wrapped(text: &str, token: Token, width: usize) -> Vec<StyledText> {
    text::wrap_exact(text, width).into_iter().map(|range| StyledText::new(&text[range], SpanStyle::from_token(token))).collect()
}

fn changed_words(entries: &[DiffEntry], line: &ChangeLine) -> Vec<Range<usize>> {
    match line.partner.map(|partner| &entries[partner]) {
        Some(DiffEntry::Line(partner)) => words::differing(&line.text, &partner.text, line.side),
        Some(DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_)) | None => Vec::new(),
    }
}

/// Highlights the words of a line that have changed, in the colour of its side.
fn highlight_changes(line: &StyledText, changed: &[Range<usize>], side: DiffSide) -> StyledText {
    let word = SpanStyle::from_token(if side == DiffSide::Removed { Token::RemovedWord } else { Token::AddedWord });
    let mut out = StyledText::default();
    let mut at = 0;
    for range in changed {
        out.append_range(line, at..range.start);
        out.push(&line.text[range.clone()], word);
        at = range.end;
    }
    out.append_range(line, at..line.text.len());
    out
}

/// Makes whitespace visible: tabs become arrows that extend to the next tab stop, and trailing spaces become dots.
fn visible(line: &StyledText) -> StyledText {
    let blank_from = line.text.trim_end_matches([' ', '\t']).len();
    if blank_from == line.text.len() && !line.text.contains('\t') {
        return line.clone();
    }
    let mut out = StyledText::default();
    let mut column = 0;
    let mut at = 0;
    for (start, blank) in line.text.match_indices(['\t', ' ']) {
        if blank == " " && start < blank_from {
            continue;
        }
        out.append_range(line, at..start);
        column += text::width(&line.text[at..start]);
        at = start + 1;
        let ink = line.style_at(start);
        if blank == "\t" {
            let stop = TAB - column % TAB;
            out.push(&format!("→{}", " ".repeat(stop - 1)), ink);
            column += stop;
        } else {
            out.push("·", ink);
            column += 1;
        }
    }
    out.append_range(line, at..line.text.len());
    out
}
