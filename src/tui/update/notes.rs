//! Notes in the transcript, and output that the user requested.

use crate::protocol::Problem;
use crate::text;
use crate::tui::model::Model;
use crate::tui::transcript::{Kind, Tone};

/// Adds a note to the transcript, without control characters.
pub(crate) fn note(model: &mut Model, words: &str, tone: Tone) {
    model.transcript.push(Kind::Note { text: text::clean(words).trim_end().to_owned(), tone });
}

/// Adds an error to the transcript, without control characters.
pub(crate) fn note_problem(model: &mut Model, problem: &Problem, tone: Tone) {
    let clean = |words: &str| text::clean(words).trim_end().to_owned();
    let all = |lines: &[String]| lines.iter().map(|line| clean(line)).collect();
    let problem = Problem {
        what: clean(&problem.what),
        why: problem.why.as_deref().map(clean),
        excerpt: all(&problem.excerpt),
        hints: all(&problem.hints),
    };
    model.transcript.push(Kind::Problem { problem, tone });
}

/// Shows output that the user requested, and scrolls to its end. A pending dialog does not cover it until the user
/// returns to the dialog.
pub(crate) fn show_requested(model: &mut Model, what: Kind) {
    model.transcript.push(what);
    model.transcript.follow_end();
    if model.dialogs.waits_for_idle() {
        model.dialogs.dismiss();
    }
}
