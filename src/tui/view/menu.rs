//! Rendering of the completion menu above the composer.

use crate::text;
use crate::tui::menu::ROWS;
use crate::tui::metrics::GUTTER;
use crate::tui::model::UiModel;
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Maximum width, in cells, of a name that is followed by a description.
const NAME: usize = 48;
/// Width, in cells, reserved on the right for the symbol that indicates more items.
const MORE: usize = 3;

pub(crate) fn rows(model: &UiModel, limit: u16) -> u16 {
    if model.dialogs.is_open() || model.layers.top().is_some() || model.draft.search.is_some() {
        return 0;
    }
    (model.menu.items().len() as u16).min(limit).min(ROWS)
}

pub(crate) fn draw(model: &mut UiModel, area: Rect, buffer: &mut Buffer, now: u64) {
    if area.height == 0 {
        return model.menu.on_hidden();
    }
    let window = model.menu.window(area.height.into());
    let room = usize::from(area.width.saturating_sub(GUTTER));
    let has_more = window.end < model.menu.items().len();
    let width = room - if has_more { MORE.min(room) } else { 0 };
    let items = &model.menu.items()[window.clone()];
    let most = NAME.min(width * 2 / 3);
    let names = items.iter().map(|item| text::width(&item.name)).max().unwrap_or(0).min(most);
    for ((y, item), at) in (area.y..area.bottom()).zip(items).zip(window.clone()) {
        let is_at = at == model.menu.selected_index();
        if is_at {
            buffer.set_stringn(area.x, y, model.screen.glyphs.user, GUTTER.into(), model.screen.theme.symbol(Token::Accent));
        }
        let token = if is_at { Token::Heading } else { Token::Accent };
        // The end of a path is its most informative part.
        let name = text::truncate_middle(&item.name, if item.words.is_empty() { width } else { names });
        buffer.set_stringn(area.x + GUTTER, y, &name, width, model.screen.theme.symbol(token));
        let column = names + 3;
        if let Some(room) = width.checked_sub(column).filter(|room| *room > 0) {
            let words = text::truncate(&item.words, room);
            buffer.set_stringn(area.x + GUTTER + column as u16, y, &words, room, model.screen.theme.style(Token::Muted));
        }
    }
    if has_more {
        let sign = model.screen.glyphs.down;
        buffer.set_stringn(area.right().saturating_sub(2), area.bottom() - 1, sign, 2, model.screen.theme.style(Token::Faint));
    }
    model.menu.on_drawn((area.y, area.height.min(window.len() as u16)), now);
}
