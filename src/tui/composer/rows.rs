//! Layout of the draft in rows and cells.

use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// Row of the draft: the index of its line, and its byte range within that line.
type Row = (usize, Range<usize>);
/// Position in the draft: the index of the line, and the index of the character within that line.
type Place = (usize, usize);

/// Wraps the lines at `width` cells. Returns the rows, and the row and column of `cursor`, which is given as a line
/// index and a character index.
fn lay_out(lines: &[String], cursor: (usize, usize), width: usize) -> (Vec<Row>, (usize, usize)) {
    let mut rows = Vec::new();
    let mut place = (0, 0);
    for (number, line) in lines.iter().enumerate() {
        let first = rows.len();
        rows.extend(text::wrap(line, width).into_iter().map(|range| (number, range)));
        if number == cursor.0 {
            let at = line.char_indices().nth(cursor.1).map_or(line.len(), |(at, _)| at);
            let row = rows[first..].partition_point(|(_, range)| range.start <= at).saturating_sub(1);
            let start = rows[first + row].1.start;
            place = (first + row, text::width(&line[start..at]) + line[start..at].matches('\t').count());
        }
    }
    (rows, place)
}

/// Returns the number of rows into which the lines are wrapped, between 1 and `limit`.
pub(crate) fn count(lines: &[String], width: usize, limit: usize) -> usize {
    lines.iter().take(limit).map(|line| text::wrap(line, width).len().max(1)).sum::<usize>().clamp(1, limit)
}

/// Draws the rows starting at `top`, after adjusting `top` to make the cursor visible. Returns the position of the
/// cursor.
pub(crate) fn draw(
    lines: &[String],
    cursor: (usize, usize),
    top: &mut usize,
    area: Rect,
    buffer: &mut Buffer,
    style: Style,
) -> Position {
    let (rows, (row, column)) = lay_out(lines, cursor, area.width.max(1).into());
    let height = usize::from(area.height.max(1));
    *top = (*top).clamp((row + 1).saturating_sub(height), row).min(rows.len().saturating_sub(height));
    for (y, (number, range)) in (area.y..area.bottom()).zip(&rows[*top..]) {
        buffer.set_stringn(area.x, y, lines[*number][range.clone()].replace('\t', " "), area.width.into(), style);
    }
    cursor_position(area, column, row - *top)
}

/// Highlights the selected part of the text that was drawn. The selection does not include its end.
pub(crate) fn mark(lines: &[String], (from, to): (Place, Place), top: usize, area: Rect, buffer: &mut Buffer) {
    let (rows, _) = lay_out(lines, (0, 0), area.width.max(1).into());
    let byte = |line: &str, column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let cells = |words: &str| text::width(words) + words.matches('\t').count();
    for (y, (number, range)) in (area.y..area.bottom()).zip(rows.iter().skip(top)) {
        let line = &lines[*number];
        let start = if *number == from.0 { byte(line, from.1) } else { 0 };
        let end = if *number == to.0 { byte(line, to.1) } else { line.len() };
        let (start, end) = (start.clamp(range.start, range.end), end.clamp(range.start, range.end));
        if (from.0..=to.0).contains(number) && start < end {
            let x = area.x.saturating_add(cells(&line[range.start..start]) as u16).min(area.right());
            let width = (cells(&line[start..end]) as u16).min(area.right() - x);
            buffer.set_style(Rect { x, y, width, height: 1 }, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
}

/// Minimum width, in cells, at which a scrolled line begins with `…`.
const MIN_SCROLLED: usize = 4;

/// Draws a single line, scrolled horizontally to make the cursor visible. A scrolled line begins with `…`. Returns the
/// position of the cursor.
pub(crate) fn draw_line(line: &str, cursor: usize, area: Rect, buffer: &mut Buffer, style: Style) -> Position {
    let end = line.char_indices().nth(cursor).map_or(line.len(), |(at, _)| at);
    let width = usize::from(area.width.max(1));
    let lead = if text::width(&line[..end]) < width || width < MIN_SCROLLED { "" } else { "…" };
    let column = |start: usize| text::width(lead) + text::width(&line[start..end]);
    let mut starts = line[..end].grapheme_indices(true).map(|(at, _)| at).chain([end]);
    let start = starts.find(|start| column(*start) < width).unwrap_or(end);
    buffer.set_stringn(area.x, area.y, format!("{lead}{}", &line[start..]), area.width.into(), style);
    cursor_position(area, column(start), 0)
}

fn cursor_position(area: Rect, column: usize, row: usize) -> Position {
    let x = area.x + (column as u16).min(area.width.saturating_sub(1));
    let y = area.y + (row as u16).min(area.height.saturating_sub(1));
    Position { x, y }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split('\n').map(str::to_owned).collect()
    }

    fn rows(buffer: &Buffer) -> Vec<String> {
        let Rect { width, height, .. } = buffer.area;
        (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
    }

    #[test]
    fn the_cursor_follows_the_typed_text_at_any_character_width() {
        for (text, expected) in [
            ("", (0, 0)),
            ("abc", (3, 0)),
            ("你好", (4, 0)),
            ("❤\u{fe0f}x", (3, 0)),
            ("👨\u{200d}👩\u{200d}👧x", (3, 0)),
            ("🇩🇪1\u{fe0f}\u{20e3}e\u{301}", (5, 0)),
            ("ab\tc", (4, 0)),
            ("one two three", (5, 1)),
            ("one\ntwo", (3, 1)),
        ] {
            let lines = lines(text);
            let cursor = (lines.len() - 1, lines[lines.len() - 1].chars().count());
            let area = Rect::new(0, 0, 10, 3);
            let position = draw(&lines, cursor, &mut 0, area, &mut Buffer::empty(area), Style::new());
            assert_eq!((position.x, position.y), expected, "{text}");
        }
    }

    #[test]
    fn the_cursor_row_is_always_visible() {
        let lines = lines("1\n2\n3\n4\n5");
        let area = Rect::new(0, 0, 8, 2);
        let mut top = 0;
        for (cursor, shown, row) in
            [(4, ["4", "5"], 1), (3, ["4", "5"], 0), (2, ["3", "4"], 0), (0, ["1", "2"], 0), (1, ["1", "2"], 1)]
        {
            let mut buffer = Buffer::empty(area);
            let position = draw(&lines, (cursor, 1), &mut top, area, &mut buffer, Style::new());
            assert_eq!((rows(&buffer), position.y), (shown.map(str::to_owned).to_vec(), row), "{cursor}");
        }
    }

    #[test]
    fn a_long_field_scrolls_to_the_cursor() {
        let area = Rect::new(0, 0, 6, 1);
        for (cursor, shown, x) in [(0, "abcdef", 0), (3, "abcdef", 3), (9, "…fghi", 5), (11, "…hi❤\u{fe0f}", 5)] {
            let mut buffer = Buffer::empty(area);
            let position = draw_line("abcdefghi❤\u{fe0f}", cursor, area, &mut buffer, Style::new());
            assert_eq!((rows(&buffer)[0].as_str(), position.x), (shown, x), "{cursor}");
        }
    }

    #[test]
    fn a_selection_is_marked_on_every_covered_row() {
        let (text, area) = (lines("one two three\n你好 x"), Rect::new(0, 0, 8, 3));
        let mut buffer = Buffer::empty(area);
        let mut top = 0;
        draw(&text, (0, 4), &mut top, area, &mut buffer, Style::new());
        mark(&text, ((0, 4), (1, 1)), top, area, &mut buffer);
        let is_marked = |cell: &ratatui::buffer::Cell| if cell.modifier.contains(Modifier::REVERSED) { '#' } else { '.' };
        let rows: Vec<String> = buffer.content.chunks(8).map(|row| row.iter().map(is_marked).collect()).collect();
        assert_eq!(rows, ["....###.", "#####...", "##......"]);
    }
}
