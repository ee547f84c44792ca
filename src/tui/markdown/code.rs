//! Source code as rows with line numbers.

use std::collections::HashMap;

use super::split::CodePart;
use crate::text;
use crate::tui::highlight::HighlightedBlock;
use crate::tui::styled_text::{Join, SpanStyle, StyledText};
use crate::tui::theme::Token;

/// Width of the line number column, and the minimum width of a screen that has space for it, in
/// cells.
const GUTTER: usize = 6;
const NARROWEST: usize = 16;
/// Maximum number of code blocks with cached highlighting.
const TRACKS: usize = 128;

/// Highlighted code blocks, by block and index within the block.
pub(super) type Tracks = HashMap<(usize, usize), HighlightedBlock>;

/// Whether rows are drawn with highlighting, or only counted.
pub(super) enum Colours<'t> {
    Plain,
    Tracked { tracks: &'t mut Tracks, block: usize },
}

impl<'t> Colours<'t> {
    pub(crate) fn for_block(tracks: &'t mut Tracks, block: usize) -> Self {
        if tracks.len() >= TRACKS {
            tracks.clear();
        }
        Self::Tracked { tracks, block }
    }
}

/// Lays out a part of a top-level code fence.
pub(super) fn part_rows(
    source: &str,
    part: &CodePart,
    end: usize,
    start: usize,
    width: usize,
    colours: &mut Colours<'_>,
) -> Vec<StyledText> {
    let language = language(&source[part.info.clone()]);
    let code = &source[start..end];
    let lines: Vec<_> = code.lines().map(text::expand_tabs).collect();
    let track = match colours {
        Colours::Plain => None,
        Colours::Tracked { tracks, .. } => Some(tracks.entry((part.block, 0)).or_insert_with(|| HighlightedBlock::new(language))),
    };
    let track = track.map(|track| {
        let ended = part.line + code.matches('\n').count();
        track.want(ended, |range| {
            let wanted = source[part.begin..end].lines().skip(range.start).take(range.len());
            wanted.map(|line| text::expand_tabs(line).into_owned()).collect()
        });
        &*track
    });
    let mut rows = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let inside = part.inside_line && index == 0;
        let number = (!inside).then_some(part.line + index + 1);
        let inked = match track {
            Some(track) if !inside => track.ink(part.line + index, line, Token::Text),
            _ => StyledText::new(line, SpanStyle::from_token(Token::Text)),
        };
        let from = rows.len();
        line_rows(&inked, number, width, &mut rows);
        if let Some(row) = rows.get_mut(from).filter(|_| inside) {
            row.join = Join::Nothing;
        }
    }
    rows
}

/// Lays out the `nth` code block inside a list item or quote.
pub(super) fn inner_rows(code: &str, info: &str, nth: usize, width: usize, colours: &mut Colours<'_>) -> Vec<StyledText> {
    let lines: Vec<_> = code.lines().map(text::expand_tabs).collect();
    let track = match colours {
        Colours::Plain => None,
        Colours::Tracked { tracks, block } => {
            let track = tracks.entry((*block, nth)).or_insert_with(|| HighlightedBlock::new(language(info)));
            track.want(code.matches('\n').count(), |range| lines[range].iter().map(|line| line.clone().into_owned()).collect());
            Some(&*track)
        }
    };
    let mut rows = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let inked = match track {
            Some(track) => track.ink(index, line, Token::Text),
            None => StyledText::new(line, SpanStyle::from_token(Token::Text)),
        };
        line_rows(&inked, Some(index + 1), width, &mut rows);
    }
    rows
}

/// Returns the language of an info string such as `rust,ignore` or `{.python}`, without its
/// attributes.
fn language(info: &str) -> &str {
    let word = info.trim_start_matches(['{', '.']).split([' ', ',', '{', '}', '\t']).next().unwrap_or_default();
    match word {
        "console" | "shell" | "shell-session" => "sh",
        "jsonc" | "json5" => "json",
        _ => word,
    }
}

fn line_rows(line: &StyledText, number: Option<usize>, width: usize, rows: &mut Vec<StyledText>) {
    let has_gutter = width >= NARROWEST;
    let room = if has_gutter { width - GUTTER } else { width };
    for (nth, range) in text::wrap_exact(&line.text, room).into_iter().enumerate() {
        let mut row = StyledText::default();
        if has_gutter {
            let sign = number.filter(|_| nth == 0).map_or_else(|| "   ↪  ".to_owned(), |number| format!("{number:>4}  "));
            row.push(&sign, SpanStyle::from_token(Token::Faint));
            row.skip = sign.len();
        }
        row.join = if nth == 0 { Join::Line } else { Join::Nothing };
        row.append_range(line, range);
        rows.push(row);
    }
}
