//! Tool call cards in the transcript.

use super::output::{Output, parse_line, truncate_line};
use super::read_group::{ReadGroup, ReadKind};
use super::text_rows::{more, wrapped};
use super::{Fold, RenderContext};
use crate::protocol::tool::redaction_summary;
use crate::protocol::{
    APPLIED_UNASKED, APPROVED_BY_YOU, APPROVED_UNSANDBOXED, CallId, Effects, OUTSIDE_SANDBOX, Proposal, Redaction,
    text_after_changes,
};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::format::format_count;
use crate::tui::glyphs::Glyphs;
use crate::tui::styled_text::{Join, Row, StyledText};
use crate::tui::theme::{Theme, Token};
use ratatui::text::{Line, Span};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// Number of lines shown from the start of a long output, and from its end.
const HEAD: usize = 3;
const TAIL: usize = 5;
/// Number of rows shown from the start of an edit's changes, and from their end.
const EDIT_ENDS: usize = 2;
/// Duration from which the time of a call is shown, in milliseconds.
const NOTABLE_MS: u64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CardState {
    /// The model requested the call, but it has not started.
    Requested,
    /// The call waits for the user's approval.
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
    /// The user stopped the call, or it was skipped.
    Stopped {
        message: String,
    },
    /// The process ended before the call did, so the outcome is unknown.
    Unknown,
}

/// Last output lines of a running command.
#[derive(Default)]
struct Live {
    ansi: text::Ansi,
    cleaner: text::Cleaner,
    /// Lines including their colour sequences.
    lines: VecDeque<String>,
}

pub(crate) struct Card {
    pub id: CallId,
    summary: String,
    /// Original command line, if the user edited it.
    meant: Option<String>,
    pub state: CardState,
    rule: String,
    /// Description of the run's sandbox; empty if unknown or irrelevant.
    pub held: String,
    /// File that the call affects, as named by the model.
    pub path: Option<String>,
    /// Whether the command runs in a preview copy, so that the workspace is unchanged.
    pub is_preview: bool,
    /// Whether the preview is a run in a copy before any approval.
    pub is_layer: bool,
    /// Progress of listing or applying the effects of the command: `Applying 12,400 of 30,000 files`.
    pub progress: Option<String>,
    /// Whether the approval of this call is shown below the card and repeats its title.
    pub has_question_below: bool,
    /// Exit code of a command, from the first line of its output: `3`.
    exit: Option<String>,
    output: Output,
    live: Live,
    diff: Option<Diff>,
    /// Diff of the call as text.
    source: String,
    /// Description of content hidden from the model.
    hidden: Option<String>,
    /// Whether the full output is stored, including parts not shown here.
    pub keeps_whole: bool,
    /// Label for a command that the user ran.
    pub by_person: Option<&'static str>,
    /// Whether the command runs in the background.
    pub is_in_background: bool,
    /// Changes that the command made without approval, and whether they are only build output.
    applied: Option<(String, bool)>,
    /// Reason why the command needed no approval.
    note: Option<String>,
    /// Kind of content that the call reads, if it changes nothing.
    pub reads: Option<ReadKind>,
    /// Group of calls that share a row, and whether this call is the first in the group.
    pub group: Option<Rc<ReadGroup>>,
    pub leads_group: bool,
}

/// Time after which aye offers to restart a command in a layer in the background.
const LONG_RUN_MS: u64 = 10_000;

impl Card {
    pub(crate) fn new(id: CallId, summary: &str) -> Self {
        Self {
            id,
            summary: text::clean_line(summary),
            meant: None,
            state: CardState::Requested,
            rule: String::new(),
            held: String::new(),
            path: None,
            is_preview: false,
            is_layer: false,
            progress: None,
            has_question_below: false,
            exit: None,
            output: Output::default(),
            live: Live::default(),
            diff: None,
            source: String::new(),
            hidden: None,
            keeps_whole: false,
            by_person: None,
            is_in_background: false,
            applied: None,
            note: None,
            reads: None,
            group: None,
            leads_group: false,
        }
    }

    /// Returns a label if the user ran or edited the command.
    fn actor_label(&self) -> String {
        let says_it = self.summary.ends_with(OUTSIDE_SANDBOX);
        let edited = self.meant.as_ref().filter(|_| !says_it).map(|_| "edited by you");
        self.by_person.or(edited).map(|whose| format!("  {whose}")).unwrap_or_default()
    }

    /// Replaces the displayed command line with the user's edit; `None` restores the original.
    pub(crate) fn set_edited(&mut self, line: Option<&str>) {
        if let Some(meant) = self.meant.take() {
            self.summary = meant;
        }
        self.meant = line.map(|line| std::mem::replace(&mut self.summary, text::clean_line(line)));
    }

    pub(crate) fn on_started(&mut self, rule: &str, now: u64) {
        self.rule = text::clean_line(rule);
        (self.is_preview, self.is_layer, self.progress) = (false, false, None);
        self.state = CardState::Running { since: now };
    }

    /// Adds changes that the command made without approval, and the reason.
    pub(crate) fn add_unasked_changes(&mut self, effects: Option<&Effects>, note: Option<&str>) {
        let applied = effects.filter(|effects| !effects.is_empty());
        self.applied =
            applied.map(|effects| (text::clean_line(&format!("applied: {}", effects.summary())), effects.is_build_output()));
        self.note = note.map(text::clean_line);
    }

    pub(crate) fn push_output(&mut self, chunk: &str) {
        self.live.push(chunk);
    }

    pub(crate) fn on_ended(&mut self, state: CardState, output: &str, proposal: Option<&Proposal>) {
        (self.state, self.progress) = (state, None);
        self.live = Live::default();
        let (output, exit) = Output::clean(output, self.is_command());
        self.output = output;
        self.exit = exit;
        if let Some(proposal) = proposal {
            // A command is already named by its line.
            if !proposal.summary.is_empty() && !self.is_command() {
                self.summary = text::clean_line(&proposal.summary);
            }
            if let Some(path) = proposal.paths.first() {
                self.path = Some(text::clean(&path.to_string_lossy()).into_owned());
            }
            if !proposal.diff.is_empty() {
                self.source = text::clean(&proposal.diff.to_string()).into_owned();
                self.diff = Some(Diff::new(&proposal.diff, proposal.paths.first().map(std::path::PathBuf::as_path)));
            }
        }
    }

    pub(crate) fn add_redactions(&mut self, redactions: &[Redaction]) {
        self.hidden = redaction_summary(redactions);
    }

    /// Returns whether content was hidden from the model; the card shows this.
    pub(crate) fn hides_something(&self) -> bool {
        self.hidden.is_some()
    }

    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the output, without content hidden from the model.
    pub(crate) fn output(&self) -> &str {
        &self.output.text
    }

    /// Returns the reason why the call failed, was denied or was stopped.
    pub(crate) fn message(&self) -> &str {
        match &self.state {
            CardState::Failed { message, .. } | CardState::Denied { message } | CardState::Stopped { message } => message,
            CardState::Requested
            | CardState::Waiting
            | CardState::Running { .. }
            | CardState::Done { .. }
            | CardState::Unknown => "",
        }
    }

    /// Returns the changes made by the call, as a diff.
    pub(crate) fn changes_text(&self) -> &str {
        &self.source
    }

    pub(crate) fn exit(&self) -> Option<&str> {
        self.exit.as_deref()
    }

    pub(crate) fn is_command(&self) -> bool {
        self.summary.starts_with("$ ")
    }

    /// Returns whether a command finished with a non-zero exit code.
    fn has_failed_exit(&self) -> bool {
        matches!(self.state, CardState::Done { .. }) && self.exit.as_ref().is_some_and(|exit| exit != "0")
    }

    /// Returns whether a command waits for approval to run again with more access. Its output helps the user decide.
    fn is_awaiting_rerun(&self) -> bool {
        self.state == CardState::Waiting && !self.is_preview && !self.live.is_empty()
    }

    /// Returns whether the command has run in its layer long enough to offer a start in the background instead.
    pub(crate) fn offers_background(&self, now: u64) -> bool {
        match self.state {
            CardState::Running { since } => self.is_layer && now.saturating_sub(since) >= LONG_RUN_MS,
            _ => false,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, CardState::Running { .. })
    }

    pub(crate) fn symbol(&self, glyphs: &Glyphs) -> (&'static str, Token) {
        match self.state {
            _ if self.is_in_background => (glyphs.state.background, Token::Accent),
            CardState::Requested => (glyphs.state.running, Token::Faint),
            CardState::Running { .. } => (glyphs.state.running, Token::Accent),
            CardState::Waiting | CardState::Unknown => (glyphs.state.waits, Token::Warn),
            CardState::Done { .. } if self.has_failed_exit() => (glyphs.state.failed, Token::Danger),
            CardState::Done { .. } => (glyphs.state.done, Token::Ok),
            CardState::Failed { .. } => (glyphs.state.failed, Token::Danger),
            CardState::Denied { .. } | CardState::Stopped { .. } => (glyphs.state.denied, Token::Warn),
        }
    }

    pub(crate) fn rows(&self, width: u16, look: RenderContext<'_>) -> Vec<Row> {
        let group = self.group.as_ref().map(|group| (group, group.is_closed(look)));
        let shared = group.filter(|_| self.leads_group).map(|(group, _)| group.row(width, look));
        if group.is_some_and(|(_, is_closed)| is_closed) {
            return shared.into_iter().collect();
        }
        let title = (!self.has_question_below).then(|| Row::from_line(self.title(width, look)));
        let mut rows: Vec<Row> = shared.into_iter().chain(title).collect();
        let inner = width.saturating_sub(2).max(1);
        let faint = look.theme.style(Token::Faint);
        for row in self.body(inner, look) {
            let lead = match row.join {
                // The bar marks continuation rows.
                Join::Nothing => format!("{}↪", look.glyphs.bar),
                Join::Line | Join::Space => format!("{} ", look.glyphs.bar),
            };
            rows.push(row.with_prefix(Span::styled(lead, faint)));
        }
        rows
    }

    fn title(&self, width: u16, look: RenderContext<'_>) -> Line<'static> {
        let (words, token) = self.result_text(look);
        let right = self.right(look);
        // If there is no text on the right, the result may use the full width.
        let right_width = if right.is_empty() { 0 } else { text::width(&right) + 1 };
        let room = usize::from(width).saturating_sub(right_width);
        let words_width = if words.is_empty() { 0 } else { text::width(&words) + 2 };
        let whose = self.actor_label();
        let name_room = room.saturating_sub(words_width + text::width(&whose)).max(room.min(12));
        let name = format!("{}{whose}", text::truncate(&self.summary, name_room));
        let words = text::truncate(&words, room.saturating_sub(text::width(&name) + 2)).into_owned();
        let used = text::width(&name) + if words.is_empty() { 0 } else { text::width(&words) + 2 };
        let mut spans = vec![Span::styled(name, look.theme.style(Token::Text))];
        if !words.is_empty() {
            spans.push(Span::raw("  "));
            spans.push(Span::styled(words, look.theme.style(token)));
        }
        if !right.is_empty() {
            spans.push(Span::raw(" ".repeat((room + 1).saturating_sub(used))));
            spans.push(Span::styled(right, look.theme.style(Token::Faint)));
        }
        Line::from(spans)
    }

    /// Returns the result as short text and its colour.
    fn result_text(&self, look: RenderContext<'_>) -> (String, Token) {
        let glyphs = look.glyphs;
        match &self.state {
            CardState::Running { .. } if self.progress.is_some() => (self.progress.clone().unwrap_or_default(), Token::Muted),
            CardState::Running { .. } if self.offers_background(look.now) => {
                ("ctrl+b  run in the background   esc  stop".to_owned(), Token::Accent)
            }
            CardState::Running { .. } if self.is_layer => ("in a copy".to_owned(), Token::Muted),
            CardState::Running { .. } if self.is_preview => ("preview: no changes applied yet".to_owned(), Token::Muted),
            CardState::Requested | CardState::Running { .. } => (String::new(), Token::Muted),
            CardState::Waiting => (format!("{} waiting for you", glyphs.dash), Token::Warn),
            CardState::Done { .. } if self.diff.is_some() && !self.is_command() => (String::new(), Token::Muted),
            CardState::Done { .. } => {
                let output = if self.meant.is_some() { text_after_changes(&self.output.text) } else { &self.output.text };
                let amount = match output.lines().count() {
                    0 => "no output".to_owned(),
                    1 if output.len() <= 40 => text::expand_tabs(output).into_owned(),
                    lines => format_count(lines, "line"),
                };
                match &self.exit {
                    Some(exit) if exit != "0" => (format!("exit {exit} {} {amount}", glyphs.dot), Token::Danger),
                    Some(_) | None => (amount, Token::Muted),
                }
            }
            // Only `killed after 300 s` is shown here; the rest is shown below.
            CardState::Failed { message, .. } if message.starts_with("killed after ") => {
                (message.split(" with ").next().unwrap_or_default().to_owned(), Token::Danger)
            }
            CardState::Failed { .. } => ("failed".to_owned(), Token::Danger),
            CardState::Denied { .. } => ("denied".to_owned(), Token::Warn),
            CardState::Stopped { .. } => ("stopped".to_owned(), Token::Warn),
            CardState::Unknown => ("interrupted: outcome unknown".to_owned(), Token::Warn),
        }
    }

    fn right(&self, look: RenderContext<'_>) -> String {
        let mark = if self.diff.is_none() && self.output.text.is_empty() && self.live.is_empty() {
            ""
        } else if self.is_open(look.fold, look.is_own) {
            look.glyphs.fold.unfolded
        } else {
            look.glyphs.fold.folded
        };
        let time = match self.state {
            CardState::Running { since } => format!("{} s", look.now.saturating_sub(since) / 1000),
            CardState::Done { latency_ms } | CardState::Failed { latency_ms, .. } if latency_ms >= NOTABLE_MS => {
                seconds(latency_ms)
            }
            CardState::Done { .. } | CardState::Failed { .. } => String::new(),
            CardState::Requested
            | CardState::Waiting
            | CardState::Denied { .. }
            | CardState::Stopped { .. }
            | CardState::Unknown => String::new(),
        };
        if mark.is_empty() && time.is_empty() { String::new() } else { format!("{mark} {time:>7}") }
    }

    /// Returns whether the body is shown. Failed and running calls open automatically until the user closes them.
    fn is_open(&self, fold: Fold, is_own: bool) -> bool {
        match self.state {
            CardState::Failed { .. } | CardState::Denied { .. } | CardState::Stopped { .. } | CardState::Running { .. }
                if !is_own =>
            {
                true
            }
            CardState::Waiting if self.is_awaiting_rerun() => true,
            CardState::Done { .. } if (self.has_failed_exit() || self.by_person.is_some()) && !is_own => true,
            _ => fold != Fold::Quiet,
        }
    }

    /// Returns the next fold state of this card, starting from its own state or the global one.
    pub(crate) fn next_fold(&self, own: Option<Fold>, all: Fold) -> Option<Fold> {
        let nothing = self.diff.is_none() && self.output.text.is_empty() && self.live.is_empty() && self.message().is_empty();
        if nothing && self.rule.is_empty() {
            return None;
        }
        let fold = own.unwrap_or(all);
        let is_open = self.is_open(fold, own.is_some());
        let is_long = self.output.text.lines().count() > HEAD + TAIL + 1 && !self.is_running();
        Some(match (is_open, is_long) {
            (false, _) => Fold::Excerpt,
            (true, true) if fold != Fold::Full => Fold::Full,
            (true, _) => Fold::Quiet,
        })
    }

    fn body(&self, width: u16, look: RenderContext<'_>) -> Vec<Row> {
        let is_open = self.is_open(look.fold, look.is_own);
        if self.is_running() || self.is_awaiting_rerun() {
            let lines = self.live.tail().into_iter().filter(|_| is_open);
            return lines.map(|line| truncate_line(&parse_line(&line), width, look)).collect();
        }
        let mut rows = self.unasked_rows(is_open, width, look);
        if is_open || !look.is_own {
            let token = if matches!(self.state, CardState::Failed { .. }) { Token::Danger } else { Token::Warn };
            let message = self.message();
            if !message.is_empty() {
                rows.extend(wrapped(message, width, look, token));
            }
            if let Some(hidden) = &self.hidden {
                rows.extend(wrapped(hidden, width, look, Token::Warn));
            }
        }
        if !is_open {
            return rows;
        }
        if self.diff.is_none() || self.is_command() {
            match look.fold {
                Fold::Full => rows.extend(self.full_output(width, look)),
                Fold::Quiet | Fold::Excerpt => rows.extend(self.excerpt(width, look)),
            }
        }
        if self.keeps_whole {
            let words = format!("saved in full {} /artifacts opens it", look.glyphs.dot);
            rows.push(Row::from_line(Line::styled(words, look.theme.style(Token::Faint))));
        }
        if let Some(words) = self.terms(look.glyphs) {
            rows.extend(wrapped(&words, width, look, Token::Faint));
        }
        rows
    }

    /// Returns one row about changes of the command without approval, and one row with the reason.
    fn unasked_rows(&self, is_open: bool, width: u16, look: RenderContext<'_>) -> Vec<Row> {
        let style = look.theme.style(Token::Muted);
        let applied = self.applied.as_ref().filter(|(_, is_build)| is_open || !is_build).map(|(words, _)| words);
        let row = |words: &String| Row::from_line(Line::styled(text::truncate(words, width.into()).into_owned(), style));
        applied.into_iter().chain(&self.note).map(row).collect()
    }

    /// Returns the exit code, the rule that allowed the call, and the sandbox. A command that ran in a copy and was
    /// denied afterwards was not allowed by a rule.
    fn terms(&self, glyphs: &Glyphs) -> Option<String> {
        if self.rule.is_empty() || matches!(self.state, CardState::Denied { .. }) {
            return None;
        }
        let exit = self.exit.as_ref().map(|exit| format!("exit {exit}"));
        let rule = match self.rule.as_str() {
            APPROVED_BY_YOU | APPROVED_UNSANDBOXED => self.rule.clone(),
            APPLIED_UNASKED => "allowed because it ran in a copy first".to_owned(),
            mode if mode.ends_with(" mode") => format!("allowed by {mode}"),
            rule => format!("allowed by rule: {rule}"),
        };
        let held = Some(self.held.clone()).filter(|held| !held.is_empty() && self.is_command());
        let words: Vec<String> = exit.into_iter().chain([rule]).chain(held).collect();
        Some(words.join(&format!(" {} ", glyphs.dot)))
    }

    /// Returns every output line in colour, wrapped.
    fn full_output(&self, width: u16, look: RenderContext<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        for line in self.output.lines(0, usize::MAX) {
            for (nth, range) in text::wrap_exact(&line.text, width.into()).into_iter().enumerate() {
                let join = if nth == 0 { Join::Line } else { Join::Nothing };
                rows.push(line.slice(range).joined(join).fit_row(width.into(), look.theme));
            }
        }
        rows
    }

    /// Returns the start and the end of the output, and the number of lines between them.
    fn excerpt(&self, width: u16, look: RenderContext<'_>) -> Vec<Row> {
        let count = self.output.text.lines().count();
        let row = |line: StyledText| truncate_line(&line, width, look);
        if count <= HEAD + TAIL + 1 {
            return self.output.lines(0, count).into_iter().map(row).collect();
        }
        let mut rows: Vec<_> = self.output.lines(0, HEAD).into_iter().map(row).collect();
        rows.push(more(count - HEAD - TAIL, look));
        rows.extend(self.output.lines(count - TAIL, TAIL).into_iter().map(row));
        rows
    }

    /// Returns the visible part of the diff: all of it, or the first and last changed lines of an edit.
    fn diff_parts(&self, diff: &Diff, width: u16, look: RenderContext<'_>) -> Vec<DiffPart> {
        if self.is_open(look.fold, look.is_own) {
            return vec![DiffPart::Rows(0..diff.height(width))];
        }
        if look.is_own || self.is_command() || !matches!(self.state, CardState::Done { .. }) {
            return Vec::new();
        }
        let changed = diff.changed_rows(width);
        if changed.len() <= 2 * EDIT_ENDS + 1 {
            return vec![DiffPart::Rows(changed)];
        }
        let (head, tail) = (changed.start + EDIT_ENDS, changed.end - EDIT_ENDS);
        vec![DiffPart::Rows(changed.start..head), DiffPart::Omitted(tail - head), DiffPart::Rows(tail..changed.end)]
    }

    pub(crate) fn diff_height(&self, width: u16, look: RenderContext<'_>) -> usize {
        let Some(diff) = &self.diff else { return 0 };
        self.diff_parts(diff, width, look).iter().map(DiffPart::height).sum()
    }

    pub(crate) fn diff_rows(&self, width: u16, range: Range<usize>, look: RenderContext<'_>) -> Vec<Row> {
        let Some(diff) = self.diff.as_ref().filter(|_| !range.is_empty()) else { return Vec::new() };
        let (mut rows, mut start) = (Vec::new(), 0);
        for part in self.diff_parts(diff, width, look) {
            let at = |row: usize| row.saturating_sub(start).min(part.height());
            let wanted = at(range.start)..at(range.end);
            match &part {
                DiffPart::Omitted(lines) if !wanted.is_empty() => rows.push(more(*lines, look)),
                DiffPart::Rows(part) if !wanted.is_empty() => {
                    rows.extend(diff_rows_in(diff, width, part.start + wanted.start..part.start + wanted.end, look.theme));
                }
                DiffPart::Omitted(_) | DiffPart::Rows(_) => {}
            }
            start += part.height();
        }
        rows
    }
}

/// Part of a diff, in order.
enum DiffPart {
    Rows(Range<usize>),
    /// Number of omitted rows.
    Omitted(usize),
}

impl DiffPart {
    fn height(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Omitted(_) => 1,
        }
    }
}

fn diff_rows_in(diff: &Diff, width: u16, range: Range<usize>, theme: &Theme) -> Vec<Row> {
    let gutter = diff.gutter();
    let row = |line: Line<'static>| {
        let row = Row::from_line(line);
        // The cell at this position contains the line number, the continuation mark or the sign, which identifies the
        // kind of row.
        let mark = row.cells().chars().nth(gutter.saturating_sub(2));
        let join = if mark == Some('↪') { Join::Nothing } else { Join::Line };
        let skip = if matches!(mark, Some(' ' | '↪')) { gutter as u16 } else { 0 };
        Row { skip, join, ..row }
    };
    diff.rows(width, range, theme).into_iter().map(row).collect()
}

impl Live {
    fn push(&mut self, chunk: &str) {
        let mut whole = String::new();
        let chunk = self.ansi.push(chunk);
        self.cleaner.push(&chunk, &mut whole);
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

fn seconds(latency_ms: u64) -> String {
    format!("{}.{} s", latency_ms / 1000, latency_ms % 1000 / 100)
}
