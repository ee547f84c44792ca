//! How the entries of a diff become rows.

use std::ops::Range;

use ratatui::style::Modifier;

use super::parse::{ChangeLine, Entry, Hunk, Side};
use super::words;
use crate::text;
use crate::tui::highlight::Track;
use crate::tui::ink::{Ink, Inked};
use crate::tui::theme::Token;

/// Cells between two tab stops.
const TAB: usize = 4;
/// Lines that colours are asked for ahead of the one that is shown.
const AHEAD: usize = 64;

/// Row after each entry at a width.
#[derive(Default)]
pub(super) struct Layout {
    width: Option<usize>,
    pub ends: Vec<usize>,
}

impl Layout {
    pub fn update(&mut self, entries: &[Entry], width: usize, number_width: usize) {
        if self.width == Some(width) {
            return;
        }
        let mut end = 0;
        let rows = |entry: &Entry| match entry {
            Entry::File(name) | Entry::Note(name) => text::wrap_exact(name, width).len(),
            Entry::Break(_) => 1,
            Entry::Line(line) => {
                text::wrap_exact(&visible(&Inked::new(&line.text, Ink::of(Token::Text))).text, room(width, number_width)).len()
            }
        };
        self.ends = entries.iter().map(|entry| (end += rows(entry), end).1).collect();
        self.width = Some(width);
    }
}

/// Cells for the text of a line beside its number and sign; a screen too narrow for these has the text alone.
fn room(width: usize, number_width: usize) -> usize {
    let gutter = number_width + 2;
    if width >= gutter * 2 { width - gutter } else { width.max(1) }
}

/// The colours of both sides of each hunk, asked for as they come into view.
pub(super) struct Painter {
    pub number_width: usize,
    tracks: Vec<(Track, Track)>,
}

impl Painter {
    pub fn new(hunks: &[Hunk], number_width: usize) -> Self {
        let track = |hunk: &Hunk| hunk.path.as_deref().map_or_else(|| Track::new(""), Track::for_path);
        Self { number_width, tracks: hunks.iter().map(|hunk| (track(hunk), track(hunk))).collect() }
    }

    pub fn rows(&mut self, entries: &[Entry], hunks: &[Hunk], index: usize, width: usize) -> Vec<Inked> {
        match &entries[index] {
            Entry::File(name) => wrapped(name, Token::Heading, width),
            Entry::Note(note) => wrapped(note, Token::Muted, width),
            Entry::Break(place) => vec![self.break_row(place, width)],
            Entry::Line(line) => self.line_rows(entries, hunks, line, width),
        }
    }

    fn break_row(&self, place: &str, width: usize) -> Inked {
        let row = format!("{:>1$} ╌  {place}", "", self.number_width);
        Inked::new(&text::truncate(&row, width), Ink::of(Token::Faint))
    }

    fn line_rows(&mut self, entries: &[Entry], hunks: &[Hunk], line: &ChangeLine, width: usize) -> Vec<Inked> {
        let (token, sign) = match line.side {
            Side::Context => (Token::Text, " "),
            Side::Added => (Token::Added, "+"),
            Side::Removed => (Token::Removed, "−"),
        };
        let coloured = self.coloured(entries, &hunks[line.hunk], line, token);
        let mut inked = emphasised(&coloured, &changed_words(entries, line), line.side);
        if !line.marks.is_empty() {
            inked = inked.stressed_at(&line.marks, Modifier::REVERSED);
        }
        let shown = visible(&inked);
        let room = room(width, self.number_width);
        let gutter_ink = Ink::of(if line.side == Side::Context { Token::Faint } else { token });
        let mut rows = Vec::new();
        for (nth, range) in text::wrap_exact(&shown.text, room).into_iter().enumerate() {
            let mut row = Inked::default();
            if room < width {
                let number = if nth == 0 { line.number.to_string() } else { String::new() };
                let join = if nth == 0 { " " } else { "↪" };
                row.push(&format!("{number:>0$}{join}{sign}", self.number_width), gutter_ink);
            }
            row.append_range(&shown, range);
            if line.side != Side::Context {
                row.push(&" ".repeat(width.saturating_sub(row.width())), Ink::of(token));
            }
            rows.push(row);
        }
        rows
    }

    fn coloured(&mut self, entries: &[Entry], hunk: &Hunk, line: &ChangeLine, token: Token) -> Inked {
        let (old, new) = &mut self.tracks[line.hunk];
        let (track, side) = if line.side == Side::Removed { (old, &hunk.old) } else { (new, &hunk.new) };
        track.want((line.index + AHEAD).min(side.len()), |range| {
            side[range].iter().map(|entry| text_of(&entries[*entry])).collect()
        });
        track.ink(line.index, &line.text, token)
    }
}

fn text_of(entry: &Entry) -> String {
    match entry {
        Entry::Line(line) => line.text.clone(),
        Entry::File(_) | Entry::Note(_) | Entry::Break(_) => String::new(),
    }
}

fn wrapped(text: &str, token: Token, width: usize) -> Vec<Inked> {
    text::wrap_exact(text, width).into_iter().map(|range| Inked::new(&text[range], Ink::of(token))).collect()
}

fn changed_words(entries: &[Entry], line: &ChangeLine) -> Vec<Range<usize>> {
    match line.partner.map(|partner| &entries[partner]) {
        Some(Entry::Line(partner)) => words::differing(&line.text, &partner.text, line.side),
        Some(Entry::File(_) | Entry::Note(_) | Entry::Break(_)) | None => Vec::new(),
    }
}

/// The line with its changed words in the stronger tint.
fn emphasised(line: &Inked, changed: &[Range<usize>], side: Side) -> Inked {
    let word = Ink::of(if side == Side::Removed { Token::RemovedWord } else { Token::AddedWord });
    let mut out = Inked::default();
    let mut at = 0;
    for range in changed {
        out.append_range(line, at..range.start);
        out.push(&line.text[range.clone()], word);
        at = range.end;
    }
    out.append_range(line, at..line.text.len());
    out
}

/// The line with its tabs as arrows up to the next stop and the spaces at its end as dots.
fn visible(line: &Inked) -> Inked {
    let blank_from = line.text.trim_end_matches([' ', '\t']).len();
    if blank_from == line.text.len() && !line.text.contains('\t') {
        return line.clone();
    }
    let mut out = Inked::default();
    let mut column = 0;
    let mut at = 0;
    for (start, blank) in line.text.match_indices(['\t', ' ']) {
        if blank == " " && start < blank_from {
            continue;
        }
        out.append_range(line, at..start);
        column += text::width(&line.text[at..start]);
        at = start + 1;
        let ink = line.ink_at(start);
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
