//! Notes in the transcript, and output that the user asked for.

use crate::text;
use crate::tui::model::Model;
use crate::tui::transcript::{Kind, Tone};

/// Adds a note to the transcript, without control characters.
pub(crate) fn note(model: &mut Model, words: &str, tone: Tone) {
    model.transcript.push(Kind::Note { text: text::clean(words).trim_end().to_owned(), tone });
}

/// Shows output that the user requested and scrolls to its end; a pending dialog does not cover it until the user goes
/// there.
pub(crate) fn show_called_for(model: &mut Model, what: Kind) {
    model.transcript.push(what);
    model.transcript.follow();
    if model.dialogs.waits_for_idle() {
        model.dialogs.dismiss();
    }
}
