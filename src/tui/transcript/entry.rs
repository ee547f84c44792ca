//! One entry of the transcript and its rows.

use super::card::Card;
use super::{Look, window};
use crate::protocol::ContextUse;
use crate::text;
use crate::tui::ink::Inked;
use crate::tui::markdown::Document;
use crate::tui::theme::Token;
use crate::tui::view::GUTTER;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// A prompt of more rows is folded to so many.
const PROMPT_ROWS: usize = 10;
const PROMPT_HEAD: usize = 6;
/// Rows of thinking shown while it goes on.
const THINKING_ROWS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerState {
    Streaming,
    Done,
    /// It does not count, for this reason.
    Discarded(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Warning,
    Failure,
}

pub enum Kind {
    User(String),
    Answer {
        document: Document,
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
        tone: Tone,
    },
    Greeting(Vec<Inked>),
    /// What stands for older messages: its head, and what it says.
    Summary {
        head: String,
        text: String,
    },
    /// What fills the window of the model.
    Window(ContextUse),
}

pub struct Entry {
    pub kind: Kind,
    gap: bool,
    /// Rows at a width, without the gap and without what a document or a diff lays out itself.
    pub laid: Option<(u16, Vec<Line<'static>>)>,
}

/// Whether an empty row stands between two neighbours.
pub fn stands_apart(before: &Kind, after: &Kind) -> bool {
    match after {
        Kind::User(_) | Kind::Answer { .. } => true,
        Kind::Card(_) | Kind::Note { .. } | Kind::Summary { .. } | Kind::Window(_) => {
            matches!(before, Kind::User(_) | Kind::Greeting(_))
        }
        Kind::Greeting(_) => true,
        Kind::Reasoning { .. } => !matches!(before, Kind::Card(_) | Kind::Reasoning { .. }),
    }
}

impl Entry {
    pub fn new(kind: Kind, gap: bool) -> Self {
        Self { kind, gap, laid: None }
    }

    pub fn forget_layout(&mut self) {
        self.laid = None;
    }

    pub fn height(&mut self, look: Look<'_>) -> usize {
        let width = look.width.saturating_sub(GUTTER).max(1);
        let gap = usize::from(self.gap);
        self.lay(look);
        let laid = self.laid.as_ref().map_or(0, |(_, rows)| rows.len());
        gap + laid
            + match &mut self.kind {
                Kind::Answer { document, .. } => document.height(width),
                Kind::Card(card) => card.diff_height(width, look.fold),
                _ => 0,
            }
    }

    /// Rows `from..` into the area, which is as high as there are rows to show.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, from: usize, look: Look<'_>) {
        let width = look.width.saturating_sub(GUTTER).max(1);
        self.lay(look);
        let gap = usize::from(self.gap);
        let first = from.saturating_sub(gap);
        let skipped = gap.saturating_sub(from) as u16;
        let count = usize::from(area.height.saturating_sub(skipped));
        let rows = self.rows(first..first + count, width, look);
        let (sign, token) = self.sign(look);
        for (y, row) in (area.y + skipped..area.bottom()).zip(&rows) {
            buffer.set_line(area.x + GUTTER, y, row, area.width.saturating_sub(GUTTER));
        }
        if first == 0 && skipped < area.height {
            buffer.set_stringn(area.x, area.y + skipped, sign, GUTTER.into(), look.theme.style(token));
        }
    }

    fn rows(&mut self, range: std::ops::Range<usize>, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
        let laid = self.laid.as_ref().map_or(&[][..], |(_, rows)| rows.as_slice());
        match &mut self.kind {
            // A discarded answer has its note below it.
            Kind::Answer { document, .. } => {
                let height = document.height(width);
                let mut rows = document.rows(width, range.start.min(height)..range.end.min(height), look.theme);
                rows.extend(
                    laid.iter()
                        .skip(range.start.saturating_sub(height))
                        .take(range.end.saturating_sub(height.max(range.start)))
                        .cloned(),
                );
                rows
            }
            Kind::Card(card) => {
                let mut rows: Vec<_> = laid.iter().skip(range.start).take(range.len()).cloned().collect();
                let diff = card.diff_height(width, look.fold);
                let at = |row: usize| row.saturating_sub(laid.len()).min(diff);
                rows.extend(card.diff_rows(width, at(range.start)..at(range.end), look.theme));
                rows
            }
            _ => laid.iter().skip(range.start).take(range.len()).cloned().collect(),
        }
    }

    fn sign(&self, look: Look<'_>) -> (&'static str, Token) {
        match &self.kind {
            Kind::User(_) => (look.glyphs.user, Token::Accent),
            Kind::Answer { state: AnswerState::Discarded(_), .. } => (look.glyphs.note, Token::Warn),
            Kind::Answer { state: AnswerState::Streaming | AnswerState::Done, .. } => ("", Token::Text),
            Kind::Greeting(_) => ("", Token::Text),
            Kind::Reasoning { .. } => (look.glyphs.note, Token::Faint),
            Kind::Card(card) => card.sign(look.glyphs),
            Kind::Summary { .. } | Kind::Window(_) => (look.glyphs.note, Token::Muted),
            Kind::Note { tone: Tone::Plain, .. } => (look.glyphs.note, Token::Muted),
            Kind::Note { tone: Tone::Warning, .. } => (look.glyphs.note, Token::Warn),
            Kind::Note { tone: Tone::Failure, .. } => (look.glyphs.failed, Token::Danger),
        }
    }

    fn lay(&mut self, look: Look<'_>) {
        let width = look.width.saturating_sub(GUTTER).max(1);
        // A running call shows its seconds: laid out as often as it is drawn, which is cheap.
        let ticking = matches!(&self.kind, Kind::Card(card) if card.is_running());
        if !ticking && self.laid.as_ref().is_some_and(|(at, _)| *at == width) {
            return;
        }
        let rows = match &self.kind {
            Kind::User(text) => prompt(text, width, look),
            Kind::Answer { state: AnswerState::Discarded(reason), .. } => {
                wrapped(&format!("discarded: {reason}"), width, look, Token::Warn)
            }
            Kind::Answer { state: AnswerState::Streaming | AnswerState::Done, .. } => Vec::new(),
            Kind::Reasoning { text, live, .. } => thinking(text, *live, width, look),
            Kind::Card(card) => card.rows(width, look),
            Kind::Greeting(lines) => {
                lines.iter().flat_map(|line| line.wrap(width.into())).map(|line| line.line(look.theme)).collect()
            }
            Kind::Summary { head, text } => summary(head, text, width, look),
            Kind::Window(filled) => window::rows(filled, width, look),
            Kind::Note { text, tone } => {
                let token = match tone {
                    Tone::Plain => Token::Muted,
                    Tone::Warning => Token::Warn,
                    Tone::Failure => Token::Danger,
                };
                wrapped(text, width, look, token)
            }
        };
        self.laid = Some((width, rows));
    }
}

/// Every line of a text, wrapped.
pub fn wrapped(text: &str, width: u16, look: Look<'_>, token: Token) -> Vec<Line<'static>> {
    let style = look.theme.style(token);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        rows.extend(text::wrap(line, width.into()).into_iter().map(|range| Line::styled(line[range].to_owned(), style)));
    }
    rows
}

/// What the person sent: of a long one its head, and how much more there is.
fn prompt(text: &str, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
    let mut rows = wrapped(text, width, look, Token::Text);
    if look.fold == super::Fold::Full || rows.len() <= PROMPT_ROWS {
        return rows;
    }
    let hidden = rows.len() - PROMPT_HEAD;
    rows.truncate(PROMPT_HEAD);
    let words = format!("{} {hidden} lines {} ctrl+o unfolds", look.glyphs.more, look.glyphs.dot);
    rows.push(Line::styled(words, look.theme.style(Token::Faint)));
    rows
}

/// What was said before in few words: of a long one its first rows, until it is unfolded.
fn summary(head: &str, text: &str, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
    let mut rows = wrapped(&head.replace('→', look.glyphs.to), width, look, Token::Muted);
    let body = wrapped(text, width.saturating_sub(2).max(1), look, Token::Text);
    let shown = match look.fold {
        super::Fold::Quiet => 0,
        super::Fold::Excerpt => PROMPT_HEAD,
        super::Fold::Full => body.len(),
    };
    let hidden = body.len().saturating_sub(shown);
    for row in body.into_iter().take(shown) {
        let bar = Span::styled(format!("{} ", look.glyphs.bar), look.theme.style(Token::Faint));
        rows.push(Line::from([vec![bar], row.spans].concat()).style(row.style));
    }
    if hidden > 0 {
        let lines = if hidden == 1 { "line" } else { "lines" };
        let words = format!("{} {hidden} {lines} {} ctrl+o unfolds", look.glyphs.more, look.glyphs.dot);
        rows.push(Line::styled(words, look.theme.style(Token::Faint)));
    }
    rows
}

fn thinking(text: &str, live: bool, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
    let faint = look.theme.style(Token::Faint);
    if look.fold == super::Fold::Full {
        return wrapped(text, width, look, Token::Faint);
    }
    let lines = text.lines().count();
    if !live {
        let words = format!("thought  {lines} {}", if lines == 1 { "line" } else { "lines" });
        return vec![Line::from(Span::styled(words, faint))];
    }
    let mut tail: Vec<_> = text.lines().rev().take(THINKING_ROWS).collect();
    tail.reverse();
    tail.into_iter().map(|line| Line::styled(text::truncate(line, width.into()).into_owned(), faint)).collect()
}
