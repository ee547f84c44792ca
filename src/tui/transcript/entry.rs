//! Transcript entries and their layout in rows.

use super::card::Card;
use super::text_rows::{folded_row, more, truncated_row, wrapped};
use super::{Fold, Recovery, RenderContext, recovery};
use crate::protocol::{Problem, ProblemLine, StepId, TaskId};
use crate::text;
use crate::tui::composer::paste_label;
use crate::tui::format::format_count;
use crate::tui::markdown::MarkdownDocument;
use crate::tui::metrics::{GUTTER, MEASURE};
use crate::tui::styled_text::{Row, StyledText};
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use std::ops::Range;

/// Maximum number of rows for which a prompt is shown in full. Of a longer prompt, only the first [`PROMPT_HEAD`] rows
/// are shown.
const PROMPT_ROWS: usize = 10;
const PROMPT_HEAD: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerState {
    Streaming,
    Done,
    /// The response was removed from the conversation for the given reason.
    Discarded(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteTone {
    Plain,
    Warning,
    Failure,
}

impl NoteTone {
    fn token(self) -> Token {
        match self {
            Self::Plain => Token::Muted,
            Self::Warning => Token::Warn,
            Self::Failure => Token::Danger,
        }
    }
}

pub(crate) enum TranscriptEntryKind {
    User(String),
    Answer {
        document: MarkdownDocument,
        state: AnswerState,
    },
    Reasoning {
        text: String,
        filter: text::Filter,
        live: bool,
    },
    Card(Card),
    Note {
        text: String,
        tone: NoteTone,
    },
    /// Error, formatted as on the command line but without control characters.
    Problem {
        problem: Problem,
        tone: NoteTone,
    },
    Greeting(Vec<StyledText>),
    /// Summary that replaces earlier messages.
    Summary {
        head: String,
        text: String,
    },
    /// Work that the previous process left unfinished.
    Recovery(Recovery),
}

pub(crate) struct TranscriptEntry {
    pub kind: TranscriptEntryKind,
    gap: bool,
    pub task: Option<TaskId>,
    pub step: Option<StepId>,
    /// Byte ranges of the long pastes in a prompt, in order.
    pub pastes: Vec<Range<usize>>,
    /// Number of the rewind that undid this entry, or `None` if it is not undone.
    pub undone: Option<u32>,
    /// Fold state set for this entry alone, and the number of global fold changes at that time.
    fold: Option<(Fold, u32)>,
    /// Whether the entry has changed since the user scrolled up and the added rows were last counted.
    pub is_touched: bool,
    /// Whether the entry has cached rows.
    pub is_warm: bool,
    /// Cached rows, excluding the gap above the entry and the rows of a document or diff, which are cached elsewhere.
    laid: Option<LayoutCache>,
    /// Width and layout version for which the entry's height was measured.
    measured: Option<(u16, u32)>,
}

/// Cached rows for a given width and layout version.
struct LayoutCache {
    width: u16,
    version: u32,
    rows: Vec<Row>,
}

/// Position of the rows drawn for an entry in the last frame.
pub(crate) struct DrawnRows {
    /// Number of rows in the area that precede the first drawn row.
    pub skipped: u16,
    pub rows: Vec<Row>,
}

/// Returns whether an empty row separates two adjacent entries.
pub(crate) fn is_separated(before: &TranscriptEntryKind, after: &TranscriptEntryKind) -> bool {
    match after {
        TranscriptEntryKind::User(_) | TranscriptEntryKind::Answer { .. } => true,
        TranscriptEntryKind::Card(_)
        | TranscriptEntryKind::Note { .. }
        | TranscriptEntryKind::Problem { .. }
        | TranscriptEntryKind::Summary { .. }
        | TranscriptEntryKind::Recovery(_) => {
            matches!(before, TranscriptEntryKind::User(_) | TranscriptEntryKind::Greeting(_))
        }
        TranscriptEntryKind::Greeting(_) => true,
        TranscriptEntryKind::Reasoning { .. } => {
            !matches!(before, TranscriptEntryKind::Card(_) | TranscriptEntryKind::Reasoning { .. })
        }
    }
}

impl TranscriptEntry {
    pub(crate) fn new(kind: TranscriptEntryKind, gap: bool) -> Self {
        Self {
            kind,
            gap,
            task: None,
            step: None,
            pastes: Vec::new(),
            undone: None,
            fold: None,
            is_touched: false,
            is_warm: false,
            laid: None,
            measured: None,
        }
    }

    /// Turns the entry into an empty note, which takes up no rows.
    pub(crate) fn withdraw(&mut self) {
        self.kind = TranscriptEntryKind::Note { text: String::new(), tone: NoteTone::Plain };
        self.gap = false;
    }

    /// Returns the entry tagged with the given task and step.
    pub(crate) fn with_step(self, task: Option<TaskId>, step: Option<StepId>) -> Self {
        Self { task, step, ..self }
    }

    pub(crate) fn forget_layout(&mut self) {
        self.laid = None;
        self.measured = None;
    }

    /// Drops cached rows, which can be recomputed, but not the measured height.
    pub(crate) fn cool(&mut self) {
        self.laid = None;
        if let TranscriptEntryKind::Answer { document, .. } = &mut self.kind {
            document.cool();
        }
    }

    pub(crate) fn card_mut(&mut self) -> Option<&mut Card> {
        match &mut self.kind {
            TranscriptEntryKind::Card(card) => Some(card),
            _ => None,
        }
    }

    pub(crate) fn is_measured(&self, look: RenderContext<'_>) -> bool {
        self.is_measured_at(look.width, look.version)
    }

    pub(crate) fn is_measured_at(&self, width: u16, version: u32) -> bool {
        self.measured == Some((width, version))
    }

    /// Estimates the entry's height in rows without laying it out.
    pub(crate) fn guess(&self, width: u16) -> usize {
        let width = usize::from(width.saturating_sub(GUTTER).max(1));
        let rows = match &self.kind {
            TranscriptEntryKind::User(text) => (text.len() / width + 1).min(PROMPT_HEAD),
            TranscriptEntryKind::Answer { document, .. } => document.text().len() * 3 / (width * 2) + 1,
            TranscriptEntryKind::Note { text, .. } if text.is_empty() => 0,
            TranscriptEntryKind::Note { text, .. } => text.len() / width + 1,
            TranscriptEntryKind::Problem { problem, .. } => problem.lines().len(),
            TranscriptEntryKind::Greeting(lines) => lines.len(),
            TranscriptEntryKind::Card(_)
            | TranscriptEntryKind::Reasoning { .. }
            | TranscriptEntryKind::Summary { .. }
            | TranscriptEntryKind::Recovery(_) => 1,
        };
        rows + self.gap_rows()
    }

    pub(crate) fn gap_rows(&self) -> usize {
        usize::from(self.gap)
    }

    /// Returns the context with the fold state that applies to this entry: its own or, if it has none, the global one.
    fn with_own_fold<'a>(&self, look: RenderContext<'a>) -> RenderContext<'a> {
        let general = if matches!(self.kind, TranscriptEntryKind::Card(_)) { look.fold } else { look.rest };
        let own = self.fold.filter(|(_, round)| *round == look.round).map(|(fold, _)| fold);
        RenderContext { fold: own.unwrap_or(general), is_own: own.is_some(), ..look }
    }

    pub(crate) fn fold_by_itself(&mut self, fold: Fold, round: u32) {
        self.fold = Some((fold, round));
        self.forget_layout();
    }

    /// Advances the entry's fold state. Returns `false` if the entry cannot be folded.
    pub(crate) fn fold_next(&mut self, tools: Fold, rest: Fold, round: u32) -> bool {
        let own = self.fold.filter(|(_, at)| *at == round).map(|(fold, _)| fold);
        let next = match &self.kind {
            TranscriptEntryKind::Card(card) => card.next_fold(own, tools),
            TranscriptEntryKind::User(_)
            | TranscriptEntryKind::Reasoning { .. }
            | TranscriptEntryKind::Answer { state: AnswerState::Discarded(_), .. } => {
                let is_open = own.unwrap_or(rest) == Fold::Full;
                Some(if is_open { Fold::Quiet } else { Fold::Full })
            }
            TranscriptEntryKind::Summary { .. } => Some(own.unwrap_or(rest).next()),
            TranscriptEntryKind::Answer { .. }
            | TranscriptEntryKind::Note { .. }
            | TranscriptEntryKind::Problem { .. }
            | TranscriptEntryKind::Greeting(_)
            | TranscriptEntryKind::Recovery(_) => None,
        };
        if let Some(next) = next {
            self.fold_by_itself(next, round);
        }
        next.is_some()
    }

    pub(crate) fn height(&mut self, look: RenderContext<'_>) -> usize {
        let width = look.width.saturating_sub(GUTTER).max(1);
        let look = self.with_own_fold(look);
        self.lay_out(look);
        self.measured = Some((look.width, look.version));
        let laid = self.laid.as_ref().map_or(0, |laid| laid.rows.len());
        self.gap_rows()
            + laid
            + match &mut self.kind {
                TranscriptEntryKind::Answer { state, .. } if is_folded(state, look) => 0,
                TranscriptEntryKind::Answer { document, state: AnswerState::Streaming } if look.whole_rows => {
                    document.height(width).saturating_sub(1)
                }
                TranscriptEntryKind::Answer { document, .. } => document.height(width),
                TranscriptEntryKind::Card(card) => card.diff_height(width, look),
                _ => 0,
            }
    }

    /// Draws the entry's rows starting at row `from`, as many as fit into the height of the area.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, from: usize, look: RenderContext<'_>) -> DrawnRows {
        let gap = self.gap_rows();
        let first = from.saturating_sub(gap);
        let skipped = gap.saturating_sub(from) as u16;
        let count = usize::from(area.height.saturating_sub(skipped));
        let rows = self.rows(first..first + count, look);
        let (sign, token) = self.symbol(look);
        if matches!(self.kind, TranscriptEntryKind::User(_)) {
            // A prompt has a background, if the theme has one, and a bar before all rows but the first.
            let rows = Rect { y: area.y + skipped, height: (rows.len() as u16).min(area.height.saturating_sub(skipped)), ..area };
            buffer.set_style(rows, look.theme.style(Token::Prompt));
            for y in rows.y..rows.bottom() {
                buffer.set_stringn(area.x, y, look.glyphs.bar, 1, look.theme.symbol(Token::Accent));
            }
        }
        for (y, row) in (area.y + skipped..area.bottom()).zip(&rows) {
            buffer.set_line(area.x + GUTTER, y, &row.line, area.width.saturating_sub(GUTTER));
        }
        if first == 0 && skipped < area.height {
            buffer.set_stringn(area.x, area.y + skipped, sign, GUTTER.into(), look.theme.symbol(token));
        }
        if self.undone.is_some() {
            // A bar replaces the symbol in every row, so that colour is not the only signal.
            let rows = Rect { y: area.y + skipped, height: (rows.len() as u16).min(area.height.saturating_sub(skipped)), ..area };
            let faint = look.theme.style(Token::Faint);
            buffer.set_style(rows, faint.bg(Color::Reset));
            for y in rows.y..rows.bottom() {
                buffer.set_stringn(area.x, y, look.glyphs.bar, 1, faint);
            }
        }
        DrawnRows { skipped, rows }
    }

    /// Returns the rows in `range`, where row 0 is the first row after the gap.
    pub(crate) fn rows(&mut self, range: std::ops::Range<usize>, look: RenderContext<'_>) -> Vec<Row> {
        let width = look.width.saturating_sub(GUTTER).max(1);
        let look = self.with_own_fold(look);
        self.lay_out(look);
        let laid = self.laid.as_ref().map_or(&[][..], |laid| laid.rows.as_slice());
        match &mut self.kind {
            // After a discarded response, a note gives the reason.
            TranscriptEntryKind::Answer { document, state } => {
                let height = if is_folded(state, look) { 0 } else { document.height(width) };
                let mut rows = document.rows(width, range.start.min(height)..range.end.min(height), look.theme);
                rows.extend(
                    laid.iter()
                        .skip(range.start.saturating_sub(height))
                        .take(range.end.saturating_sub(height.max(range.start)))
                        .cloned(),
                );
                rows
            }
            TranscriptEntryKind::Card(card) => {
                let mut rows: Vec<_> = laid.iter().skip(range.start).take(range.len()).cloned().collect();
                let diff = card.diff_height(width, look);
                let at = |row: usize| row.saturating_sub(laid.len()).min(diff);
                rows.extend(card.diff_rows(width, at(range.start)..at(range.end), look));
                rows
            }
            _ => laid.iter().skip(range.start).take(range.len()).cloned().collect(),
        }
    }

    fn symbol(&self, look: RenderContext<'_>) -> (&'static str, Token) {
        match &self.kind {
            TranscriptEntryKind::User(_) => (look.glyphs.user, Token::Accent),
            TranscriptEntryKind::Answer { state: AnswerState::Discarded(_), .. } => (look.glyphs.state.note, Token::Faint),
            TranscriptEntryKind::Answer { state: AnswerState::Streaming | AnswerState::Done, .. } => ("", Token::Text),
            TranscriptEntryKind::Greeting(_) => ("", Token::Text),
            TranscriptEntryKind::Reasoning { .. } => (look.glyphs.state.note, Token::Faint),
            TranscriptEntryKind::Card(card) => card.symbol(look.glyphs),
            TranscriptEntryKind::Summary { .. } => (look.glyphs.state.note, Token::Muted),
            TranscriptEntryKind::Recovery(recovery) if recovery.waits() => (look.glyphs.state.waits, Token::Warn),
            TranscriptEntryKind::Recovery(_) => (look.glyphs.state.note, Token::Muted),
            TranscriptEntryKind::Note { tone, .. } | TranscriptEntryKind::Problem { tone, .. } => {
                (if *tone == NoteTone::Failure { look.glyphs.state.failed } else { look.glyphs.state.note }, tone.token())
            }
        }
    }

    fn lay_out(&mut self, look: RenderContext<'_>) {
        let width = look.width.saturating_sub(GUTTER).max(1);
        // A running call shows its elapsed seconds, so it is laid out for each frame. This is cheap.
        let ticking = matches!(&self.kind, TranscriptEntryKind::Card(card) if card.is_running());
        let is_laid = |laid: &LayoutCache| laid.width == width && laid.version == look.version;
        if !ticking && self.laid.as_ref().is_some_and(is_laid) {
            return;
        }
        let full = width;
        let width = width.min(MEASURE);
        let rows = match &self.kind {
            TranscriptEntryKind::User(text) => prompt(text, &self.pastes, width, look),
            TranscriptEntryKind::Answer { document, state: state @ AnswerState::Discarded(reason) } => {
                let size = format_count(document.text().split_whitespace().count(), "word");
                let mark = if is_folded(state, look) { look.glyphs.fold.folded } else { look.glyphs.fold.unfolded };
                vec![truncated_row(&format!("discarded response, {size}: {reason}  {mark}"), width, look, Token::Faint)]
            }
            TranscriptEntryKind::Answer { state: AnswerState::Streaming | AnswerState::Done, .. } => Vec::new(),
            TranscriptEntryKind::Reasoning { text, live, .. } => thinking(text, *live, width, look),
            TranscriptEntryKind::Card(card) => card.rows(full, look),
            TranscriptEntryKind::Greeting(lines) => lines
                .iter()
                .flat_map(|line| line.wrap_keeping(full.into(), &pieces(&line.text, look.glyphs.dot)))
                .map(|line| line.fit_row(full.into(), look.theme))
                .collect(),
            TranscriptEntryKind::Summary { head, text } => summary(head, text, width, look),
            TranscriptEntryKind::Recovery(recovery) => recovery::rows(recovery, full, look),
            TranscriptEntryKind::Note { text, .. } if text.is_empty() => Vec::new(),
            TranscriptEntryKind::Note { text, tone } => wrapped(text, width, look, tone.token()),
            TranscriptEntryKind::Problem { problem, tone } => {
                let rows = |(line, text): (ProblemLine, String)| match line {
                    ProblemLine::Message => wrapped(&text, width, look, tone.token()),
                    ProblemLine::Excerpt | ProblemLine::Hint => wrapped(&text, width, look, Token::Muted),
                };
                problem.lines().into_iter().flat_map(rows).collect()
            }
        };
        self.laid = Some(LayoutCache { width: full, version: look.version, rows });
    }
}

/// Returns whether a discarded response is folded, so only the row that gives the reason is shown.
fn is_folded(state: &AnswerState, look: RenderContext<'_>) -> bool {
    matches!(state, AnswerState::Discarded(_)) && look.fold == Fold::Quiet
}

/// Returns the byte ranges of the pieces between separator dots in a line. Wrapping at the dots keeps a command on one
/// row.
fn pieces(line: &str, dot: &str) -> Vec<Range<usize>> {
    let end = format!(" {dot} ");
    let mut at = 0;
    let piece = |piece: &str| {
        let start = at;
        at += piece.len();
        start..start + piece.strip_suffix(' ').unwrap_or(piece).len()
    };
    line.split_inclusive(end.as_str()).map(piece).collect()
}

/// Returns the rows of a prompt. Unless it is unfolded, a long prompt is truncated to its first rows, and each long
/// paste is replaced with a chip after the typed text.
fn prompt(text: &str, pastes: &[Range<usize>], width: u16, look: RenderContext<'_>) -> Vec<Row> {
    if let Some((own, pasted)) = split_pastes(text, pastes).filter(|_| look.fold != Fold::Full) {
        let mut rows = if own.is_empty() { Vec::new() } else { wrapped(&own.join("\n"), width, look, Token::Prompt) };
        cut_head(&mut rows, look);
        rows.extend(pasted.into_iter().map(|pasted| folded_row(paste_label(pasted), look)));
        return rows;
    }
    let mut rows = wrapped(text, width, look, Token::Prompt);
    if look.fold != Fold::Full {
        cut_head(&mut rows, look);
    }
    rows
}

/// Truncates a long list of rows, replacing the hidden rows with a row that gives their number.
fn cut_head(rows: &mut Vec<Row>, look: RenderContext<'_>) {
    if rows.len() > PROMPT_ROWS {
        let hidden = rows.len() - PROMPT_HEAD;
        rows.truncate(PROMPT_HEAD);
        rows.push(more(hidden, look));
    }
}

/// Splits a prompt into the text outside its pastes and the pastes themselves. Returns `None` if it has no pastes.
fn split_pastes<'t>(text: &'t str, pastes: &[Range<usize>]) -> Option<(Vec<&'t str>, Vec<&'t str>)> {
    let (mut own, mut pasted, mut at) = (Vec::new(), Vec::new(), 0);
    for paste in pastes {
        own.push(text.get(at..paste.start)?);
        pasted.push(text.get(paste.clone())?);
        at = paste.end;
    }
    own.push(text.get(at..)?);
    let own = own.into_iter().map(str::trim).filter(|words| !words.is_empty()).collect();
    (!pasted.is_empty()).then_some((own, pasted))
}

/// Returns the rows of a summary. Unless it is unfolded, a long summary is truncated.
fn summary(head: &str, text: &str, width: u16, look: RenderContext<'_>) -> Vec<Row> {
    let mut rows = wrapped(&head.replace('→', look.glyphs.to), width, look, Token::Muted);
    let body = wrapped(text, width.saturating_sub(2).max(1), look, Token::Text);
    let shown = match look.fold {
        Fold::Quiet => 0,
        Fold::Excerpt => PROMPT_HEAD,
        Fold::Full => body.len(),
    };
    let hidden = body.len().saturating_sub(shown);
    let bar = Span::styled(format!("{} ", look.glyphs.bar), look.theme.style(Token::Faint));
    rows.extend(body.into_iter().take(shown).map(|row| row.with_prefix(bar.clone())));
    if hidden > 0 {
        rows.push(more(hidden, look));
    }
    rows
}

fn thinking(text: &str, live: bool, width: u16, look: RenderContext<'_>) -> Vec<Row> {
    if look.fold == Fold::Full {
        return wrapped(text, width, look, Token::Faint);
    }
    let faint = look.theme.style(Token::Faint);
    if !live {
        let words = format!("thought  {}", format_count(text.lines().count(), "line"));
        return vec![Row::from_line(Line::from(Span::styled(words, faint)))];
    }
    // Only the last line is shown, because it changes. The row above the composer counts the seconds.
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    vec![truncated_row(last.trim(), width, look, Token::Faint)]
}
