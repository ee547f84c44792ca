//! Startup dialog about a session that is locked by another process.

use crate::tui::approval::{LockDialog, lock_dialog};
use crate::tui::interface::{ExitReason, LockAnswer, LockQuestion};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

pub(crate) fn ask(model: &mut UiModel, held: LockQuestion, now: u64) {
    forget(model);
    let focus = model.may_take_focus(now);
    model.dialogs.add(lock_dialog(held), focus, model.keys.last_text);
}

/// Removes the dialog because the session is now open in this process.
pub(crate) fn forget(model: &mut UiModel) {
    let last_text = model.keys.last_text;
    model.dialogs.forget(|panel| panel.kind.is::<LockDialog>(), last_text);
}

pub(crate) fn on_answer(model: &mut UiModel, held: LockQuestion, answer: LockAnswer, effects: &mut Vec<UiEffect>) {
    match answer {
        LockAnswer::ReadOnly => {}
        LockAnswer::TakeOver => {
            let text = format!("asked process {} to save and exit; the session opens here after that", held.pid);
            model.transcript.push(TranscriptEntryKind::Note { text, tone: NoteTone::Plain });
        }
        LockAnswer::Another => effects.push(UiEffect::Exit(ExitReason::Another)),
        LockAnswer::Quit => effects.push(UiEffect::Exit(ExitReason::Quit)),
    }
    // The answer is sent before the screen closes.
    effects.insert(0, UiEffect::Held(held, answer));
}
