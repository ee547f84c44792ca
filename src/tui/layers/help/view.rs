//! Rendering of the help. The keys for the current part of the UI come first, and a search filters the entries.

use super::{Help, HelpSection, help_sections, key_file_location, keys_section, sheet};
use crate::text;
use crate::tui::keymap::Focus;
use crate::tui::layers::Canvas;
use crate::tui::metrics::GUTTER;
use crate::tui::slash::COMMANDS;
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Width, in cells, of the column with the names of keys and commands. Longer names get their own row.
const NAMES: usize = 16;
const NARROW_NAMES: usize = 11;
/// Screen width, in cells, below which the name column is narrower.
const WIDE: u16 = 60;
/// Minimum screen width, in cells, for a two-column key sheet.
const COLUMNS: u16 = 72;
const FILTER: &str = "filter: ";

/// Draws the help. Returns the position of the cursor.
pub(super) fn draw(help: &mut Help, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Position {
    let width = area.width.saturating_sub(GUTTER);
    let cells = usize::from(width);
    let (title, rows) = if help.words.trim().is_empty() {
        (format!("Keys {} type to search all keys and commands", canvas.glyphs.dot), sheet_rows(canvas, help.about, width))
    } else {
        let place = key_file_location(canvas.key_file);
        let sections = help_sections(canvas.keymap, help.about, COMMANDS, &place, &help.words);
        let count: usize = sections.iter().map(|section| section.entries.len()).sum();
        (format!("Keys and commands {} {count}", canvas.glyphs.dot), rows(canvas, &sections, width))
    };
    buffer.set_stringn(area.x + GUTTER, area.y, text::truncate(&title, cells), cells, canvas.theme.style(Token::Heading));
    buffer.set_stringn(area.x + GUTTER, area.y + 1, FILTER, cells, canvas.theme.style(Token::Faint));
    let shown = text::truncate_middle(&help.words, cells.saturating_sub(FILTER.len() + 1));
    let column = area.x + GUTTER + FILTER.len() as u16;
    buffer.set_stringn(column, area.y + 1, &shown, cells.saturating_sub(FILTER.len()), canvas.theme.style(Token::Text));
    let cursor = Position { x: column + text::width(&shown) as u16, y: area.y + 1 };

    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    let room = usize::from(body.height);
    let top = help.top.min(rows.len().saturating_sub(room));
    (help.top, help.page) = (top, room);
    for (y, line) in (body.y..body.bottom()).zip(rows.iter().skip(top)) {
        buffer.set_line(body.x + GUTTER, y, line, width);
    }
    if rows.is_empty() {
        let words = "no matches";
        buffer.set_stringn(body.x + GUTTER, body.y, words, cells, canvas.theme.style(Token::Muted));
    }
    if top + room < rows.len() {
        buffer.set_stringn(body.x, body.bottom().saturating_sub(1), canvas.glyphs.down, 1, canvas.theme.style(Token::Accent));
    }
    cursor
}

/// Returns the keys for the current part of the UI, followed by the key sheet in one or two columns.
fn sheet_rows(canvas: &Canvas<'_>, about: Focus, width: u16) -> Vec<Line<'static>> {
    let here = about.layers().iter().filter(|focus| **focus != Focus::Composer);
    let mut all = rows(canvas, &here.map(|focus| keys_section(canvas.keymap, *focus)).collect::<Vec<_>>(), width);
    if !all.is_empty() {
        all.push(Line::default());
    }
    let sheet = sheet(canvas.keymap);
    if width < COLUMNS {
        all.extend(rows(canvas, &sheet, width));
        return all;
    }
    let column = width / 2;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for section in &sheet {
        let shorter = if left.len() <= right.len() { &mut left } else { &mut right };
        if !shorter.is_empty() {
            shorter.push(Line::default());
        }
        shorter.extend(rows(canvas, std::slice::from_ref(section), column - 1));
    }
    let count = left.len().max(right.len());
    let filled = |rows: Vec<Line<'static>>| rows.into_iter().chain(std::iter::repeat(Line::default()));
    all.extend(filled(left).zip(filled(right)).take(count).map(|(left, right)| {
        let gap = " ".repeat(usize::from(column).saturating_sub(left.width()));
        // The style of a heading is on its line, so it is copied to the spans.
        let spans = |line: Line<'static>| line.spans.into_iter().map(move |span| span.patch_style(line.style));
        Line::from(spans(left).chain([Span::raw(gap)]).chain(spans(right)).collect::<Vec<_>>())
    }));
    all
}

fn rows(canvas: &Canvas<'_>, sections: &[HelpSection], width: u16) -> Vec<Line<'static>> {
    let names = if width < WIDE { NARROW_NAMES } else { NAMES };
    let mut rows = Vec::new();
    for section in sections {
        rows.push(Line::styled(section.head, canvas.theme.style(Token::Heading)));
        rows.extend(section.entries.iter().flat_map(|(name, does)| entry_rows(canvas, name, does, names, width)));
    }
    rows
}

/// Lays out a name and its description side by side, using as many rows as they need.
fn entry_rows(canvas: &Canvas<'_>, name: &str, words: &str, names: usize, width: u16) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(names).max(1);
    let row = |name: &str, words: &str| {
        let gap = " ".repeat(names.saturating_sub(text::width(name)));
        Line::from(vec![
            Span::styled(name.to_owned(), canvas.theme.style(Token::Accent)),
            Span::raw(gap),
            Span::styled(words.to_owned(), canvas.theme.style(Token::Text)),
        ])
    };
    let pieces = |text: &str, room: usize| text::wrap(text, room).into_iter().map(|range| text[range].to_owned()).collect();
    let does: Vec<String> = pieces(words, room);
    if name.split(' ').any(|key| text::width(key) + 1 > names) {
        let whole: Vec<String> = pieces(name, usize::from(width).max(1));
        let alone = whole.iter().map(|name| row(name, ""));
        return alone.chain(does.iter().map(|words| row("", words))).collect();
    }
    let keys: Vec<String> = pieces(name, names - 1);
    let at = |rows: &[String], at: usize| rows.get(at).map_or(String::new(), |row| row.trim_end().to_owned());
    (0..keys.len().max(does.len())).map(|n| row(&at(&keys, n), &at(&does, n))).collect()
}
