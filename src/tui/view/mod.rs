//! Rendering of the model on the screen.

mod menu;
mod strip;
#[cfg(test)]
mod tests;

use super::approval::{self, Height, Inbox};
use super::display::{DrawStats, Scroll};
use super::format;
use super::glyphs::make_plain;
use super::interface::ModelAccess;
use super::keymap::Focus;
use super::metrics::SMALLEST;
use super::model::UiModel;
use super::status;
use super::theme::Token;
use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};

/// Minimum screen width, in cells, at which an empty composer shows everything that Enter can do.
const WIDE: u16 = 76;
/// Screen width, in cells, below which texts are shortened.
const NARROW: u16 = 52;

/// Screen height, in rows, below which a dialog leaves one row above it free.
const LOW: u16 = 14;
/// Screen height, in rows, below which an approval prompt with long content leaves one row above it free.
const LOW_FOR_CARD: u16 = 30;

/// Minimum height, in rows, of an approval prompt that is shown above the composer while pending.
const STAYING: u16 = 4;

pub(crate) fn draw(model: &mut UiModel, buffer: &mut Buffer, now: u64) -> DrawStats {
    let area = buffer.area;
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let words = format!("aye needs {}x{}, this terminal is {}x{}", SMALLEST.0, SMALLEST.1, area.width, area.height);
        let rows = (area.y..area.bottom()).zip(text::wrap(&words, area.width.into()));
        for (y, range) in rows {
            buffer.set_stringn(area.x, y, &words[range], area.width.into(), model.screen.theme.style(Token::Warn));
        }
        return DrawStats::default();
    }
    let asked = model.dialogs.call_in_question().cloned();
    model.transcript.set_question_below(asked.as_ref());
    let fills_screen = fills_screen(model);
    let [rest, hints] = split_bottom(area, u16::from(!fills_screen));
    let [rest, bottom] = split_bottom(rest, 1);
    let helps = model.layers.covers_questions();
    let lower = if helps { 0 } else { lower_height(model, rest) };
    let [rest, lower] = split_bottom(rest, lower);
    let choices = if helps || has_no_composer(model) { 0 } else { menu::rows(model, rest.height / 2) };
    let [rest, menu] = split_bottom(rest, choices);
    let rows = strip::rows(model, rest, now);
    let [rest, strip] = split_bottom(rest, rows.len() as u16);
    let [transcript, staying] = split_bottom(rest, if helps { 0 } else { staying_height(model, rest) });

    let (filter, scroll) = draw_upper(model, transcript, buffer, now);
    draw_staying(model, staying, buffer, now);
    strip::draw(model, &rows, strip, buffer);
    model.screen.pointer.strip = strip::clicks(&rows, strip);
    menu::draw(model, menu, buffer, now);
    let cursor = if helps {
        filter
    } else if model.dialogs.is_open() {
        draw_panel(model, lower, buffer, now)
    } else if has_no_composer(model) {
        filter
    } else {
        let drafted = draw_composer(model, lower, buffer);
        // The cursor shows where keys go: to the search, the focused entry or the draft.
        let browsed = model.browse.as_ref().and(model.transcript.marks.cursor());
        strip::cursor(&rows, strip).or(browsed).or(Some(drafted))
    };
    status::draw_status(model, bottom, buffer, now);
    if !fills_screen {
        status::draw_hints(model, hints, buffer, now);
    }
    if model.options.terminal.ascii {
        make_plain(buffer);
    }
    if model.options.terminal.emulator.reverses_italics() {
        for cell in &mut buffer.content {
            cell.modifier.remove(Modifier::ITALIC);
        }
    }
    if let Some(ground) = model.screen.theme.background() {
        paint(buffer, ground);
    }
    DrawStats { cursor, scroll }
}

/// Draws the transcript or the layer that covers it. Returns the cursor position within a layer, if there is one, and
/// the scroll position of the transcript, if it was drawn.
fn draw_upper(model: &mut UiModel, area: Rect, buffer: &mut Buffer, now: u64) -> (Option<Position>, Option<Scroll>) {
    let is_question_open = model.dialogs.is_open();
    let (layers, canvas) = model.layers_and_canvas();
    if let Some(layer) = layers.drawn_mut(is_question_open) {
        return (layer.draw(area, buffer, &canvas), None);
    }
    let (text, look) = model.transcript_look(now);
    let position = text.draw(area, buffer, look);
    (None, Some(Scroll { area, position }))
}

/// Paints the theme's background on all cells that have no background of their own.
fn paint(buffer: &mut Buffer, ground: Color) {
    for cell in &mut buffer.content {
        if cell.bg == Color::Reset {
            cell.bg = ground;
        }
    }
}

fn split_bottom(area: Rect, rows: u16) -> [Rect; 2] {
    let rows = rows.min(area.height);
    let top = Rect { height: area.height - rows, ..area };
    [top, Rect { y: top.bottom(), height: rows, ..area }]
}

fn first_line(draft: &str) -> &str {
    draft.split('\n').next().unwrap_or_default()
}

/// Returns whether a layer has keyboard focus and is shown in place of the composer.
fn has_no_composer(model: &UiModel) -> bool {
    model.has_layer() && !model.dialogs.is_open()
}

/// Returns whether the open dialog takes all rows except the status row, because the user pages through it on a low
/// screen.
fn fills_screen(model: &UiModel) -> bool {
    let is_low = model.screen.size.height < LOW && !model.layers.covers_questions() && model.dialogs.inbox().is_none();
    // A notice needs a row above the dialog.
    is_low && model.toast.is_none() && model.dialogs.open().is_some_and(|panel| panel.view.has_scrolled)
}

/// Returns the height, in rows, of the composer or of the dialog or list that replaces it.
fn lower_height(model: &UiModel, rest: Rect) -> u16 {
    if model.dialogs.inbox().is_some() {
        let limit = (model.screen.size.height * 7 / 10).max(7).min(rest.height);
        return Inbox::height(model.dialogs.len(), limit) + u16::from(!model.composer.is_empty() && limit > 7);
    }
    match model.dialogs.open() {
        Some(panel) => {
            let limit = match panel.view.height {
                // On a low screen, one row remains for the activity. The head of the dialog repeats the title of the
                // card.
                Height::Part if fills_screen(model) => rest.height,
                Height::Part if model.screen.size.height < LOW => rest.height.saturating_sub(1),
                // On a medium screen, the content of the call takes precedence over the conversation. On a high screen,
                // at least two rows of the conversation remain visible.
                Height::Part if panel.is_card() && model.screen.size.height < LOW_FOR_CARD => rest.height.saturating_sub(1),
                Height::Part => rest.height.saturating_sub(2),
                Height::Full => rest.height,
            };
            approval::height(panel, rest.width, limit, !model.composer.is_empty())
        }
        None if has_no_composer(model) => 0,
        None => model.composer.rows(composer_width(rest.width)).min(rest.height.saturating_sub(4).max(1)) + 2,
    }
}

/// Returns the height, in rows, of the approval prompt that stays above the composer because the user typed over it.
/// Returns 0 if there is none.
fn staying_height(model: &UiModel, rest: Rect) -> u16 {
    let limit = (model.screen.size.height * 7 / 10).min(rest.height.saturating_sub(1));
    match model.dialogs.staying() {
        Some(panel) if limit >= STAYING && !has_no_composer(model) && model.browse.is_none() => {
            approval::height(panel, rest.width, limit, false)
        }
        Some(_) | None => 0,
    }
}

fn draw_staying(model: &mut UiModel, area: Rect, buffer: &mut Buffer, now: u64) {
    if area.height == 0 {
        return;
    }
    let place = (model.dialogs.position_number(), model.dialogs.len());
    let frame = approval::DrawContext {
        theme: &model.screen.theme,
        glyphs: &model.screen.glyphs,
        now,
        place,
        draft: "",
        is_focused: false,
    };
    if let Some(panel) = model.dialogs.staying_mut() {
        approval::draw(panel, area, buffer, frame);
    }
}

fn composer_width(width: u16) -> u16 {
    width.saturating_sub(3).max(1)
}

fn draw_panel(model: &mut UiModel, area: Rect, buffer: &mut Buffer, now: u64) -> Option<Position> {
    let draft = model.composer.shown_text();
    let place = (model.dialogs.position_number(), model.dialogs.len());
    let draft = first_line(&draft);
    let frame =
        approval::DrawContext { theme: &model.screen.theme, glyphs: &model.screen.glyphs, now, place, draft, is_focused: true };
    if let Some((inbox, panels)) = model.dialogs.inbox_mut() {
        return inbox.draw(panels, area, buffer, frame);
    }
    approval::draw(model.dialogs.open_mut()?, area, buffer, frame)
}

fn draw_composer(model: &UiModel, area: Rect, buffer: &mut Buffer) -> Position {
    let faint = model.screen.theme.style(Token::Faint);
    let rule = model.screen.glyphs.rule.repeat(area.width.into());
    buffer.set_stringn(area.x, area.y, &rule, area.width.into(), faint);
    buffer.set_stringn(area.x, area.bottom() - 1, &rule, area.width.into(), faint);
    buffer.set_stringn(area.x, area.y + 1, model.screen.glyphs.user, 2, model.screen.theme.symbol(Token::Accent));
    let inner = Rect { x: area.x + 2, y: area.y + 1, width: composer_width(area.width), height: area.height.saturating_sub(2) };
    let cursor = model.composer.draw(inner, buffer, &model.screen.theme);
    if !model.composer.is_empty() && model.composer.rows_above() > 0 {
        let words = format!("{} {} above ", model.screen.glyphs.more, format::format_count(model.composer.rows_above(), "line"));
        buffer.set_stringn(inner.x, area.y, format!(" {words}"), inner.width.into(), faint);
    }
    if let Some(words) = model.draft.attached.sizes_in(|| model.composer.text(), usize::from(area.width).saturating_sub(8)) {
        let words = format!(" {words} ");
        let x = area.right().saturating_sub(text::width(&words) as u16 + 1);
        buffer.set_stringn(x, area.bottom() - 1, &words, area.width.into(), faint);
    }
    if model.composer.is_empty() {
        let read_only = match &model.info.model_access {
            Some(ModelAccess::ReadOnly { holder }) => Some(format!("read-only: {}", text::clean(holder))),
            _ => None,
        };
        let words = match (model.is_running(), area.width >= WIDE, model.keys.kitty) {
            (false, _, _) => read_only.as_deref().unwrap_or("Ask, or describe a change"),
            (true, true, true) => "Type ahead: enter sends it after this task, ctrl+enter steers now",
            (true, true, false) => "Type ahead: enter sends it after this task, /steer TEXT steers now",
            (true, false, _) if area.width >= NARROW => "Type ahead: enter sends it after this task",
            (true, false, _) => "Type ahead: enter sends it next",
        };
        let words = model.keymap.translate_keys(Focus::Composer, words);
        // One cell remains for the cursor.
        buffer.set_stringn(inner.x + 1, inner.y, words, inner.width.saturating_sub(1).into(), faint);
    }
    cursor
}
