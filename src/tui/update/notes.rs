//! Notes in the transcript, and output that the user requested.

use crate::protocol::{EventKind, EventText, EventTone, Problem};
use crate::text;
use crate::tui::model::UiModel;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Adds a note to the transcript, removing control characters from its text.
pub(crate) fn note(model: &mut UiModel, words: &str, tone: NoteTone) {
    model.transcript.push(TranscriptEntryKind::Note { text: text::clean(words).trim_end().to_owned(), tone });
}

/// Adds a note with the sentence about an event, followed by `hint`.
pub(crate) fn note_event(model: &mut UiModel, kind: &EventKind, hint: &str) {
    if let Some(EventText { tone, sentence, .. }) = EventText::new(kind) {
        let tone = match tone {
            EventTone::Info => NoteTone::Plain,
            EventTone::Warning => NoteTone::Warning,
        };
        note(model, &format!("{sentence}{hint}"), tone);
    }
}

/// Adds an error to the transcript, removing control characters from its text.
pub(crate) fn note_problem(model: &mut UiModel, problem: &Problem, tone: NoteTone) {
    let clean = |words: &str| text::clean(words).trim_end().to_owned();
    let all = |lines: &[String]| lines.iter().map(|line| clean(line)).collect();
    let problem = Problem {
        what: clean(&problem.what),
        why: problem.why.as_deref().map(clean),
        excerpt: all(&problem.excerpt),
        hints: all(&problem.hints),
    };
    model.transcript.push(TranscriptEntryKind::Problem { problem, tone });
}

/// Shows output that the user requested, and scrolls to its end. A dialog that is waiting to open stays closed until
/// the user returns to it, so it does not cover the output.
pub(crate) fn show_requested(model: &mut UiModel, what: TranscriptEntryKind) {
    model.transcript.push(what);
    model.transcript.follow_end();
    if model.dialogs.waits_for_idle() {
        model.dialogs.dismiss();
    }
}
