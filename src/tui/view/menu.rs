//! The commands that a draft beginning with `/` could become.

use super::GUTTER;
use crate::tui::model::Model;
use crate::tui::theme::Token;
use crate::tui::update::candidates;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// A command and what it does.
pub type Row = (String, &'static str);

pub fn rows(model: &Model, limit: u16) -> Vec<Row> {
    if model.panels.is_open() || model.help.is_some() || model.reading.is_some() || model.search.is_some() {
        return Vec::new();
    }
    let mut rows = candidates(&model.composer.text());
    rows.truncate(limit.into());
    rows
}

pub fn draw(model: &Model, rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let names = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (y, (name, words)) in (area.y..area.bottom()).zip(rows) {
        let line = Line::from(vec![
            Span::styled(format!("{name:<names$}   "), model.theme.style(Token::Accent)),
            Span::styled(*words, model.theme.style(Token::Muted)),
        ]);
        buffer.set_line(area.x + GUTTER, y, &line, area.width.saturating_sub(GUTTER));
    }
}
