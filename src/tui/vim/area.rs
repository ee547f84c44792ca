//! Cursor movement and deletion in the draft by position.

use super::motion::{Lines, Place};
use tui_textarea::{CursorMove, TextArea};

pub(super) fn cursor_place(area: &TextArea<'_>) -> Place {
    let at = area.cursor();
    Place { row: at.0, column: at.1 }
}

pub(super) fn line_end(lines: &Lines, at: Place) -> Place {
    Place { column: lines.length(at.row), ..at }
}

/// Highest row and column to which the cursor can be moved.
const FARTHEST: usize = u16::MAX as usize;

/// Returns whether the text contains positions to which the cursor cannot be moved.
pub(crate) fn is_too_large(area: &TextArea<'_>) -> bool {
    let is_long = |line: &String| line.len() > FARTHEST && line.chars().count() > FARTHEST;
    area.lines().len() > FARTHEST || area.lines().iter().any(is_long)
}

pub(crate) fn move_cursor(area: &mut TextArea<'_>, to: Place) {
    let bounded = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    area.move_cursor(CursorMove::Jump(bounded(to.row), bounded(to.column)));
}

pub(super) fn cut(area: &mut TextArea<'_>, from: Place, to: Place) {
    if from == to {
        return;
    }
    let yanked = area.yank_text();
    area.cancel_selection();
    move_cursor(area, from);
    area.start_selection();
    move_cursor(area, to);
    area.cut();
    area.set_yank_text(yanked);
}
