//! The draft by places: where the cursor is and goes, and what is cut out.

use super::motion::{Lines, Place};
use tui_textarea::{CursorMove, TextArea};

pub(super) fn here(area: &TextArea<'_>) -> Place {
    let at = area.cursor();
    Place { row: at.0, column: at.1 }
}

pub(super) fn line_end(lines: &Lines, at: Place) -> Place {
    Place { column: lines.length(at.row), ..at }
}

pub(super) fn go(area: &mut TextArea<'_>, to: Place) {
    let bounded = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    area.move_cursor(CursorMove::Jump(bounded(to.row), bounded(to.column)));
}

pub(super) fn cut(area: &mut TextArea<'_>, from: Place, to: Place) {
    if from == to {
        return;
    }
    let yanked = area.yank_text();
    area.cancel_selection();
    go(area, from);
    area.start_selection();
    go(area, to);
    area.cut();
    area.set_yank_text(yanked);
}
