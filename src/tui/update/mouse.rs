//! Mouse input: the wheel scrolls, a click folds or unfolds a card, and a drag selects text within an entry.

use super::focus::{self, InputTarget};
use super::{history_page, layers, overview};
use crate::tui::approval::choice_at;
use crate::tui::clipboard::Clip;
use crate::tui::layers::Topic;
use crate::tui::metrics::GUTTER;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::picker::ClickResult;
use crate::tui::pointer::Click;
use crate::tui::transcript::{EntryCell, Selection, SelectionShape};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

/// Number of rows scrolled per step of the mouse wheel.
const WHEEL_ROWS: usize = 3;
/// Time, in milliseconds after the window gains focus, during which clicks are ignored.
const SETTLE_MS: u64 = 300;
/// Interval, in milliseconds, between scroll steps while the pointer is dragged along an edge.
const EDGE_MS: u64 = 60;

pub(crate) fn mouse(model: &mut UiModel, event: MouseEvent, now: u64, effects: &mut Vec<UiEffect>) {
    if focus::target(model) == InputTarget::LayerAboveDialogs {
        // The layer covers everything under the pointer.
        let rows = WHEEL_ROWS.cast_signed();
        model.screen.dirty |= match event.kind {
            MouseEventKind::ScrollUp => layers::wheel(model, -rows, now, effects),
            MouseEventKind::ScrollDown => layers::wheel(model, rows, now, effects),
            _ => false,
        };
        return;
    }
    match event.kind {
        MouseEventKind::ScrollUp => wheel(model, true, now, effects),
        MouseEventKind::ScrollDown => wheel(model, false, now, effects),
        MouseEventKind::Down(MouseButton::Left) if model.dialogs.inbox().is_some() => point(model, event, now),
        MouseEventKind::Down(MouseButton::Left) if click_strip(model, event, now) => {}
        MouseEventKind::Down(MouseButton::Left) if click_row(model, event, now, effects) => {}
        MouseEventKind::Down(MouseButton::Left) => {
            point(model, event, now);
            press(model, event, now);
        }
        MouseEventKind::Drag(MouseButton::Left) => drag(model, event, now),
        MouseEventKind::Up(MouseButton::Left) => release(model, event, now, effects),
        _ => {}
    }
}

/// Highlights the clicked choice in a dialog. Only Enter can confirm it.
fn point(model: &mut UiModel, event: MouseEvent, now: u64) {
    model.screen.dirty = true;
    let place = Position { x: event.column, y: event.row };
    if let Some((inbox, panels)) = model.dialogs.inbox_mut() {
        return inbox.click(place, panels, now);
    }
    let Some(panel) = model.dialogs.open_mut() else { return };
    if let Some(choice) = choice_at(panel, place) {
        panel.point(choice, now);
    }
}

/// Handles a click on a row above the composer. Returns `false` if the row does not react to clicks.
fn click_strip(model: &mut UiModel, event: MouseEvent, now: u64) -> bool {
    let clicked = model.screen.pointer.strip.iter().find(|(row, _)| *row == event.row).map(|(_, click)| *click);
    let Some(click) = clicked.filter(|_| !is_window_activation(model, now) && !model.is_too_small()) else { return false };
    model.screen.dirty = true;
    match click {
        Click::End => model.transcript.follow_end(),
        Click::Review if model.dialogs.is_open() => model.dialogs.cycle(true, model.keys.last_text),
        Click::Steps => overview::open(model, Topic::Steps),
        Click::Review => model.dialogs.open_current(model.keys.last_text),
    }
    true
}

/// Returns whether a click may have been intended only to bring the window to the front.
fn is_window_activation(model: &UiModel, now: u64) -> bool {
    model.screen.pointer.focused.is_some_and(|at| now.saturating_sub(at) < SETTLE_MS)
}

/// Highlights the clicked row in a list or menu, or chooses it if it is already highlighted. Returns whether there is a
/// list or menu under the pointer.
fn click_row(model: &mut UiModel, event: MouseEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if is_window_activation(model, now) || model.dialogs.is_open() || model.is_too_small() {
        return false;
    }
    let clicked = match model.layers.top() {
        Some(_) => layers::click(model, event.row, now, effects),
        None => model.menu.click(event.row),
    };
    match clicked {
        None => return false,
        Some(ClickResult::Nothing) => {}
        Some(ClickResult::Marked) => model.screen.dirty = true,
        Some(ClickResult::Taken) => {
            let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
            super::dispatch_key(model, enter, enter, now, effects);
        }
    }
    true
}

fn wheel(model: &mut UiModel, up: bool, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.dirty = true;
    let rows = if up { -WHEEL_ROWS.cast_signed() } else { WHEEL_ROWS.cast_signed() };
    if let Some((inbox, panels)) = model.dialogs.inbox_mut() {
        return inbox.move_by(rows.signum(), panels);
    }
    if let Some(panel) = model.dialogs.open_mut() {
        return panel.scroll_by(rows);
    }
    if layers::wheel(model, rows, now, effects) {
        return;
    }
    let (transcript, look) = model.transcript_look(now);
    if up {
        transcript.scroll_up(WHEEL_ROWS, look);
        history_page::request_older(model, effects);
    } else {
        transcript.scroll_down(WHEEL_ROWS, look);
    }
}

/// Returns whether the transcript is visible.
fn is_transcript_shown(model: &UiModel) -> bool {
    !model.is_too_small() && model.layers.drawn(model.dialogs.is_open()).is_none()
}

/// Returns the index of the entry under the pointer, and the cell within it.
fn point_under_mouse(model: &mut UiModel, event: MouseEvent, now: u64) -> Option<(usize, EntryCell)> {
    if !is_transcript_shown(model) || event.row >= model.transcript.view_height() {
        return None;
    }
    let (transcript, look) = model.transcript_look(now);
    let spot = transcript.spot_at(event.row, look)?;
    Some((spot.entry, EntryCell { row: spot.row, cell: event.column.saturating_sub(GUTTER) }))
}

fn press(model: &mut UiModel, event: MouseEvent, now: u64) {
    model.screen.pointer.pressed = None;
    if is_window_activation(model, now) {
        return;
    }
    model.screen.dirty = true;
    model.transcript.marks.selection = None;
    model.screen.pointer.pressed = point_under_mouse(model, event, now);
    if model.screen.pointer.pressed.is_none() && !model.dialogs.is_open() {
        model.composer.click(event.column, event.row);
    }
}

/// Extends the selection from the cell that was pressed, without leaving that cell's entry.
fn drag(model: &mut UiModel, event: MouseEvent, now: u64) {
    let Some((entry, from)) = model.screen.pointer.pressed else { return };
    model.screen.dirty = true;
    let height = model.transcript.view_height();
    let at_edge = event.row == 0 || event.row + 1 >= height;
    model.screen.pointer.edge = at_edge.then_some((event, now + EDGE_MS));
    let inside = MouseEvent { row: event.row.min(height.saturating_sub(1)), ..event };
    let (transcript, look) = model.transcript_look(now);
    let last = transcript.last_row(entry, look);
    let to = match transcript.spot_at(inside.row, look) {
        Some(spot) if spot.entry < entry => EntryCell { row: transcript.gap_rows(entry), cell: 0 },
        Some(spot) if spot.entry == entry => EntryCell { row: spot.row, cell: inside.column.saturating_sub(GUTTER) },
        Some(_) | None => EntryCell { row: last, cell: u16::MAX },
    };
    if to != from {
        transcript.marks.selection = Some(Selection { entry, from, to, shape: SelectionShape::Text });
    }
}

/// Scrolls by one row if a step is due while the pointer is dragged along an edge.
pub(crate) fn scroll_at_edge(model: &mut UiModel, now: u64) {
    let Some((event, at)) = model.screen.pointer.edge else { return };
    if now < at {
        return;
    }
    let (transcript, look) = model.transcript_look(now);
    if event.row == 0 {
        transcript.scroll_up(1, look);
    } else {
        transcript.scroll_down(1, look);
    }
    let kept = transcript.marks.selection;
    drag(model, event, now);
    // At the end of the text, the selection no longer changes, so no further timer is needed.
    if model.transcript.marks.selection == kept {
        model.screen.pointer.edge = None;
    }
}

/// Handles the release of the mouse button by copying the selection or, if nothing is selected, by handling a click.
fn release(model: &mut UiModel, event: MouseEvent, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.pointer.edge = None;
    let Some((entry, from)) = model.screen.pointer.pressed.take() else { return };
    model.screen.dirty = true;
    let (transcript, look) = model.transcript_look(now);
    if transcript.marks.selection.is_some() {
        if let Some(text) = transcript.selected_text(look) {
            effects.push(UiEffect::Copy(Clip::from_text(text)));
        }
        return;
    }
    if point_under_mouse(model, event, now).is_none_or(|(at, to)| at != entry || to.row != from.row) {
        return;
    }
    if model.browse.is_some() {
        model.transcript.marks.chosen = Some(entry);
    }
    // The gap above a card is not part of the card.
    if from.row >= model.transcript.gap_rows(entry) && model.transcript.entry(entry).is_some_and(|entry| entry.card().is_some()) {
        model.transcript.fold_one(entry);
    }
}
