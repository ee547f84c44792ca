//! Transcript: a list of entries that are laid out in rows on demand.

mod card;
mod entry;
mod find;
mod grouping;
mod heights;
mod marks;
mod output;
mod plain;
mod read_group;
mod recovery;
mod rewound;
#[cfg(test)]
mod tests;
mod text_rows;
mod viewport;

pub(crate) use card::{Card, CardState};
pub(crate) use entry::{AnswerState, NoteTone, TranscriptEntry, TranscriptEntryKind};
pub(crate) use find::{FindQuery, SearchMatches, find_all};
pub(crate) use grouping::join as join_reads;
pub(crate) use marks::{EntryCell, Marks, Selection, SelectionShape};
pub(crate) use output::take_exit;
pub(crate) use plain::code_blocks;
pub(crate) use read_group::ReadKind;
pub(crate) use recovery::{Recovery, RecoveryState};
pub(crate) use rewound::{last_active_response, redo_latest, tag_new_entries, undo_from};

use super::glyphs::Glyphs;
use super::markdown::MarkdownDocument;
use super::theme::Theme;
use crate::protocol::{CallId, StepId, TaskId};
use heights::Heights;
use std::collections::{HashMap, VecDeque};
use viewport::{Anchor, EntryRow};

/// Level of detail at which entries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fold {
    /// One line per successful call.
    #[default]
    Quiet,
    /// The start and end of each output.
    Excerpt,
    /// The full output.
    Full,
}

impl Fold {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Quiet => Self::Excerpt,
            Self::Excerpt => Self::Full,
            Self::Full => Self::Quiet,
        }
    }
}

/// Parameters that determine how entries are laid out and drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenderContext<'a> {
    pub width: u16,
    /// Fold state of cards. `rest` is the fold state of all other entries.
    pub fold: Fold,
    pub rest: Fold,
    /// Whether the entry has a fold state of its own. If so, it also closes bodies that are otherwise shown
    /// automatically.
    pub is_own: bool,
    /// Whether browse mode is on. In browse mode, Enter unfolds the focused entry.
    pub browses: bool,
    /// Name of the key that unfolds all entries.
    pub unfolds: &'a str,
    /// Number of global fold changes so far. The fold state of a single entry applies only until the next global
    /// change.
    pub round: u32,
    /// Layout version. Rows laid out for another version are invalid.
    pub version: u32,
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    /// Whether streamed text is shown only up to its last complete row.
    pub whole_rows: bool,
    pub now: u64,
}

/// Maximum number of entries whose rows are cached, in addition to the visible ones.
const WARM: usize = 256;

pub(crate) struct Transcript {
    entries: Vec<TranscriptEntry>,
    /// Row count of each entry, which is either measured, last known or estimated.
    heights: Heights,
    calls: HashMap<CallId, usize>,
    /// Index of the entry that contains the latest response.
    answer: Option<usize>,
    anchor: Anchor,
    fold: Fold,
    rest: Fold,
    round: u32,
    version: u32,
    /// First visible row in the last frame. `position` is the total number of rows by which the view has moved down.
    top: EntryRow,
    position: u64,
    /// Number of rows that were added since the user scrolled up.
    new: usize,
    /// Indexes of the entries that have changed since the user scrolled up, each with its height before the change.
    touched: Vec<(usize, usize)>,
    /// Height of the transcript in the last frame, in rows.
    height: u16,
    /// Whether the next frame shows the row that counts the rows below the view. `shows_count_below` says so for the
    /// last frame.
    tells_below: bool,
    shows_count_below: bool,
    width: u16,
    /// Indexes of the entries whose rows are cached, least recently laid out first.
    warm: VecDeque<usize>,
    /// Focused entry, selection and search query.
    pub marks: marks::Marks,
    /// Task to which new entries belong. `step` is the step within the task.
    task: Option<TaskId>,
    step: Option<StepId>,
    /// Number of rewinds so far.
    rewinds: u32,
    /// Call whose approval prompt is shown below the transcript, if any.
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
            // Far above zero, so that scrolling up does not underflow.
            position: 1 << 40,
            new: 0,
            touched: Vec::new(),
            height: 0,
            tells_below: false,
            shows_count_below: false,
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
    pub(crate) fn push(&mut self, kind: TranscriptEntryKind) {
        let gap = self.entries.last().is_some_and(|last| entry::is_separated(&last.kind, &kind));
        let at = self.entries.len();
        match &kind {
            TranscriptEntryKind::Card(card) => {
                self.calls.insert(card.id.clone(), at);
            }
            TranscriptEntryKind::Answer { .. } => self.answer = Some(at),
            _ => {}
        }
        let entry = TranscriptEntry::new(kind, gap).with_step(self.task.clone(), self.step.clone());
        self.heights.push(entry.guess(self.width));
        self.entries.push(entry);
        self.touch(at, Some(0));
    }

    /// Clears the last note with this text because the note is no longer true.
    pub(crate) fn withdraw(&mut self, words: &str) {
        let is_it = |entry: &TranscriptEntry| matches!(&entry.kind, TranscriptEntryKind::Note { text, .. } if text == words);
        if let Some(at) = self.entries.iter().rposition(is_it)
            && let Some(entry) = self.changing(at)
        {
            entry.withdraw();
        }
    }

    /// Returns the entries from index `first` onwards.
    pub(crate) fn kinds_from(&self, first: usize) -> impl Iterator<Item = &TranscriptEntryKind> {
        self.entries.iter().skip(first).map(|entry| &entry.kind)
    }

    /// Returns a mutable reference to the last entry, if there is one.
    pub(crate) fn last_mut(&mut self) -> Option<&mut TranscriptEntry> {
        let last = self.entries.len().checked_sub(1)?;
        self.changing(last)
    }

    /// Returns whether the model's reasoning is being streamed.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self.entries.last(), Some(TranscriptEntry { kind: TranscriptEntryKind::Reasoning { live: true, .. }, .. }))
    }

    /// Returns the response being streamed, if any. Notices that arrive in the meantime are placed after it.
    pub(crate) fn streaming_mut(&mut self) -> Option<&mut MarkdownDocument> {
        let aside = |kind: &TranscriptEntryKind| {
            matches!(
                kind,
                TranscriptEntryKind::Note { .. }
                    | TranscriptEntryKind::Problem { .. }
                    | TranscriptEntryKind::Summary { .. }
                    | TranscriptEntryKind::Recovery(_)
            )
        };
        let at = self.entries.iter().rposition(|entry| !aside(&entry.kind))?;
        if !matches!(self.entries[at].kind, TranscriptEntryKind::Answer { state: AnswerState::Streaming, .. }) {
            return None;
        }
        match &mut self.changing(at)?.kind {
            TranscriptEntryKind::Answer { document, .. } => Some(document),
            _ => None,
        }
    }

    /// Returns the entry of the latest response, which need not be the last entry.
    pub(crate) fn last_answer_mut(&mut self) -> Option<&mut TranscriptEntry> {
        self.changing(self.answer?)
    }

    pub(crate) fn card(&self, id: &CallId) -> Option<&Card> {
        self.entries.get(*self.calls.get(id)?)?.card()
    }

    pub(crate) fn card_mut(&mut self, id: &CallId) -> Option<&mut Card> {
        let at = *self.calls.get(id)?;
        match &mut self.changing(at)?.kind {
            TranscriptEntryKind::Card(card) => Some(card),
            _ => None,
        }
    }

    /// Sets the call whose approval prompt is shown below the transcript, so its card does not repeat the prompt's
    /// text.
    pub(crate) fn set_question_below(&mut self, id: Option<&CallId>) {
        if self.asked.as_ref() == id {
            return;
        }
        for (call, is_asked) in [(self.asked.take(), false), (id.cloned(), true)] {
            if let Some(card) = call.as_ref().and_then(|call| self.card_mut(call)) {
                card.has_question_below = is_asked;
            }
        }
        self.asked = id.cloned();
    }

    pub(crate) fn cards_mut(&mut self) -> impl Iterator<Item = &mut Card> {
        self.entries.iter_mut().filter_map(|entry| match &entry.kind {
            TranscriptEntryKind::Card(_) => {
                entry.forget_layout();
                entry.card_mut()
            }
            _ => None,
        })
    }

    /// Returns the cards of all entries that have not been undone.
    pub(crate) fn active_cards_mut(&mut self) -> impl Iterator<Item = &mut Card> {
        self.entries.iter_mut().filter(|entry| entry.undone.is_none()).filter_map(TranscriptEntry::card_mut)
    }

    /// Returns the report on work that the previous process left unfinished, if there is one.
    pub(crate) fn recovery_mut(&mut self) -> Option<&mut Recovery> {
        let at = self.entries.iter().rposition(|entry| matches!(entry.kind, TranscriptEntryKind::Recovery(_)))?;
        match &mut self.changing(at)?.kind {
            TranscriptEntryKind::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entry(&self, at: usize) -> Option<&TranscriptEntry> {
        self.entries.get(at)
    }

    /// Returns a mutable reference to an entry that is about to change. Discards the entry's layout and records its
    /// current height.
    fn changing(&mut self, at: usize) -> Option<&mut TranscriptEntry> {
        let before = self.entries.get(at)?.is_measured_at(self.width, self.version).then(|| self.heights.get(at));
        self.touch(at, before);
        let entry = self.entries.get_mut(at)?;
        entry.forget_layout();
        Some(entry)
    }

    /// Records that an entry is changing while the view is scrolled up. `before` is the entry's height, if it has been
    /// measured.
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

    /// Returns a render context with the transcript's current fold states.
    pub(crate) fn render_context<'a>(&self, width: u16, theme: &'a Theme, glyphs: &'a Glyphs, now: u64) -> RenderContext<'a> {
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

    /// Advances the fold state of all entries, overriding those set for single entries.
    pub(crate) fn fold_all(&mut self) {
        let next = self.fold.next();
        self.fold_to(next, next);
    }

    /// Advances the fold state of cards, but not of other entries.
    pub(crate) fn fold_tools(&mut self) {
        let rest = self.rest;
        self.fold_to(self.fold.next(), rest);
    }

    /// Unfolds all entries completely. If they are already unfolded, folds them.
    pub(crate) fn fold_everything(&mut self) {
        let next = if self.fold == Fold::Full && self.rest == Fold::Full { Fold::Quiet } else { Fold::Full };
        self.fold_to(next, next);
    }

    fn fold_to(&mut self, fold: Fold, rest: Fold) {
        (self.fold, self.rest) = (fold, rest);
        self.round += 1;
        self.forget_layout();
    }

    /// Advances the fold state of one entry. Returns `false` if the entry cannot be folded.
    pub(crate) fn fold_one(&mut self, at: usize) -> bool {
        if self.fold == Fold::Quiet && grouping::toggle(self, at) {
            self.marks.selection = None;
            return true;
        }
        let (fold, rest, round) = (self.fold, self.rest, self.round);
        let Some(entry) = self.entries.get_mut(at) else { return false };
        let done = entry.fold_next(fold, rest, round);
        self.marks.selection = None;
        done
    }

    /// Unfolds an entry completely, even if it belongs to a closed group.
    pub(crate) fn unfold(&mut self, at: usize) {
        grouping::open(self, at);
        let round = self.round;
        if let Some(entry) = self.entries.get_mut(at) {
            entry.fold_by_itself(Fold::Full, round);
        }
    }

    /// Invalidates all layouts because colours or fold states have changed. Entries keep their known heights until they
    /// are laid out again.
    pub(crate) fn forget_layout(&mut self) {
        self.version += 1;
        self.marks.selection = None;
    }

    /// Inserts older entries after the greeting without moving the rows in view. If the greeting is visible, older rows
    /// take its place.
    pub(crate) fn prepend(&mut self, older: Self, look: RenderContext<'_>) {
        let count = older.entries.len();
        let at =
            usize::from(matches!(self.entries.first(), Some(TranscriptEntry { kind: TranscriptEntryKind::Greeting(_), .. })));
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
            // A provider may reuse a call ID. Later events refer to the newer call.
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
