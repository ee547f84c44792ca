//! Conversion of transcript entries to text.

use crate::protocol::Problem;
use crate::text;
use crate::tui::transcript::{CardState, NoteTone, TranscriptEntryKind};

/// Returns an entry's text, and whether the text was written by aye. Returns `None` for entries that are printed as
/// events instead.
pub(crate) fn live_text(kind: &TranscriptEntryKind) -> Option<(bool, String)> {
    match kind {
        TranscriptEntryKind::User(text) => Some((false, format!("You: {text}"))),
        TranscriptEntryKind::Note { text, tone: NoteTone::Plain } => Some((true, format!("Note: {text}"))),
        TranscriptEntryKind::Note { text, tone: NoteTone::Warning } => Some((true, format!("Warning: {text}"))),
        TranscriptEntryKind::Note { text, tone: NoteTone::Failure } => Some((true, Problem::new(text).text())),
        TranscriptEntryKind::Problem { problem, .. } => Some((true, problem.text())),
        TranscriptEntryKind::Greeting(lines) => {
            // Line mode has no key `?`.
            let without_key = |line: &'_ str| match line.strip_suffix("? keys") {
                Some(line) => line.trim_end_matches(|letter: char| !letter.is_alphanumeric()).to_owned(),
                None => line.to_owned(),
            };
            let lines: Vec<String> =
                lines.iter().map(|line| without_key(line.text.trim())).filter(|line| !line.is_empty()).collect();
            Some((true, lines.join("\n")))
        }
        TranscriptEntryKind::Summary { head, .. } => Some((true, format!("Note: {head}"))),
        TranscriptEntryKind::Answer { .. }
        | TranscriptEntryKind::Reasoning { .. }
        | TranscriptEntryKind::Card(_)
        | TranscriptEntryKind::Recovery(_) => None,
    }
}

/// Returns the text of an entry that would have been printed as events when it was new, and whether it was written by
/// aye.
pub(crate) fn past_text(kind: &TranscriptEntryKind) -> Option<(bool, String)> {
    match kind {
        TranscriptEntryKind::Answer { document, .. } => Some((false, format!("aye: {}", text::clean(document.text()).trim()))),
        TranscriptEntryKind::Card(card) => {
            let state = match &card.state {
                CardState::Requested => "requested".to_owned(),
                CardState::Waiting => "was waiting for you".to_owned(),
                CardState::Running { .. } => "ran".to_owned(),
                CardState::Unknown => "was running when aye exited; outcome unknown".to_owned(),
                CardState::Done { .. } => match card.exit().filter(|exit| *exit != "0") {
                    Some(exit) => format!("exited with code {exit}"),
                    None => "done".to_owned(),
                },
                CardState::Failed { message, .. } => format!("failed: {}", text::reveal_line(message)),
                CardState::Stopped { message } => format!("stopped: {}", text::reveal_line(message)),
                CardState::Denied { message } => format!("denied: {}", text::reveal_line(message)),
            };
            Some((true, format!("Tool: {} {state}", card.summary())))
        }
        _ => None,
    }
}
