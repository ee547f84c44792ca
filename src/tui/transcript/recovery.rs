//! Work that the previous process left unfinished, and what became of it, as a single entry at the end of the
//! transcript.

use super::RenderContext;
use super::text_rows::truncated_row;
use crate::protocol::CallId;
use crate::text;
use crate::tui::format::format_count;
use crate::tui::styled_text::Row;
use crate::tui::theme::Token;
use ratatui::text::Span;

/// Maximum number of rows in the entry.
const ROWS: usize = 5;
/// Maximum width, in cells, of a draft or prompt quoted in the entry.
const WORDS: usize = 60;

/// State of a call that was unfinished when the previous process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryState {
    /// The call had not started yet.
    Open,
    /// The call was running when the process exited.
    Ran,
    /// The outcome is unknown, so aye will ask the user about the call.
    Unknown,
    /// The call is once again waiting for the user's answer.
    Asked,
    /// The call is running, possibly for a second time.
    Runs,
    /// The user has answered, and the call did not run.
    Answered,
    /// Recovery found that the call had completed.
    Done,
    /// Recovery or the session established that the call had no effect.
    NotDone,
}

impl RecoveryState {
    fn description(self) -> &'static str {
        match self {
            Self::Open => "had not started",
            Self::Ran => "was running",
            Self::Unknown => "was running; outcome unknown (you will be asked)",
            Self::Asked => "waiting for your answer again",
            Self::Runs => "running now",
            Self::Answered => "answered by you",
            Self::Done => "had completed",
            Self::NotDone => "had no effect",
        }
    }

    /// Returns the rank by which calls are sorted if there is not enough room for all of them. Calls that need an
    /// answer come first.
    fn rank(self) -> u8 {
        match self {
            Self::Unknown | Self::Asked => 0,
            Self::Ran | Self::Runs => 1,
            Self::Open => 2,
            Self::Answered | Self::Done | Self::NotDone => 3,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Number of words in the response that was interrupted, or `None` if no response was.
    pub answer: Option<usize>,
    pub calls: Vec<(CallId, String, RecoveryState)>,
    pub prompts: Vec<String>,
    pub draft: Option<String>,
    /// Whether the task has continued with a model request.
    pub has_continued: bool,
}

impl Recovery {
    pub(crate) fn is_empty(&self) -> bool {
        self.answer.is_none() && self.calls.is_empty() && self.prompts.is_empty() && self.draft.is_none()
    }

    /// Returns whether one of the calls waits for the user.
    pub(crate) fn waits(&self) -> bool {
        self.calls.iter().any(|(.., fate)| matches!(fate, RecoveryState::Unknown | RecoveryState::Asked))
    }

    fn head(&self) -> &'static str {
        match (self.answer.is_none() && self.calls.is_empty(), self.has_continued) {
            (true, _) => "Restored",
            (false, true) => "Unfinished when aye exited; no command is rerun, and the task continues",
            (false, false) => "Unfinished when aye exited; nothing is restarted",
        }
    }

    /// Updates the state of a call if the entry lists it.
    pub(crate) fn set_state(&mut self, id: &CallId, fate: RecoveryState) {
        let Some((.., known)) = self.calls.iter_mut().find(|(call, ..)| call == id) else { return };
        *known = match (*known, fate) {
            // Calls that were restarted or answered are no longer unfinished work.
            (RecoveryState::Runs | RecoveryState::Answered, _) => return,
            (RecoveryState::Unknown | RecoveryState::Asked, RecoveryState::Done | RecoveryState::NotDone) => {
                RecoveryState::Answered
            }
            (_, fate) => fate,
        };
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut others = Vec::new();
        if let Some(words) = self.answer {
            others.push(format!(
                "the response was cut off after {}; it is not part of the conversation",
                format_count(words, "word")
            ));
        }
        match self.prompts.as_slice() {
            [] => {}
            [prompt] => others.push(format!("1 queued prompt: {}", text::truncate(prompt, WORDS))),
            [first, ..] => {
                others.push(format!("{}: {} …", format_count(self.prompts.len(), "queued prompt"), text::truncate(first, WORDS)));
            }
        }
        if let Some(draft) = &self.draft {
            others.push(format!("draft restored: {}", text::truncate(draft, WORDS)));
        }
        let mut lines = self.call_lines((ROWS - 1).saturating_sub(others.len()).max(1));
        lines.extend(others);
        lines
    }

    /// Returns up to `most` lines about the calls. If some calls are omitted, the last line says how many. The card of a
    /// call without an effect says so itself.
    fn call_lines(&self, most: usize) -> Vec<String> {
        let line = |(_, summary, fate): &(CallId, String, RecoveryState)| format!("{summary}: {}", fate.description());
        let listed = self.calls.iter().filter(|(.., fate)| *fate != RecoveryState::NotDone);
        let mut calls: Vec<&(CallId, String, RecoveryState)> = listed.collect();
        let count = calls.len();
        if count > most {
            calls.sort_by_key(|(_, _, fate)| fate.rank());
        }
        match &calls[..] {
            calls if count <= most => calls.iter().map(|call| line(call)).collect(),
            [first, ..] if most == 1 => vec![format!("{}, first {}", format_count(count, "call"), line(first))],
            calls => {
                let more = format!("and {}", format_count(count + 1 - most, "more call"));
                calls.iter().take(most - 1).map(|call| line(call)).chain([more]).collect()
            }
        }
    }
}

pub(crate) fn rows(recovery: &Recovery, width: u16, look: RenderContext<'_>) -> Vec<Row> {
    let lines = recovery.lines();
    let head = if lines.is_empty() { recovery.head().to_owned() } else { format!("{}:", recovery.head()) };
    let lead = Span::styled(format!("{} ", look.glyphs.dot), look.theme.style(Token::Faint));
    let room = width.saturating_sub(2).max(1);
    let mut rows = vec![truncated_row(&head, width, look, if recovery.waits() { Token::Warn } else { Token::Text })];
    rows.extend(lines.iter().map(|words| truncated_row(words, room, look, Token::Text).with_prefix(lead.clone())));
    rows
}
