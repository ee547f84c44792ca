//! Full-screen text viewer: title and visible rows.

use crate::text;
use crate::tui::metrics::GUTTER;
use crate::tui::model::Model;
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(crate) fn draw(model: &mut Model, area: Rect, buffer: &mut Buffer) {
    let Some(reading) = &mut model.overlays.reading else { return };
    let width = area.width.saturating_sub(GUTTER);
    let title = text::truncate(&reading.title, width.into()).into_owned();
    buffer.set_stringn(area.x + GUTTER, area.y, title, width.into(), model.screen.theme.style(Token::Heading));
    let height = usize::from(area.height.saturating_sub(1));
    let style = model.screen.theme.style(Token::Text);
    for (y, row) in (area.y + 1..area.bottom()).zip(reading.view(width, height)) {
        buffer.set_stringn(area.x + GUTTER, y, row, width.into(), style);
    }
    if reading.top + height < reading.count() {
        buffer.set_stringn(area.x, area.bottom() - 1, model.screen.glyphs.down, 1, model.screen.theme.style(Token::Accent));
    }
}
