//! Dialog about a call that was interrupted by a crash, so its outcome is unknown.

use super::dialog_kind::DialogKind;
use super::{Body, ChoiceAction, Confirm, Dialog, DialogAnswer, choice};
use crate::protocol::{CallId, Resolution};
use crate::text;
use crate::tui::format;
use std::fmt::Write as _;

/// Number of output lines shown, counted from the end.
const LINES: usize = 8;

/// Known facts about an interrupted call.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterruptedCall {
    pub known: String,
    pub last_output: Option<String>,
    pub ran_ms: Option<u64>,
}

/// Interrupted call about which the dialog asks.
struct InterruptedDialog {
    id: CallId,
}

impl DialogKind for InterruptedDialog {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        let ChoiceAction::Resolve(resolution) = act else { return None };
        Some(DialogAnswer::Resolve(self.id.clone(), resolution))
    }

    fn call(&self) -> Option<&CallId> {
        Some(&self.id)
    }

    fn identity(&self) -> String {
        self.id.to_string()
    }
}

pub(crate) fn interrupted_dialog(id: CallId, tool: &str, summary: &str, left: &InterruptedCall) -> Dialog {
    let act = |letter, confirm, resolution, words: &str, short| {
        choice(letter, confirm, ChoiceAction::Resolve(resolution), words.to_owned(), short)
    };
    let choices = vec![
        act('r', Confirm::LetterThenEnter, Resolution::Rerun, "run again (asks you first)", "run again"),
        act('s', Confirm::Letter, Resolution::Skip, "skip it", "skip"),
        act('t', Confirm::Letter, Resolution::TellModel, "tell the model that the outcome is unknown", "tell the model"),
    ];
    let reason = "aye exited while this was running; nothing is rerun automatically".to_owned();
    let what = if tool == "RunCommand" { "A command".to_owned() } else { format!("A call to {}", text::reveal_line(tool)) };
    let title = format!("{what} was interrupted: outcome unknown");
    Dialog::new(Box::new(InterruptedDialog { id }), title, reason, choices, Body::from_text(describe_call(summary, left)))
}

fn describe_call(summary: &str, left: &InterruptedCall) -> String {
    let mut words = format!("{}\n\n{}", text::reveal(summary), left.known);
    if let Some(ran) = left.ran_ms {
        let _ = write!(words, "\nrunning time: at least {}", format::seconds(ran / 1000));
    }
    let Some(output) = left.last_output.as_deref().filter(|output| !output.trim().is_empty()) else { return words };
    let output = text::clean(output);
    let lines: Vec<&str> = output.trim_end().split('\n').collect();
    let first = lines.len().saturating_sub(LINES);
    words += if first > 0 { "\n\nlast lines of output:" } else { "\n\noutput:" };
    for line in &lines[first..] {
        let _ = write!(words, "\n  {line}");
    }
    words
}
