//! The rows between transcript and composer: what waits, what is queued, what goes on.

use super::GUTTER;
use crate::text;
use crate::tui::approval;
use crate::tui::model::Model;
use crate::tui::status;
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// At least so many cells of what it says; what to press gives way.
const WORDS: usize = 24;

pub struct Row {
    sign: &'static str,
    words: String,
    /// What to press.
    right: &'static str,
    token: Token,
}

pub fn rows(model: &mut Model, width: u16, limit: u16, now: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let glyphs = model.glyphs;
    let (transcript, look) = model.transcript_look(now);
    if let Some((new, below)) = transcript.unread(look) {
        let words = if new > 0 { status::counted(new, "new line") } else { format!("{} below", status::counted(below, "line")) };
        let words = format!("{words} {} end", glyphs.dot);
        rows.push(Row { sign: glyphs.down, words, right: "", token: Token::Accent });
    }
    if let Some(words) = approval::strip_words(&model.panels, &glyphs) {
        rows.push(Row { sign: glyphs.waits, words, right: "", token: Token::Warn });
    }
    if let Some(next) = model.task.queued.first() {
        let first = text::clean(next).split_whitespace().collect::<Vec<_>>().join(" ");
        let words = format!("{} queued: {}", model.task.queued.len(), text::truncate(&first, usize::from(width) / 2));
        rows.push(Row { sign: glyphs.note, words, right: "", token: Token::Muted });
    }
    let said = rows.iter().any(|row| row.sign == glyphs.waits) && model.waits_for_person();
    if let Some((sign, words, right)) = status::activity(model, now).filter(|_| !said) {
        // A panel has the keyboard: Escape is its own.
        let right = if model.panels.is_open() { "" } else { right };
        let token = if model.waits_for_person() { Token::Warn } else { Token::Muted };
        rows.push(Row { sign, words, right, token });
    }
    if let Some((words, _)) = &model.said {
        rows.push(Row { sign: "", words: words.clone(), right: "", token: Token::Accent });
    }
    // The last ones matter most.
    let limit = usize::from(limit.clamp(1, 4));
    rows.split_off(rows.len().saturating_sub(limit))
}

pub fn draw(model: &Model, rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(GUTTER));
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        let style = model.theme.style(row.token);
        let right = if room < row.right.len() + 2 + WORDS.min(text::width(&row.words)) { "" } else { row.right };
        let room = if right.is_empty() { room } else { room - right.len() - 2 };
        buffer.set_stringn(area.x, y, row.sign, GUTTER.into(), style);
        let line = Line::from(Span::styled(text::truncate(&row.words, room), style));
        buffer.set_line(area.x + GUTTER, y, &line, room as u16);
        let x = area.right().saturating_sub(right.len() as u16);
        buffer.set_stringn(x, y, right, right.len(), model.theme.style(Token::Faint));
    }
}
