//! Screen regions of the choices in the last frame, for the mouse.

use super::Dialog;
use super::rows::{Choices, PanelRows, choice_height, pack_choices, packed_gap, packed_width, split_choices};
use crate::tui::metrics::GUTTER;
use ratatui::layout::{Position, Rect};

/// Returns the region of each choice. If a highlighted choice is shown in place of all others, only its own region is
/// returned.
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
    for row in pack_choices(panel, others, area.width) {
        let mut x = area.x + GUTTER;
        for at in row {
            let wide = packed_width(panel, at, area.width);
            spots.push((Rect { x, y, width: wide as u16, height: 1 }, at));
            x += (wide + packed_gap(area.width).len()) as u16;
        }
        y += 1;
    }
    spots
}

/// Returns the enabled choice at this position in the last frame.
pub(crate) fn choice_at(panel: &Dialog, place: Position) -> Option<usize> {
    let found = panel.spots.iter().find(|(area, _)| area.contains(place)).map(|(_, at)| *at)?;
    panel.choices.get(found).filter(|choice| choice.enabled).map(|_| found)
}
