//! Work that was unfinished when the previous process ended, and its outcome: one entry at the end of the transcript.

use super::RenderContext;
use super::text_rows::wrapped;
use crate::protocol::CallId;
use crate::text;
use crate::tui::format::counted;
use crate::tui::styled_text::Row;
use crate::tui::theme::Token;
use ratatui::text::Span;

/// Maximum number of calls listed; the rest are counted.
const MAX_NAMED: usize = 6;
/// Maximum width of a shown draft or prompt, in cells.
const WORDS: usize = 60;

/// State of a call that was unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryState {
    /// The call had not started.
    Open,
    /// The call was running.
    Ran,
    /// The outcome is unknown; the user will be asked.
    Unknown,
    /// The call waits for the user's answer again.
    Asked,
    /// The call runs now, or again.
    Runs,
    /// The user answered, and the call did not run.
    Answered,
    /// Recovery found that the call was complete.
    Done,
    /// Recovery or the session found that it did not happen.
    NotDone,
}

impl RecoveryState {
    fn words(self) -> &'static str {
        match self {
            Self::Open => "had not started",
            Self::Ran => "was running",
            Self::Unknown => "was running; outcome unknown (you will be asked)",
            Self::Asked => "waiting for your answer again",
            Self::Runs => "running now",
            Self::Answered => "answered by you",
            Self::Done => "found to be complete",
            Self::NotDone => "did not happen",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Number of words of the response that was cut off.
    pub answer: Option<usize>,
    pub calls: Vec<(CallId, String, RecoveryState)>,
    pub prompts: Vec<String>,
    pub draft: Option<String>,
}

impl Recovery {
    pub(crate) fn is_empty(&self) -> bool {
        self.answer.is_none() && self.calls.is_empty() && self.prompts.is_empty() && self.draft.is_none()
    }

    /// Updates the state of a call, if it is one of the listed calls.
    pub(crate) fn came_to(&mut self, id: &CallId, fate: RecoveryState) {
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
        let mut lines = Vec::new();
        if let Some(words) = self.answer {
            lines.push(format!(
                "the response was cut off after {}; the partial text above is not part of the conversation",
                counted(words, "word")
            ));
        }
        for (_, summary, fate) in self.calls.iter().take(MAX_NAMED) {
            lines.push(format!("{summary}: {}", fate.words()));
        }
        let more = self.calls.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            lines.push(format!("and {}", counted(more, "more call")));
        }
        match self.prompts.as_slice() {
            [] => {}
            [prompt] => lines.push(format!("1 queued prompt: {}", text::truncate(prompt, WORDS))),
            [first, ..] => {
                lines.push(format!("{}: {} …", counted(self.prompts.len(), "queued prompt"), text::truncate(first, WORDS)));
            }
        }
        if let Some(draft) = &self.draft {
            lines.push(format!("draft restored: {}", text::truncate(draft, WORDS)));
        }
        lines
    }
}

pub(crate) fn rows(recovery: &Recovery, width: u16, look: RenderContext<'_>) -> Vec<Row> {
    let nothing_ran = recovery.answer.is_none() && recovery.calls.is_empty();
    let head = if nothing_ran { "Restored:" } else { "In progress when aye exited; nothing restarts automatically:" };
    let mut rows = wrapped(head, width, look, Token::Warn);
    for words in recovery.lines() {
        let parts = wrapped(&words, width.saturating_sub(2).max(1), look, Token::Text);
        for (at, part) in parts.into_iter().enumerate() {
            let lead = if at == 0 { format!("{} ", look.glyphs.dot) } else { "  ".to_owned() };
            rows.push(part.behind(Span::styled(lead, look.theme.style(Token::Faint))));
        }
    }
    rows
}
