//! Screen regions of the choices in the last frame, used for mouse input.

use super::Dialog;
use super::rows::{Choices, PanelRows, choice_height, is_more_short, pack_choices, packed_gap, packed_width, split_choices};
use crate::tui::metrics::GUTTER;
use ratatui::layout::{Position, Rect};

/// Returns each choice's screen region and index. Returns an empty list while a line field replaces the choices.
pub(crate) fn spots(panel: &Dialog, rows: PanelRows, area: Rect) -> Vec<(Rect, usize)> {
    if panel.words.is_some() {
        return Vec::new();
    }
    let (own, others) = split_choices(panel, rows.choices);
    let mut spots = Vec::new();
    let mut y = area.y;
    for at in own {
        let height = if rows.choices == Choices::Rows { choice_height(panel, at, area.width) } else { 1 };
        spots.push((Rect { y, height, ..area }, at));
        y += height;
    }
    let is_short = is_more_short(panel, others.clone(), area.width);
    for row in pack_choices(panel, others, area.width) {
        let mut x = area.x + GUTTER;
        for at in row {
            let wide = packed_width(panel, at, area.width, is_short);
            spots.push((Rect { x, y, width: wide as u16, height: 1 }, at));
            x += (wide + packed_gap(area.width).len()) as u16;
        }
        y += 1;
    }
    spots
}

/// Returns the index of the enabled choice drawn at this screen position in the last frame, if any.
pub(crate) fn choice_at(panel: &Dialog, place: Position) -> Option<usize> {
    let found = panel.spots.iter().find(|(area, _)| area.contains(place)).map(|(_, at)| *at)?;
    panel.choices.get(found).filter(|choice| choice.enabled).map(|_| found)
}
