//! What was said and done, as rows: laid out only where it is looked at.

mod card;
mod entry;
#[cfg(test)]
mod tests;
mod window;

pub use card::{Card, CardState, take_exit};
pub use entry::{AnswerState, Entry, Kind, Tone};

use super::glyphs::Glyphs;
use super::markdown::Document;
use super::theme::Theme;
use crate::protocol::CallId;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::HashMap;

/// How much of the cards is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fold {
    /// One line where all went well.
    #[default]
    Quiet,
    /// Head and tail of every output.
    Excerpt,
    /// All of every output.
    Full,
}

impl Fold {
    pub fn next(self) -> Self {
        match self {
            Self::Quiet => Self::Excerpt,
            Self::Excerpt => Self::Full,
            Self::Full => Self::Quiet,
        }
    }
}

/// What rows are made with.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub width: u16,
    pub fold: Fold,
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    pub now: u64,
}

/// A row of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Spot {
    entry: usize,
    row: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// The newest row stays in view.
    End,
    /// This row stays at the top.
    At(Spot),
}

pub struct Transcript {
    entries: Vec<Entry>,
    calls: HashMap<CallId, usize>,
    anchor: Anchor,
    fold: Fold,
    /// The first row of the last frame, and how many rows the view has moved down since the start.
    top: Spot,
    position: u64,
    /// How far down the text went when the person last scrolled.
    known: usize,
    height: u16,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            calls: HashMap::new(),
            anchor: Anchor::End,
            fold: Fold::default(),
            top: Spot::default(),
            // Far from zero, so that a step back is a smaller number too.
            position: 1 << 40,
            known: 0,
            height: 0,
        }
    }
}

impl Transcript {
    pub fn push(&mut self, kind: Kind) {
        let gap = self.entries.last().is_some_and(|last| entry::stands_apart(&last.kind, &kind));
        if let Kind::Card(card) = &kind {
            self.calls.insert(card.id.clone(), self.entries.len());
        }
        self.entries.push(Entry::new(kind, gap));
    }

    /// The newest entry, to be added to.
    pub fn last_mut(&mut self) -> Option<&mut Entry> {
        self.entries.last_mut()
    }

    /// The answer that streams: what was noted meanwhile stands behind it and does not part it.
    pub fn streaming_mut(&mut self) -> Option<&mut Document> {
        let aside = |kind: &Kind| matches!(kind, Kind::Note { .. } | Kind::Window(_) | Kind::Summary { .. });
        let entry = self.entries.iter_mut().rev().find(|entry| !aside(&entry.kind))?;
        match &mut entry.kind {
            Kind::Answer { document, state: AnswerState::Streaming } => Some(document),
            _ => None,
        }
    }

    /// The newest answer, wherever it stands.
    pub fn last_answer_mut(&mut self) -> Option<&mut Entry> {
        self.entries.iter_mut().rev().find(|entry| matches!(entry.kind, Kind::Answer { .. }))
    }

    pub fn card_mut(&mut self, id: &CallId) -> Option<&mut Card> {
        let entry = self.entries.get_mut(*self.calls.get(id)?)?;
        entry.forget_layout();
        match &mut entry.kind {
            Kind::Card(card) => Some(card),
            _ => None,
        }
    }

    pub fn cards_mut(&mut self) -> impl Iterator<Item = &mut Card> {
        self.entries.iter_mut().filter_map(|entry| match &mut entry.kind {
            Kind::Card(card) => {
                entry.laid = None;
                Some(card)
            }
            _ => None,
        })
    }

    pub fn fold(&self) -> Fold {
        self.fold
    }

    pub fn fold_all(&mut self) {
        self.fold = self.fold.next();
        self.forget_layout();
    }

    /// The colours or the folding changed.
    pub fn forget_layout(&mut self) {
        self.entries.iter_mut().for_each(Entry::forget_layout);
    }

    pub fn is_following(&self) -> bool {
        self.anchor == Anchor::End
    }

    pub fn follow(&mut self) {
        self.anchor = Anchor::End;
    }

    pub fn scroll_to_start(&mut self, look: Look<'_>) {
        self.anchor = Anchor::At(Spot::default());
        self.known = self.rows_below(look);
    }

    pub fn page(&self) -> usize {
        usize::from(self.height.saturating_sub(2).max(1))
    }

    pub fn scroll_up(&mut self, rows: usize, look: Look<'_>) {
        let mut spot = self.top;
        let mut left = rows;
        loop {
            if spot.row >= left {
                spot.row -= left;
                break;
            }
            left -= spot.row;
            if spot.entry == 0 {
                spot.row = 0;
                break;
            }
            spot.entry -= 1;
            spot.row = self.entries[spot.entry].height(look);
        }
        self.anchor = Anchor::At(spot);
        self.top = spot;
        self.known = self.rows_below(look);
    }

    pub fn scroll_down(&mut self, rows: usize, look: Look<'_>) {
        let Anchor::At(spot) = self.anchor else { return };
        let spot = self.down(spot, rows, look);
        self.anchor = Anchor::At(spot);
        self.top = spot;
        self.known = self.rows_below(look);
    }

    fn down(&mut self, mut spot: Spot, rows: usize, look: Look<'_>) -> Spot {
        spot.row += rows;
        while spot.entry < self.entries.len() {
            let height = self.entries[spot.entry].height(look);
            if spot.row < height {
                break;
            }
            spot.row -= height;
            spot.entry += 1;
        }
        spot
    }

    /// Rows from the top of the view to the end of the text.
    fn rows_below(&mut self, look: Look<'_>) -> usize {
        let top = match self.anchor {
            Anchor::End => return 0,
            Anchor::At(spot) => spot,
        };
        let rows: usize = self.entries.iter_mut().skip(top.entry).map(|entry| entry.height(look)).sum();
        rows.saturating_sub(top.row)
    }

    /// Rows that came since the person scrolled up, and all rows below the view.
    pub fn unread(&mut self, look: Look<'_>) -> Option<(usize, usize)> {
        if self.is_following() {
            return None;
        }
        let below = self.rows_below(look);
        Some((below.saturating_sub(self.known), below.saturating_sub(self.height.into())))
    }

    /// Draws it; the number grows with every row the view moves down.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, look: Look<'_>) -> u64 {
        self.height = area.height;
        let top = self.find_top(usize::from(area.height), look);
        self.remember(top, look);
        let (mut spot, mut y) = (top, area.top());
        while y < area.bottom() && spot.entry < self.entries.len() {
            let entry = &mut self.entries[spot.entry];
            let rows = entry.height(look).saturating_sub(spot.row);
            let shown = rows.min(usize::from(area.bottom() - y));
            entry.draw(Rect { y, height: shown as u16, ..area }, buffer, spot.row, look);
            y += shown as u16;
            spot = Spot { entry: spot.entry + 1, row: 0 };
        }
        self.position
    }

    fn find_top(&mut self, height: usize, look: Look<'_>) -> Spot {
        if let Anchor::At(mut spot) = self.anchor {
            // A narrower or wider window: the same entry stays, its row as far as it has as many.
            if let Some(entry) = self.entries.get_mut(spot.entry) {
                spot.row = spot.row.min(entry.height(look).saturating_sub(1));
            }
            let mut rows = 0;
            for (at, entry) in self.entries.iter_mut().enumerate().skip(spot.entry) {
                rows += entry.height(look) - if at == spot.entry { spot.row } else { 0 };
                if rows > height {
                    self.anchor = Anchor::At(spot);
                    return spot;
                }
            }
            self.anchor = Anchor::End;
        }
        let mut rows = 0;
        for (at, entry) in self.entries.iter_mut().enumerate().rev() {
            rows += entry.height(look);
            if rows >= height {
                return Spot { entry: at, row: rows - height };
            }
        }
        Spot::default()
    }

    /// How far the view has moved since the last frame, for the rows that need not be sent again.
    fn remember(&mut self, top: Spot, look: Look<'_>) {
        if top < self.top {
            self.position -= 1;
        } else {
            let enough = usize::from(self.height) + self.top.row;
            let mut between = 0;
            let passed = top.entry - self.top.entry;
            for entry in self.entries.iter_mut().skip(self.top.entry).take(passed) {
                // Further than the screen is high nothing can be kept: how far does not matter.
                if between > enough {
                    break;
                }
                between += entry.height(look);
            }
            self.position += (between + top.row).saturating_sub(self.top.row) as u64;
        }
        self.top = top;
    }
}
