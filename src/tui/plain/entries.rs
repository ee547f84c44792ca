//! Transcript entries as text.

use crate::protocol::Problem;
use crate::text;
use crate::tui::transcript::{CardState, Kind, Tone};

/// Returns the text of an entry, and whether aye is its author; `None` for entries that events print.
pub(crate) fn live_text(kind: &Kind) -> Option<(bool, String)> {
    match kind {
        Kind::User(text) => Some((false, format!("You: {text}"))),
        Kind::Note { text, tone: Tone::Plain } => Some((true, format!("Note: {text}"))),
        Kind::Note { text, tone: Tone::Warning } => Some((true, format!("Warning: {text}"))),
        Kind::Note { text, tone: Tone::Failure } => Some((true, Problem::new(text).text())),
        Kind::Problem { problem, .. } => Some((true, problem.text())),
        Kind::Greeting(lines) => {
            // Line mode has no such keys.
            let without_key = |line: &'_ str| match line.strip_suffix("? keys") {
                Some(line) => line.trim_end_matches(|letter: char| !letter.is_alphanumeric()).to_owned(),
                None => line.to_owned(),
            };
            let lines: Vec<String> =
                lines.iter().map(|line| without_key(line.text.trim())).filter(|line| !line.is_empty()).collect();
            Some((true, lines.join("\n")))
        }
        Kind::Summary { head, .. } => Some((true, format!("Note: {head}"))),
        Kind::Answer { .. } | Kind::Reasoning { .. } | Kind::Card(_) | Kind::Recovery(_) => None,
    }
}

/// Returns the text of an entry that an event printed when it was new.
pub(crate) fn past_text(kind: &Kind) -> Option<(bool, String)> {
    match kind {
        Kind::Answer { document, .. } => Some((false, format!("aye: {}", text::clean(document.text()).trim()))),
        Kind::Card(card) => {
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
