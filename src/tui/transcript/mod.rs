//! What was said and done, as rows: laid out only where it is looked at.

mod card;
mod context_meter;
mod entry;
mod find;
mod heights;
mod marks;
mod output;
mod plain;
mod recovery;
mod rewound;
#[cfg(test)]
mod tests;
mod viewport;

pub use card::{Card, CardState};
pub use entry::{AnswerState, Entry, Kind, Tone};
pub use find::{Query, SearchMatches};
pub use marks::{Marks, Point, Selection, SelectionShape};
pub use output::{exit_of, take_exit};
pub use plain::code_blocks;
pub use recovery::{Recovery, RecoveryState};

use super::glyphs::Glyphs;
use super::markdown::Document;
use super::theme::Theme;
use crate::protocol::{CallId, StepId, TaskId};
use heights::Heights;
use std::collections::{HashMap, VecDeque};
use viewport::{Anchor, EntryRow};

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
pub struct RenderContext<'a> {
    pub width: u16,
    /// Of cards, and of all else that folds.
    pub fold: Fold,
    pub rest: Fold,
    /// Whether this entry was folded by itself: then also what opens without being asked is closed.
    pub is_own: bool,
    /// Browse mode is on: Enter folds the chosen entry.
    pub browses: bool,
    /// The key that unfolds all.
    pub unfolds: &'a str,
    /// How often all were folded at once: what was chosen for one entry before counts no longer.
    pub round: u32,
    /// Rows that were made under another one are made anew.
    pub version: u32,
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    /// What streams is shown up to its last whole row.
    pub whole_rows: bool,
    pub now: u64,
}

/// Entries whose rows are kept for the next frame, besides those that are on the screen.
const WARM: usize = 256;

pub struct Transcript {
    entries: Vec<Entry>,
    /// Rows of each entry: measured, or as it was last, or guessed.
    heights: Heights,
    calls: HashMap<CallId, usize>,
    /// The newest answer.
    answer: Option<usize>,
    anchor: Anchor,
    fold: Fold,
    rest: Fold,
    round: u32,
    version: u32,
    /// The first row of the last frame, and how many rows the view has moved down since the start.
    top: EntryRow,
    position: u64,
    /// Rows that came since the person scrolled up.
    new: usize,
    /// Entries that changed since, and how high they were.
    touched: Vec<(usize, usize)>,
    /// Where the last frame was drawn.
    height: u16,
    /// The next frame, and the one before it, have a row that says what is below.
    tells_below: bool,
    told_below: bool,
    width: u16,
    /// Entries that keep rows, the one that was laid out longest ago first.
    warm: VecDeque<usize>,
    /// The entry that keys are for, what is selected, what was found.
    pub marks: marks::Marks,
    /// Whose the entries are that are pushed now.
    task: Option<TaskId>,
    step: Option<StepId>,
    /// How often something was undone.
    rewinds: u32,
    /// The call whose question stands below.
    asked: Option<CallId>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            heights: Heights::default(),
            calls: HashMap::new(),
            answer: None,
            anchor: Anchor::End,
            fold: Fold::default(),
            rest: Fold::default(),
            round: 0,
            version: 0,
            top: EntryRow::default(),
            // Far from zero, so that a step back is a smaller number too.
            position: 1 << 40,
            new: 0,
            touched: Vec::new(),
            height: 0,
            tells_below: false,
            told_below: false,
            width: 80,
            warm: VecDeque::new(),
            marks: marks::Marks::default(),
            task: None,
            step: None,
            rewinds: 0,
            asked: None,
        }
    }
}

impl Transcript {
    pub fn push(&mut self, kind: Kind) {
        let gap = self.entries.last().is_some_and(|last| entry::stands_apart(&last.kind, &kind));
        let at = self.entries.len();
        match &kind {
            Kind::Card(card) => {
                self.calls.insert(card.id.clone(), at);
            }
            Kind::Answer { .. } => self.answer = Some(at),
            _ => {}
        }
        let entry = Entry::new(kind, gap).of(self.task.clone(), self.step.clone());
        self.heights.push(entry.guess(self.width));
        self.entries.push(entry);
        self.touch(at, Some(0));
    }

    /// What was pushed, from this entry on.
    pub fn kinds_from(&self, first: usize) -> impl Iterator<Item = &Kind> {
        self.entries.iter().skip(first).map(|entry| &entry.kind)
    }

    /// The newest entry, to be added to.
    pub fn last_mut(&mut self) -> Option<&mut Entry> {
        let last = self.entries.len().checked_sub(1)?;
        self.changing(last)
    }

    /// The answer that streams: what was noted meanwhile stands behind it and does not part it.
    pub fn streaming_mut(&mut self) -> Option<&mut Document> {
        let aside = |kind: &Kind| matches!(kind, Kind::Note { .. } | Kind::Window(_) | Kind::Summary { .. } | Kind::Recovery(_));
        let at = self.entries.iter().rposition(|entry| !aside(&entry.kind))?;
        if !matches!(self.entries[at].kind, Kind::Answer { state: AnswerState::Streaming, .. }) {
            return None;
        }
        match &mut self.changing(at)?.kind {
            Kind::Answer { document, .. } => Some(document),
            _ => None,
        }
    }

    /// The newest answer, wherever it stands.
    pub fn last_answer_mut(&mut self) -> Option<&mut Entry> {
        self.changing(self.answer?)
    }

    pub fn card_mut(&mut self, id: &CallId) -> Option<&mut Card> {
        let at = *self.calls.get(id)?;
        match &mut self.changing(at)?.kind {
            Kind::Card(card) => Some(card),
            _ => None,
        }
    }

    /// The question about this call, if any, is shown below: its card says nothing twice.
    pub fn show_asked_below(&mut self, id: Option<&CallId>) {
        if self.asked.as_ref() == id {
            return;
        }
        for (call, is_asked) in [(self.asked.take(), false), (id.cloned(), true)] {
            if let Some(card) = call.as_ref().and_then(|call| self.card_mut(call)) {
                card.is_asked_below = is_asked;
            }
        }
        self.asked = id.cloned();
    }

    pub fn cards_mut(&mut self) -> impl Iterator<Item = &mut Card> {
        self.entries.iter_mut().filter_map(|entry| match &entry.kind {
            Kind::Card(_) => {
                entry.forget_layout();
                entry.card_mut()
            }
            _ => None,
        })
    }

    /// Those that were not undone.
    pub fn standing_cards_mut(&mut self) -> impl Iterator<Item = &mut Card> {
        self.entries.iter_mut().filter(|entry| entry.undone.is_none()).filter_map(Entry::card_mut)
    }

    /// What the process before left in flight, said at the end of what was said.
    pub fn recovery_mut(&mut self) -> Option<&mut Recovery> {
        let at = self.entries.iter().rposition(|entry| matches!(entry.kind, Kind::Recovery(_)))?;
        match &mut self.changing(at)?.kind {
            Kind::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn entry(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// An entry that is about to be changed: what was made of it is made anew, and what comes of it is counted.
    fn changing(&mut self, at: usize) -> Option<&mut Entry> {
        let before = self.entries.get(at)?.is_measured_at(self.width, self.version).then(|| self.heights.get(at));
        self.touch(at, before);
        let entry = self.entries.get_mut(at)?;
        entry.forget_layout();
        Some(entry)
    }

    /// While the person is scrolled up it is told how much came.
    fn touch(&mut self, at: usize, before: Option<usize>) {
        if self.anchor == Anchor::End {
            return;
        }
        if let Some(before) = before
            && let Some(entry) = self.entries.get_mut(at)
            && !std::mem::replace(&mut entry.is_touched, true)
        {
            self.touched.push((at, before));
        }
    }

    /// The same look with what is folded here.
    pub fn look<'a>(&self, width: u16, theme: &'a Theme, glyphs: &'a Glyphs, now: u64) -> RenderContext<'a> {
        let Self { fold, rest, round, version, .. } = *self;
        RenderContext {
            width,
            fold,
            rest,
            is_own: false,
            browses: self.marks.chosen.is_some(),
            unfolds: "ctrl+o",
            round,
            version,
            theme,
            glyphs,
            whole_rows: false,
            now,
        }
    }

    /// All entries a step further open, then closed again; what was chosen for one of them counts no longer.
    pub fn fold_all(&mut self) {
        let next = self.fold.next();
        self.fold_to(next, next);
    }

    /// The cards alone.
    pub fn fold_tools(&mut self) {
        let rest = self.rest;
        self.fold_to(self.fold.next(), rest);
    }

    /// All there is, or as little as can be.
    pub fn fold_everything(&mut self) {
        let next = if self.fold == Fold::Full && self.rest == Fold::Full { Fold::Quiet } else { Fold::Full };
        self.fold_to(next, next);
    }

    fn fold_to(&mut self, fold: Fold, rest: Fold) {
        (self.fold, self.rest) = (fold, rest);
        self.round += 1;
        self.forget_layout();
    }

    /// One entry a step further open, or closed again; whether it has anything that folds.
    pub fn fold_one(&mut self, at: usize) -> bool {
        let (fold, rest, round) = (self.fold, self.rest, self.round);
        let Some(entry) = self.entries.get_mut(at) else { return false };
        let done = entry.fold_next(fold, rest, round);
        self.marks.selection = None;
        done
    }

    /// One entry as open as it can be.
    pub fn unfold(&mut self, at: usize) {
        let round = self.round;
        if let Some(entry) = self.entries.get_mut(at) {
            entry.fold_by_itself(Fold::Full, round);
        }
    }

    /// The colours or the folding changed: rows are made anew where they are looked at, and until then are as many as they were.
    pub fn forget_layout(&mut self) {
        self.version += 1;
        self.marks.selection = None;
    }

    /// Puts what was said before under the greeting. What is looked at stays where it is; where the greeting was, the older rows are.
    pub fn prepend(&mut self, older: Self, look: RenderContext<'_>) {
        let count = older.entries.len();
        let at = usize::from(matches!(self.entries.first(), Some(Entry { kind: Kind::Greeting(_), .. })));
        let above = match self.anchor {
            Anchor::At(spot) if spot.entry < at => self.height_of(0, look).saturating_sub(spot.row),
            Anchor::At(_) | Anchor::End => 0,
        };
        let guesses: Vec<usize> = older.entries.iter().map(|entry| entry.guess(self.width)).collect();
        self.heights.insert(at, guesses);
        drop(self.entries.splice(at..at, older.entries));
        let shift = |index: &mut usize| {
            if *index >= at {
                *index += count;
            }
        };
        self.calls.values_mut().for_each(shift);
        for (call, index) in older.calls {
            // A server may give two calls the same name: the newer one is the one that is told of.
            self.calls.entry(call).or_insert(index + at);
        }
        match &mut self.answer {
            Some(answer) => shift(answer),
            None => self.answer = older.answer.map(|answer| answer + at),
        }
        self.warm.iter_mut().for_each(shift);
        self.touched.iter_mut().for_each(|(index, _)| shift(index));
        self.marks.shift(shift);
        shift(&mut self.top.entry);
        if let Anchor::At(spot) = &mut self.anchor {
            shift(&mut spot.entry);
        }
        if above > 0 && count > 0 {
            self.top = EntryRow { entry: at + count, row: 0 };
            self.scroll_up(above, look);
        }
    }
}
