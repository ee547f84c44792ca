//! A tool call as the transcript shows it.

use super::entry::wrapped;
use super::{Fold, Look};
use crate::protocol::tool::hidden_words;
use crate::protocol::{CallId, Proposal, Redaction};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::glyphs::Glyphs;
use crate::tui::status::counted;
use crate::tui::theme::{Theme, Token};
use ratatui::text::{Line, Span};
use std::collections::VecDeque;
use std::ops::Range;

/// Of a long output these many lines stand at its head and at its end.
const HEAD: usize = 3;
const TAIL: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardState {
    /// Asked for by the model, not started.
    Requested,
    /// Waits for the person.
    Waiting,
    Running {
        since: u64,
    },
    Done {
        latency_ms: u64,
    },
    Failed {
        latency_ms: u64,
        message: String,
    },
    Denied {
        message: String,
    },
    /// The person stopped it, or it was left out.
    Stopped {
        message: String,
    },
    /// The process ended before it did.
    Unknown,
}

/// What a running command printed last.
#[derive(Default)]
struct Live {
    cleaner: text::Cleaner,
    lines: VecDeque<String>,
}

pub struct Card {
    pub id: CallId,
    summary: String,
    pub state: CardState,
    rule: String,
    /// Whether what runs runs in a copy, so that nothing of it has happened.
    pub is_preview: bool,
    /// What a command ended with, in the words of its output's first line: `3`.
    exit: Option<String>,
    output: String,
    live: Live,
    diff: Option<Diff>,
    /// What the model was not shown, in words.
    hidden: Option<String>,
    /// All of it is kept, also what is not told here.
    pub keeps_whole: bool,
}

impl Card {
    pub fn new(id: CallId, summary: &str) -> Self {
        Self {
            id,
            summary: one_line(summary),
            state: CardState::Requested,
            rule: String::new(),
            is_preview: false,
            exit: None,
            output: String::new(),
            live: Live::default(),
            diff: None,
            hidden: None,
            keeps_whole: false,
        }
    }

    pub fn started(&mut self, rule: &str, now: u64) {
        self.rule = one_line(rule);
        self.is_preview = false;
        self.state = CardState::Running { since: now };
    }

    pub fn printed(&mut self, chunk: &str) {
        self.live.push(chunk);
    }

    pub fn ended(&mut self, state: CardState, output: &str, proposal: Option<&Proposal>) {
        self.state = state;
        self.live = Live::default();
        let mut cleaner = text::Cleaner::new();
        let mut clean = String::new();
        cleaner.push(output, &mut clean);
        cleaner.finish(&mut clean);
        clean.truncate(clean.trim_end_matches('\n').len());
        if self.is_command() {
            self.exit = take_exit(&mut clean);
        }
        self.output = clean;
        if let Some(proposal) = proposal {
            // A command is named by its line already.
            if !proposal.summary.is_empty() && !self.is_command() {
                self.summary = one_line(&proposal.summary);
            }
            if !proposal.diff.is_empty() {
                self.diff = Some(Diff::parse(&proposal.diff, proposal.paths.first().map(std::path::PathBuf::as_path)));
            }
        }
    }

    pub fn hid(&mut self, redactions: &[Redaction]) {
        self.hidden = hidden_words(redactions);
    }

    pub fn summary(&self) -> &str {
        &self.summary
    }

    fn is_command(&self) -> bool {
        self.summary.starts_with("$ ")
    }

    /// Whether a command ran to its end and says itself that it failed.
    fn has_failed_exit(&self) -> bool {
        matches!(self.state, CardState::Done { .. }) && self.exit.as_ref().is_some_and(|exit| exit != "0")
    }

    /// Whether it ran for good, and is to run once more with something opened: what it printed helps to decide.
    fn waits_after_a_run(&self) -> bool {
        self.state == CardState::Waiting && !self.is_preview && !self.live.is_empty()
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, CardState::Running { .. })
    }

    pub fn sign(&self, glyphs: &Glyphs) -> (&'static str, Token) {
        match self.state {
            CardState::Requested => (glyphs.running, Token::Faint),
            CardState::Running { .. } => (glyphs.running, Token::Accent),
            CardState::Waiting | CardState::Unknown => (glyphs.waits, Token::Warn),
            CardState::Done { .. } if self.has_failed_exit() => (glyphs.failed, Token::Danger),
            CardState::Done { .. } => (glyphs.done, Token::Ok),
            CardState::Failed { .. } => (glyphs.failed, Token::Danger),
            CardState::Denied { .. } | CardState::Stopped { .. } => (glyphs.denied, Token::Warn),
        }
    }

    pub fn rows(&self, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
        let mut rows = vec![self.title(width, look)];
        let inner = width.saturating_sub(2).max(1);
        let bar = Span::styled(format!("{} ", look.glyphs.bar), look.theme.style(Token::Faint));
        for line in self.body(inner, look) {
            let mut spans = vec![bar.clone()];
            spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
            rows.push(Line::from(spans));
        }
        rows
    }

    fn title(&self, width: u16, look: Look<'_>) -> Line<'static> {
        let (words, token) = self.words(look.glyphs);
        let right = self.right(look);
        let right_width = text::width(&right) + 1;
        let room = usize::from(width).saturating_sub(right_width);
        let words_width = if words.is_empty() { 0 } else { text::width(&words) + 2 };
        let name = text::truncate(&self.summary, room.saturating_sub(words_width).max(room.min(12))).into_owned();
        let words = text::truncate(&words, room.saturating_sub(text::width(&name) + 2)).into_owned();
        let used = text::width(&name) + if words.is_empty() { 0 } else { text::width(&words) + 2 };
        let mut spans = vec![Span::styled(name, look.theme.style(Token::Text))];
        if !words.is_empty() {
            spans.push(Span::raw("  "));
            spans.push(Span::styled(words, look.theme.style(token)));
        }
        spans.push(Span::raw(" ".repeat((room + 1).saturating_sub(used))));
        spans.push(Span::styled(right, look.theme.style(Token::Faint)));
        Line::from(spans)
    }

    /// The result in words.
    fn words(&self, glyphs: &Glyphs) -> (String, Token) {
        match &self.state {
            CardState::Running { .. } if self.is_preview => ("in a copy: nothing of it is kept yet".to_owned(), Token::Muted),
            CardState::Requested | CardState::Running { .. } => (String::new(), Token::Muted),
            CardState::Waiting => (format!("{} waits for you", glyphs.dash), Token::Warn),
            CardState::Done { .. } if self.diff.is_some() && !self.is_command() => (String::new(), Token::Muted),
            CardState::Done { .. } => {
                let amount = match self.output.lines().count() {
                    0 => "no output".to_owned(),
                    1 if self.output.len() <= 40 => self.output.clone(),
                    lines => counted(lines, "line"),
                };
                match &self.exit {
                    Some(exit) if exit != "0" => (format!("exit {exit} {} {amount}", glyphs.dot), Token::Danger),
                    Some(_) | None => (amount, Token::Muted),
                }
            }
            CardState::Failed { .. } => ("failed".to_owned(), Token::Danger),
            CardState::Denied { .. } => ("denied".to_owned(), Token::Warn),
            CardState::Stopped { .. } => ("stopped".to_owned(), Token::Warn),
            CardState::Unknown => ("interrupted: outcome unknown".to_owned(), Token::Warn),
        }
    }

    fn right(&self, look: Look<'_>) -> String {
        let mark = if self.diff.is_none() && self.output.is_empty() && self.live.is_empty() {
            ""
        } else if self.is_open(look.fold) {
            look.glyphs.unfolded
        } else {
            look.glyphs.folded
        };
        let time = match self.state {
            CardState::Running { since } => format!("{} s", look.now.saturating_sub(since) / 1000),
            CardState::Done { latency_ms } | CardState::Failed { latency_ms, .. } => seconds(latency_ms),
            CardState::Requested
            | CardState::Waiting
            | CardState::Denied { .. }
            | CardState::Stopped { .. }
            | CardState::Unknown => String::new(),
        };
        format!("{mark} {time:>7}")
    }

    fn is_open(&self, fold: Fold) -> bool {
        match self.state {
            CardState::Failed { .. } | CardState::Denied { .. } | CardState::Stopped { .. } | CardState::Running { .. } => true,
            CardState::Waiting if self.waits_after_a_run() => true,
            CardState::Requested | CardState::Waiting | CardState::Done { .. } | CardState::Unknown => {
                fold != Fold::Quiet || self.has_failed_exit()
            }
        }
    }

    fn body(&self, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
        let muted = look.theme.style(Token::Muted);
        if self.is_running() || self.waits_after_a_run() {
            return self
                .live
                .tail()
                .iter()
                .map(|line| Line::styled(text::truncate(line, width.into()).into_owned(), muted))
                .collect();
        }
        let mut rows = Vec::new();
        match &self.state {
            CardState::Failed { message, .. } => rows.extend(wrapped(message, width, look, Token::Danger)),
            CardState::Denied { message } | CardState::Stopped { message } => {
                rows.extend(wrapped(message, width, look, Token::Warn));
            }
            CardState::Requested
            | CardState::Waiting
            | CardState::Running { .. }
            | CardState::Done { .. }
            | CardState::Unknown => {}
        }
        if let Some(hidden) = &self.hidden {
            rows.extend(wrapped(hidden, width, look, Token::Warn));
        }
        if !self.is_open(look.fold) {
            return rows;
        }
        if (self.diff.is_none() || self.is_command()) && !self.output.is_empty() {
            match look.fold {
                Fold::Full => rows.extend(wrapped(&self.output, width, look, Token::Muted)),
                Fold::Quiet | Fold::Excerpt => rows.extend(self.excerpt(width, look)),
            }
        }
        if self.keeps_whole {
            rows.push(Line::styled(
                format!("kept whole {} /artifacts opens it", look.glyphs.dot),
                look.theme.style(Token::Faint),
            ));
        }
        if look.fold != Fold::Quiet && !self.rule.is_empty() {
            rows.push(Line::styled(format!("ran by rule: {}", self.rule), look.theme.style(Token::Faint)));
        }
        rows
    }

    /// Head and tail, and how much stands between them.
    fn excerpt(&self, width: u16, look: Look<'_>) -> Vec<Line<'static>> {
        let muted = look.theme.style(Token::Muted);
        let row = |line: &str| Line::styled(text::truncate(line, width.into()).into_owned(), muted);
        let count = self.output.lines().count();
        if count <= HEAD + TAIL + 1 {
            return self.output.lines().map(row).collect();
        }
        let mut rows: Vec<_> = self.output.lines().take(HEAD).map(row).collect();
        let words = format!("{} {} lines {} ctrl+o unfolds", look.glyphs.more, count - HEAD - TAIL, look.glyphs.dot);
        rows.push(Line::styled(words, look.theme.style(Token::Faint)));
        rows.extend(self.output.lines().skip(count - TAIL).map(row));
        rows
    }

    fn shows_diff(&self, fold: Fold) -> Option<&Diff> {
        self.diff.as_ref().filter(|_| self.is_open(fold))
    }

    pub fn diff_height(&self, width: u16, fold: Fold) -> usize {
        self.shows_diff(fold).map_or(0, |diff| diff.height(width))
    }

    pub fn diff_rows(&self, width: u16, range: Range<usize>, theme: &Theme) -> Vec<Line<'static>> {
        match &self.diff {
            Some(diff) if !range.is_empty() => diff.rows(width, range, theme),
            Some(_) | None => Vec::new(),
        }
    }
}

impl Live {
    fn push(&mut self, chunk: &str) {
        let mut whole = String::new();
        self.cleaner.push(chunk, &mut whole);
        let lines = whole.split_inclusive('\n').map(|line| line.trim_end_matches('\n').to_owned());
        self.lines.extend(lines);
        let old = self.lines.len().saturating_sub(TAIL);
        self.lines.drain(..old);
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.cleaner.open_line().is_empty()
    }

    fn tail(&self) -> Vec<String> {
        let open = Some(self.cleaner.open_line()).filter(|line| !line.is_empty());
        let skip = (self.lines.len() + usize::from(open.is_some())).saturating_sub(TAIL);
        self.lines.iter().cloned().chain(open).skip(skip).collect()
    }
}

/// The line that says how a command ended, out of what it printed, and the names of parts where there is one only.
pub fn take_exit(output: &mut String) -> Option<String> {
    let (first, rest) = output.split_once('\n').unwrap_or((output, ""));
    let exit = first.strip_prefix("Exit code: ")?.to_owned();
    let rest = rest.strip_prefix("--- stdout ---\n").unwrap_or(rest);
    *output = rest.strip_suffix("--- stderr ---").unwrap_or(rest).trim_end_matches('\n').to_owned();
    Some(exit)
}

fn one_line(text: &str) -> String {
    text::clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn seconds(latency_ms: u64) -> String {
    format!("{}.{} s", latency_ms / 1000, latency_ms % 1000 / 100)
}
