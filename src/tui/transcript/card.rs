//! Cards, which represent tool calls in the transcript.

use super::output::{Output, parse_line, truncate_line};
use super::read_group::{ReadGroup, ReadKind};
use super::text_rows::{more, wrapped};
use super::{Fold, RenderContext};
use crate::protocol::tool::redaction_summary;
use crate::protocol::{
    APPLIED_UNASKED, APPROVED_BY_YOU, APPROVED_UNSANDBOXED, CallId, CommandEnd, Effects, Proposal, Redaction, text_after_changes,
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
use std::path::Path;
use std::rc::Rc;

/// Number of lines shown from the start of a long output. [`TAIL`] lines are shown from its end.
const HEAD: usize = 3;
const TAIL: usize = 5;
/// Number of changed rows shown from each end of an edit's diff.
const EDIT_ENDS: usize = 2;
/// Maximum number of files that a command's card names.
const FILES: usize = 3;
/// Minimum duration of a call, in milliseconds, for which its time is shown.
const NOTABLE_MS: u64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CardState {
    /// The model has requested the call, which has not started yet.
    Requested,
    /// The call is waiting for the user's approval.
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
    /// The call was stopped by the user or skipped.
    Stopped {
        message: String,
    },
    /// The aye process exited before the call was complete, so the outcome is unknown.
    Unknown,
}

/// Most recent output lines of a running command.
#[derive(Default)]
struct Live {
    ansi: text::Ansi,
    cleaner: text::Cleaner,
    /// Output lines, including their colour sequences.
    lines: VecDeque<String>,
}

pub(crate) struct Card {
    pub id: CallId,
    summary: String,
    /// Command line as proposed by the model, if the user edited it.
    meant: Option<String>,
    /// Whether the user chose to run the command outside the sandbox, which its summary then says.
    pub is_unsandboxed: bool,
    pub state: CardState,
    rule: String,
    /// Description of the sandbox in which the call runs, or an empty string if it is unknown or irrelevant.
    pub held: String,
    /// Path of the file that the call reads or writes, as given by the model.
    pub path: Option<String>,
    /// Whether the command is running in a copy, leaving the workspace unchanged.
    pub is_preview: bool,
    /// Whether the command runs in a copy without approval, in which case the user approves its changes instead.
    pub is_layer: bool,
    /// Progress of listing or applying the effects of the command: `Applying 12,400 of 30,000 files`.
    pub progress: Option<String>,
    /// Whether the call's approval prompt is shown below the card, so the card need not repeat its title.
    pub has_question_below: bool,
    /// How the command ended, if the result says so.
    pub ended: Option<CommandEnd>,
    /// Exit code, such as `3`. For results of older versions, it is parsed from the output.
    exit: Option<String>,
    output: Output,
    live: Live,
    diff: Option<Diff>,
    /// Diff of the call's changes, as text.
    source: String,
    /// Description of content that was hidden from the model, if any was.
    hidden: Option<String>,
    /// Whether the full output is stored as an artifact.
    pub keeps_whole: bool,
    /// Label shown if the user ran the command.
    pub by_person: Option<&'static str>,
    /// Whether the command runs in the background.
    pub is_in_background: bool,
    /// Description of the changes that the command made without approval, and whether they are only build output.
    applied: Option<(String, bool)>,
    /// Reason why the command required no approval.
    note: Option<String>,
    /// Kind of content that the call reads, or `None` if it does more than read or search.
    pub reads: Option<ReadKind>,
    /// Group of calls shown as one row. `leads_group` is set on the first call in the group.
    pub group: Option<Rc<ReadGroup>>,
    pub leads_group: bool,
}

/// Running time, in milliseconds, after which aye offers to restart a command that runs in a copy in the background.
const LONG_RUN_MS: u64 = 10_000;

impl Card {
    pub(crate) fn new(id: CallId, summary: &str) -> Self {
        Self {
            id,
            summary: text::clean_line(summary),
            meant: None,
            is_unsandboxed: false,
            state: CardState::Requested,
            rule: String::new(),
            held: String::new(),
            path: None,
            is_preview: false,
            is_layer: false,
            progress: None,
            has_question_below: false,
            ended: None,
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

    /// Returns a label that says the user ran or edited the command, or an empty string if neither is the case.
    fn actor_label(&self) -> String {
        let says_it = self.is_unsandboxed || self.rule == APPROVED_UNSANDBOXED;
        let edited = self.meant.as_ref().filter(|_| !says_it).map(|_| "edited by you");
        self.by_person.or(edited).map(|whose| format!("  {whose}")).unwrap_or_default()
    }

    /// Shows the command line as edited by the user. `None` restores the original command line.
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

    /// Adds the changes that the command made without approval, and a note that explains why none was required.
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
        self.exit = self.ended.as_ref().map_or(exit, CommandEnd::exit_text);
        if let Some(proposal) = proposal {
            // The title of a command is already its command line.
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

    /// Returns whether any content was hidden from the model.
    pub(crate) fn hides_something(&self) -> bool {
        self.hidden.is_some()
    }

    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the output as text, excluding content that was hidden from the model.
    pub(crate) fn output(&self) -> &str {
        &self.output.text
    }

    /// Returns the reason why the call failed, was denied or was stopped, or an empty string for any other state.
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

    /// Returns the changes that the call made, as the text of a diff.
    pub(crate) fn changes_text(&self) -> &str {
        &self.source
    }

    pub(crate) fn exit(&self) -> Option<&str> {
        self.exit.as_deref()
    }

    pub(crate) fn is_command(&self) -> bool {
        self.summary.starts_with("$ ")
    }

    /// Returns whether a command completed with a non-zero exit code.
    fn has_failed_exit(&self) -> bool {
        matches!(self.state, CardState::Done { .. }) && self.exit.as_ref().is_some_and(|exit| exit != "0")
    }

    /// Returns whether the command is waiting for approval to run again with more access. In that case, its output so
    /// far is shown to help the user decide.
    fn is_awaiting_rerun(&self) -> bool {
        self.state == CardState::Waiting && !self.is_preview && !self.live.is_empty()
    }

    /// Returns whether the command has been running in a copy for long enough to offer a restart in the background.
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
                // The bar with an arrow marks a row that continues the row above.
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
        // Without text on the right, the result may use the full width.
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

    /// Returns a short description of the call's result, and the colour in which to show it.
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
            CardState::Failed { .. } => match &self.ended {
                Some(CommandEnd::TimedOut { seconds }) => (format!("killed after {seconds} s"), Token::Danger),
                Some(CommandEnd::Exited { .. } | CommandEnd::Signalled { .. }) | None => ("failed".to_owned(), Token::Danger),
            },
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

    /// Returns whether the card's body is shown. The bodies of failed and running calls are shown unless the user
    /// closes them.
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

    /// Returns the card's next fold state. The current one is `own` or, if that is not set, the global state `all`.
    /// Returns `None` if the card has nothing to unfold.
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
            rows.extend(self.changed_files(width, look));
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

    /// Returns a row that lists the changes made without approval, and a row with the note about them. Either is
    /// omitted if there is nothing to show.
    fn unasked_rows(&self, is_open: bool, width: u16, look: RenderContext<'_>) -> Vec<Row> {
        let style = look.theme.style(Token::Muted);
        let applied = self.applied.as_ref().filter(|(_, is_build)| is_open || !is_build).map(|(words, _)| words);
        let row = |words: &String| Row::from_line(Line::styled(text::truncate(words, width.into()).into_owned(), style));
        applied.into_iter().chain(&self.note).map(row).collect()
    }

    /// Returns a row that names the first files that a command changed. Returns `None` if it changed none, or if another
    /// row lists them.
    fn changed_files(&self, width: u16, look: RenderContext<'_>) -> Option<Row> {
        let is_listed = look.is_own || !self.is_command() || self.applied.is_some();
        let diff = self.diff.as_ref().filter(|_| !is_listed && matches!(self.state, CardState::Done { .. }))?;
        let files = diff.files();
        let describe = |(path, added, removed): &(Option<&Path>, usize, usize)| {
            let name = path.map_or_else(|| "a file".to_owned(), |path| text::reveal_name(&path.to_string_lossy()));
            format!("{name} +{added} {}{removed}", look.glyphs.minus)
        };
        let more = Some(files.len().saturating_sub(FILES)).filter(|more| *more > 0).map(|more| format!("{more} more"));
        let words: Vec<String> = files.iter().take(FILES).map(describe).chain(more).collect();
        let words = words.join(&format!(" {} ", look.glyphs.dot));
        let style = look.theme.style(Token::Muted);
        Some(Row::from_line(Line::styled(text::truncate(&words, width.into()).into_owned(), style)))
    }

    /// Returns the exit code, the rule that allowed the call, and the sandbox. Returns `None` if no rule is known, or
    /// if the call was denied: a command that ran in a copy before it was denied was not allowed by any rule.
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

    /// Returns all output lines as wrapped rows, in colour.
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

    /// Returns the first and last output lines, with a row between them that gives the number of omitted lines.
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

    /// Returns the visible parts of the diff, which are all of it, only the first and last changed rows of an edit, or
    /// nothing.
    fn diff_parts(&self, diff: &Diff, width: u16, look: RenderContext<'_>) -> Vec<DiffPart> {
        if self.is_open(look.fold, look.is_own) {
            return vec![DiffPart::Rows(0..diff.height(width))];
        }
        if look.is_own || !matches!(self.state, CardState::Done { .. }) {
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

/// Part of a diff as shown in a card.
enum DiffPart {
    Rows(Range<usize>),
    /// Number of rows omitted at this point.
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
        // The cell at this position contains the line number, the continuation mark or the sign, and so identifies the
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
