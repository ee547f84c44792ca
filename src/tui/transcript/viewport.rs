//! Visible part of the transcript, and how it scrolls.

use super::marks::VisibleEntry;
use super::{RenderContext, Transcript, TranscriptEntryKind, WARM};
use crate::protocol::CallId;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Number of entries above the view below which older history must be requested.
const NEAR_START: usize = 4;

/// Row within an entry, counted from the gap above the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct EntryRow {
    pub entry: usize,
    pub row: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The view follows the end of the transcript, keeping the last row visible.
    End,
    /// The view is scrolled so that this row is at its top.
    At(EntryRow),
}

impl Transcript {
    /// Returns the height of an entry in rows, laying it out if necessary.
    pub(super) fn height_of(&mut self, at: usize, look: RenderContext<'_>) -> usize {
        let Some(entry) = self.entries.get_mut(at) else { return 0 };
        if entry.is_measured(look) {
            return self.heights.get(at);
        }
        let rows = entry.height(look);
        if !std::mem::replace(&mut entry.is_warm, true) {
            self.warm.push_back(at);
        }
        self.heights.set(at, rows);
        rows
    }

    /// Adapts the view to a new width. The entry at the top of the view, or the visible part of a long entry, stays at
    /// the top.
    fn settle_width(&mut self, look: RenderContext<'_>) {
        if self.width == look.width {
            return;
        }
        if let Anchor::At(mut spot) = self.anchor {
            spot.row = self.row_at_width(spot, look);
            self.anchor = Anchor::At(spot);
            self.top = spot;
        }
        self.width = look.width;
        self.marks.selection = None;
    }

    pub(crate) fn is_following(&self) -> bool {
        self.anchor == Anchor::End
    }

    pub(crate) fn follow_end(&mut self) {
        self.anchor = Anchor::End;
        self.forget_new();
    }

    fn forget_new(&mut self) {
        self.new = 0;
        for (at, _) in self.touched.drain(..) {
            if let Some(entry) = self.entries.get_mut(at) {
                entry.is_touched = false;
            }
        }
    }

    pub(crate) fn scroll_to_start(&mut self) {
        self.anchor = Anchor::At(EntryRow::default());
    }

    /// Returns whether the view is close enough to the start of the loaded history that older entries must be
    /// requested.
    pub(crate) fn is_near_start(&self) -> bool {
        matches!(self.anchor, Anchor::At(spot) if spot.entry < NEAR_START)
    }

    pub(crate) fn page(&self) -> usize {
        usize::from(self.height.saturating_sub(2).max(1))
    }

    pub(crate) fn scroll_up(&mut self, rows: usize, look: RenderContext<'_>) {
        self.settle_width(look);
        let spot = self.row_above(self.top, rows, look);
        // The view already shows the first row.
        if spot == self.top && matches!(self.anchor, Anchor::End) {
            return;
        }
        self.anchor = Anchor::At(spot);
        self.top = spot;
    }

    pub(crate) fn scroll_down(&mut self, rows: usize, look: RenderContext<'_>) {
        self.settle_width(look);
        let Anchor::At(spot) = self.anchor else { return };
        let spot = self.row_below(spot, rows, look);
        self.anchor = Anchor::At(spot);
        self.top = spot;
    }

    fn row_above(&mut self, mut spot: EntryRow, rows: usize, look: RenderContext<'_>) -> EntryRow {
        let mut left = rows;
        loop {
            if spot.row >= left {
                spot.row -= left;
                return spot;
            }
            left -= spot.row;
            if spot.entry == 0 {
                return EntryRow::default();
            }
            spot.entry -= 1;
            spot.row = self.height_of(spot.entry, look);
        }
    }

    fn row_below(&mut self, mut spot: EntryRow, rows: usize, look: RenderContext<'_>) -> EntryRow {
        spot.row += rows;
        while spot.entry < self.entries.len() {
            let height = self.height_of(spot.entry, look);
            if spot.row < height {
                break;
            }
            spot.row -= height;
            spot.entry += 1;
        }
        spot
    }

    /// Scrolls as little as necessary to make the given rows of an entry visible. If they do not all fit, shows the
    /// first ones.
    pub(crate) fn show(&mut self, at: usize, rows: std::ops::Range<usize>, look: RenderContext<'_>) {
        self.settle_width(look);
        let height = usize::from(self.height.max(1));
        let first = EntryRow { entry: at, row: rows.start };
        let top = self.find_top(height, look);
        if first < top {
            self.anchor = Anchor::At(first);
            self.top = first;
            return;
        }
        let last = EntryRow { entry: at, row: rows.end.saturating_sub(1).max(rows.start) };
        let highest = self.row_above(last, height - 1, look).min(first);
        if highest > top {
            self.anchor = Anchor::At(highest);
            self.top = highest;
        }
    }

    /// Scrolls to make an entry visible, or as many of its first rows as fit.
    pub(crate) fn show_entry(&mut self, at: usize, look: RenderContext<'_>) {
        let rows = self.height_of(at, look);
        self.show(at, 0..rows, look);
    }

    /// Returns the number of rows added since the user scrolled up, and the number of rows below the view. Rows that
    /// have never been laid out are estimated. Returns `None` while the view follows the end.
    pub(crate) fn unread_rows(&mut self, look: RenderContext<'_>) -> Option<(usize, usize)> {
        self.settle_width(look);
        self.tells_below = matches!(self.anchor, Anchor::At(_));
        let Anchor::At(top) = self.anchor else { return None };
        for (at, before) in std::mem::take(&mut self.touched) {
            let rows = self.height_of(at, look);
            if let Some(entry) = self.entries.get_mut(at) {
                entry.is_touched = false;
            }
            if at >= top.entry {
                self.new = (self.new + rows).saturating_sub(before);
            }
        }
        let all = self.heights.total().saturating_sub(self.heights.rows_before(top.entry));
        // The row with these numbers takes one row from the view.
        let height = self.height.saturating_sub(u16::from(!self.shows_count_below));
        let below = all.saturating_sub(top.row).saturating_sub(height.into());
        self.new = self.new.min(below);
        Some((self.new, below))
    }

    /// Draws the transcript. Returns a position that increases by one for each row by which the view moves down.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, look: RenderContext<'_>) -> u64 {
        self.settle_width(look);
        self.marks.begin_frame();
        self.height = area.height;
        self.shows_count_below = self.tells_below;
        let top = self.find_top(usize::from(area.height), look);
        self.remember(top, look);
        let (mut spot, mut y) = (top, area.top());
        while y < area.bottom() && spot.entry < self.entries.len() {
            let rows = self.height_of(spot.entry, look).saturating_sub(spot.row);
            let shown = rows.min(usize::from(area.bottom() - y));
            let place = Rect { y, height: shown as u16, ..area };
            let entry = &mut self.entries[spot.entry];
            let drawn = entry.draw(place, buffer, spot.row, look);
            if !std::mem::replace(&mut entry.is_warm, true) {
                self.warm.push_back(spot.entry);
            }
            self.marks.draw(VisibleEntry { entry: spot.entry, area: place, from: spot.row, drawn: &drawn }, buffer, look);
            y += shown as u16;
            spot = EntryRow { entry: spot.entry + 1, row: 0 };
        }
        self.cool(top.entry..spot.entry);
        self.position
    }

    /// Drops the cached rows of entries that have not been visible recently.
    fn cool(&mut self, seen: std::ops::Range<usize>) {
        for _ in 0..self.warm.len().saturating_sub(WARM) {
            let Some(at) = self.warm.pop_front() else { return };
            if seen.contains(&at) {
                self.warm.push_back(at);
            } else if let Some(entry) = self.entries.get_mut(at) {
                entry.cool();
                entry.is_warm = false;
            }
        }
    }

    /// Returns the entry and the row within it that are drawn at a given row of the view, if any.
    pub(crate) fn spot_at(&mut self, row: u16, look: RenderContext<'_>) -> Option<EntryRow> {
        let top = self.top;
        Some(self.row_below(top, row.into(), look)).filter(|spot| spot.entry < self.entries.len())
    }

    fn find_top(&mut self, height: usize, look: RenderContext<'_>) -> EntryRow {
        if let Anchor::At(mut spot) = self.anchor {
            if spot.entry < self.entries.len() {
                spot.row = spot.row.min(self.height_of(spot.entry, look).saturating_sub(1));
            }
            let mut rows = 0;
            for at in spot.entry..self.entries.len() {
                rows += self.height_of(at, look) - if at == spot.entry { spot.row } else { 0 };
                if rows > height {
                    self.anchor = Anchor::At(spot);
                    return spot;
                }
            }
            self.follow_end();
        }
        let mut rows = 0;
        for at in (0..self.entries.len()).rev() {
            rows += self.height_of(at, look);
            if rows >= height {
                return EntryRow { entry: at, row: rows - height };
            }
        }
        EntryRow::default()
    }

    /// Returns the row at the current width that corresponds to `spot`, which is a row at the previous width.
    fn row_at_width(&mut self, spot: EntryRow, look: RenderContext<'_>) -> usize {
        let before = self.heights.get(spot.entry);
        let Some(entry) = self.entries.get_mut(spot.entry) else { return spot.row };
        let gap = entry.gap_rows();
        let inner = look.width.saturating_sub(crate::tui::metrics::GUTTER).max(1);
        if let TranscriptEntryKind::Answer { document, .. } = &mut entry.kind
            && spot.row >= gap
        {
            let place = document.block_at(spot.row - gap);
            return gap + document.row_of(inner, place);
        }
        let now = self.height_of(spot.entry, look);
        (spot.row * now).checked_div(before).unwrap_or(spot.row)
    }

    /// Records how far the view has moved since the last frame, so that rows already on the screen need not be sent
    /// again.
    fn remember(&mut self, top: EntryRow, look: RenderContext<'_>) {
        if top < self.top {
            self.position -= 1;
        } else {
            let enough = usize::from(self.height) + self.top.row;
            let mut between = 0;
            for at in self.top.entry..top.entry {
                // Beyond the height of the screen, no row can be reused, so the exact distance is irrelevant.
                if between > enough {
                    break;
                }
                between += self.height_of(at, look);
            }
            self.position += (between + top.row).saturating_sub(self.top.row) as u64;
        }
        self.top = top;
    }
}

impl Transcript {
    /// Returns the height of the view in the last frame, in rows.
    pub(crate) fn view_height(&self) -> u16 {
        self.height
    }

    /// Returns the index of the entry at the top of the view.
    pub(crate) fn first_shown(&self) -> usize {
        self.top.entry.min(self.entries.len().saturating_sub(1))
    }

    /// Returns the index range of the entries that have at least one visible row.
    pub(crate) fn shown_entries(&mut self, look: RenderContext<'_>) -> std::ops::Range<usize> {
        let top = self.find_top(self.height.max(1).into(), look);
        let last = self.row_below(top, usize::from(self.height.saturating_sub(1)), look);
        top.entry..(last.entry + 1).min(self.entries.len())
    }

    /// Returns whether a view of this height follows the end and shows the first row of a call's card.
    pub(crate) fn shows_card(&mut self, id: &CallId, height: u16, look: RenderContext<'_>) -> bool {
        let Some(at) = self.calls.get(id).copied().filter(|_| self.is_following() && self.card(id).is_some()) else {
            return false;
        };
        self.settle_width(look);
        let first = EntryRow { entry: at, row: self.gap_rows(at) };
        self.find_top(height.into(), look) <= first
    }

    /// Returns the first visible row of an entry, never a row of the gap above the entry.
    pub(crate) fn first_row_shown(&mut self, at: usize, look: RenderContext<'_>) -> usize {
        let top = self.find_top(self.height.max(1).into(), look);
        let gap = self.gap_rows(at);
        if top.entry == at { top.row.max(gap) } else { gap }
    }

    pub(crate) fn last_row(&mut self, at: usize, look: RenderContext<'_>) -> usize {
        self.height_of(at, look).saturating_sub(1)
    }
}
