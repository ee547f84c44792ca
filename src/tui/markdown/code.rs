//! Layout of source code in rows with line numbers.

use std::collections::HashMap;

use super::split::CodePart;
use crate::text;
use crate::tui::highlight::HighlightedBlock;
use crate::tui::styled_text::{Join, SpanStyle, StyledText};
use crate::tui::theme::Token;

/// Width of the line number column, in cells. The column is shown only if the width is at least [`NARROWEST`].
const GUTTER: usize = 6;
const NARROWEST: usize = 16;
/// Maximum number of code blocks for which highlighting is cached.
const TRACKS: usize = 128;

/// Highlighted code blocks, keyed by the index of the Markdown block and the index of the code block within it.
pub(super) type Tracks = HashMap<(usize, usize), HighlightedBlock>;

/// Whether code is highlighted. If its rows are only counted, it is laid out without colours.
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

/// Lays out bytes `start..end` of `source`, which are part of a top-level fenced code block.
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

/// Lays out a code block inside a list item or quote. `nth` is the code block's index within the Markdown block.
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

/// Returns the language named in an info string such as `rust,ignore` or `{.python}`.
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
