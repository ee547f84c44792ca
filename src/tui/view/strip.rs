//! The rows between transcript and composer: what waits, what is queued, what goes on.

use crate::text;
use crate::tui::approval;
use crate::tui::model::Model;
use crate::tui::status;
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Left words, right words, colour.
pub type Row = (String, String, Token);

pub fn rows(model: &mut Model, width: u16, limit: u16, now: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let glyphs = model.glyphs;
    let (transcript, look) = model.transcript_look(now);
    if let Some((new, below)) = transcript.unread(look) {
        let words = if new > 0 { status::counted(new, "new line") } else { format!("{} below", status::counted(below, "line")) };
        rows.push((String::new(), format!("{} {words} {} end", glyphs.down, glyphs.dot), Token::Accent));
    }
    if let Some(words) = approval::strip_words(&model.panels, &glyphs) {
        rows.push((words, String::new(), Token::Warn));
    }
    if let Some(next) = model.task.queued.first() {
        let first = text::clean(next).split_whitespace().collect::<Vec<_>>().join(" ");
        rows.push((
            format!("{} queued: {}", model.task.queued.len(), text::truncate(&first, usize::from(width) / 2)),
            String::new(),
            Token::Muted,
        ));
    }
    if let Some((words, right)) = status::activity(model, now) {
        // A panel has the keyboard: Escape is its own.
        let right = if model.panels.is_open() { "" } else { right };
        rows.push((words, right.to_owned(), Token::Muted));
    }
    if let Some((words, _)) = &model.said {
        rows.push((words.clone(), String::new(), Token::Accent));
    }
    // The last ones matter most.
    let limit = usize::from(limit.clamp(1, 4));
    rows.split_off(rows.len().saturating_sub(limit))
}

pub fn draw(model: &Model, rows: &[Row], area: Rect, buffer: &mut Buffer) {
    for (y, (left, right, token)) in (area.y..area.bottom()).zip(rows) {
        let style = model.theme.style(*token);
        let mut right_words = format!("{right} ");
        if text::width(right) + 20 > usize::from(area.width) {
            right_words = text::truncate(right, usize::from(area.width) / 3).into_owned();
        }
        let room = usize::from(area.width).saturating_sub(text::width(&right_words) + 2);
        let left = text::truncate(left, room).into_owned();
        let gap = room.saturating_sub(text::width(&left)) + 1;
        let line = Line::from(vec![
            Span::raw(" "),
            Span::styled(left, style),
            Span::raw(" ".repeat(gap)),
            Span::styled(right_words, style),
        ]);
        buffer.set_line(area.x, y, &line, area.width);
    }
}
