//! The keys, in place of the transcript.

use super::GUTTER;
use crate::text;
use crate::tui::model::Model;
use crate::tui::theme::Token;
use crate::tui::update::COMMANDS;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: &[(&str, &str)] = &[
    ("enter", "send; queue while a task runs"),
    ("ctrl+j", "new line (also alt+enter, shift+enter, \\ then enter)"),
    ("up down", "line, then prompts sent before"),
    ("ctrl+r", "search the prompts sent before"),
    ("esc", "stop the task; again within 3 s: kill what it runs"),
    ("ctrl+c", "clear the draft; empty: stop, then quit"),
    ("ctrl+d", "quit (empty draft)"),
    ("tab", "review what waits for you; complete a command"),
    ("ctrl+o", "outputs: folded, head and tail, all"),
    ("pgup pgdn", "scroll; home end; ctrl+u ctrl+d half a page"),
    ("ctrl+z", "suspend"),
];
/// In a question, where letters decide.
const QUESTION: &[(&str, &str)] = &[
    ("a letter", "chooses; alone, not inside a word"),
    ("enter", "confirms what is marked; nothing is marked at first"),
    ("up down", "mark a choice; pgup pgdn scroll what is asked about"),
    ("tab", "the next question"),
    ("esc", "later; it stays undecided"),
];
/// Cells of the column of keys.
const NAMES: usize = 11;

pub fn draw(model: &mut Model, area: Rect, buffer: &mut Buffer) {
    let rows = rows(model, area.width.saturating_sub(GUTTER));
    let room = usize::from(area.height);
    let top = model.help.unwrap_or(0).min(rows.len().saturating_sub(room));
    model.help = Some(top);
    for (y, line) in (area.y..area.bottom()).zip(rows.iter().skip(top)) {
        buffer.set_line(area.x + GUTTER, y, line, area.width.saturating_sub(GUTTER));
    }
    if top + room < rows.len() {
        buffer.set_stringn(area.x, area.bottom() - 1, model.glyphs.down, 1, model.theme.style(Token::Accent));
    }
}

fn rows(model: &Model, width: u16) -> Vec<Line<'static>> {
    let head = |words: &'static str| Line::styled(words, model.theme.style(Token::Heading));
    let mut rows = vec![head("Keys")];
    rows.extend(KEYS.iter().flat_map(|entry| entry_rows(model, *entry, width)));
    rows.push(head("While a question is open"));
    rows.extend(QUESTION.iter().flat_map(|entry| entry_rows(model, *entry, width)));
    rows.push(head("Commands"));
    rows.extend(COMMANDS.iter().flat_map(|entry| entry_rows(model, *entry, width)));
    rows
}

fn entry_rows(model: &Model, (name, words): (&'static str, &'static str), width: u16) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(NAMES).max(1);
    let pieces = text::wrap(words, room).into_iter().enumerate();
    let line = |(at, range): (usize, std::ops::Range<usize>)| {
        let name = if at == 0 { name } else { "" };
        Line::from(vec![
            Span::styled(format!("{name:<NAMES$}"), model.theme.style(Token::Accent)),
            Span::styled(&words[range], model.theme.style(Token::Text)),
        ])
    };
    pieces.map(line).collect()
}
