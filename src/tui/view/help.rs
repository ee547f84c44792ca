//! Full-screen list of keys and commands: keys of the current context first, filtered by a search.

use crate::text;
use crate::tui::help::{self, Section};
use crate::tui::keymap::Focus;
use crate::tui::metrics::GUTTER;
use crate::tui::model::Model;
use crate::tui::slash::COMMANDS;
use crate::tui::theme::Token;
use crate::tui::update::key_place;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Widths of the key column, in cells; a longer name gets its own row.
const NAMES: usize = 16;
const NARROW_NAMES: usize = 11;
/// Width below which the key column is narrow.
const WIDE: u16 = 60;
/// Width from which the sheet has two columns.
const COLUMNS: u16 = 72;
const FILTER: &str = "filter: ";

/// Draws the list; returns the cursor position.
pub(crate) fn draw(model: &mut Model, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let about = model.overlays.help.clone()?;
    let width = area.width.saturating_sub(GUTTER);
    let cells = usize::from(width);
    let (title, rows) = if about.words.trim().is_empty() {
        (format!("Keys {} type to search all keys and commands", model.screen.glyphs.dot), sheet_rows(model, about.about, width))
    } else {
        let place = key_place(&model.options.keys);
        let sections = help::sections(&model.keymap, about.about, COMMANDS, &place, &about.words);
        let count: usize = sections.iter().map(|section| section.entries.len()).sum();
        (format!("Keys and commands {} {count}", model.screen.glyphs.dot), rows(model, &sections, width))
    };
    buffer.set_stringn(area.x + GUTTER, area.y, text::truncate(&title, cells), cells, model.screen.theme.style(Token::Heading));
    buffer.set_stringn(area.x + GUTTER, area.y + 1, FILTER, cells, model.screen.theme.style(Token::Faint));
    let shown = text::truncate_middle(&about.words, cells.saturating_sub(FILTER.len() + 1));
    let column = area.x + GUTTER + FILTER.len() as u16;
    buffer.set_stringn(column, area.y + 1, &shown, cells.saturating_sub(FILTER.len()), model.screen.theme.style(Token::Text));
    let cursor = Position { x: column + text::width(&shown) as u16, y: area.y + 1 };

    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    let room = usize::from(body.height);
    let top = about.top.min(rows.len().saturating_sub(room));
    if let Some(help) = &mut model.overlays.help {
        (help.top, help.page) = (top, room);
    }
    for (y, line) in (body.y..body.bottom()).zip(rows.iter().skip(top)) {
        buffer.set_line(body.x + GUTTER, y, line, width);
    }
    if rows.is_empty() {
        let words = "no matches";
        buffer.set_stringn(body.x + GUTTER, body.y, words, cells, model.screen.theme.style(Token::Muted));
    }
    if top + room < rows.len() {
        buffer.set_stringn(
            body.x,
            body.bottom().saturating_sub(1),
            model.screen.glyphs.down,
            1,
            model.screen.theme.style(Token::Accent),
        );
    }
    Some(cursor)
}

/// Returns the keys of the current part of the screen, and the sheet in columns.
fn sheet_rows(model: &Model, about: Focus, width: u16) -> Vec<Line<'static>> {
    let here = about.layers().iter().filter(|focus| **focus != Focus::Composer);
    let mut all = rows(model, &here.map(|focus| help::keys_section(&model.keymap, *focus)).collect::<Vec<_>>(), width);
    if !all.is_empty() {
        all.push(Line::default());
    }
    let sheet = help::sheet(&model.keymap);
    if width < COLUMNS {
        all.extend(rows(model, &sheet, width));
        return all;
    }
    let column = width / 2;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for section in &sheet {
        let shorter = if left.len() <= right.len() { &mut left } else { &mut right };
        if !shorter.is_empty() {
            shorter.push(Line::default());
        }
        shorter.extend(rows(model, std::slice::from_ref(section), column - 1));
    }
    let count = left.len().max(right.len());
    let filled = |rows: Vec<Line<'static>>| rows.into_iter().chain(std::iter::repeat(Line::default()));
    all.extend(filled(left).zip(filled(right)).take(count).map(|(left, right)| {
        let gap = " ".repeat(usize::from(column).saturating_sub(left.width()));
        // The style of a heading belongs to its line.
        let spans = |line: Line<'static>| line.spans.into_iter().map(move |span| span.patch_style(line.style));
        Line::from(spans(left).chain([Span::raw(gap)]).chain(spans(right)).collect::<Vec<_>>())
    }));
    all
}

fn rows(model: &Model, sections: &[Section], width: u16) -> Vec<Line<'static>> {
    let names = if width < WIDE { NARROW_NAMES } else { NAMES };
    let mut rows = Vec::new();
    for section in sections {
        rows.push(Line::styled(section.head, model.screen.theme.style(Token::Heading)));
        rows.extend(section.entries.iter().flat_map(|(name, does)| entry_rows(model, name, does, names, width)));
    }
    rows
}

/// Lays out a name and its description in two columns, each with as many rows as it needs.
fn entry_rows(model: &Model, name: &str, words: &str, names: usize, width: u16) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(names).max(1);
    let row = |name: &str, words: &str| {
        let gap = " ".repeat(names.saturating_sub(text::width(name)));
        Line::from(vec![
            Span::styled(name.to_owned(), model.screen.theme.style(Token::Accent)),
            Span::raw(gap),
            Span::styled(words.to_owned(), model.screen.theme.style(Token::Text)),
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
