//! Startup dialog about a session that another process has open.

use crate::tui::approval::{LockDialog, lock_dialog};
use crate::tui::interface::{ExitReason, LockAnswer, LockQuestion};
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};

pub(crate) fn ask(model: &mut Model, held: LockQuestion, now: u64) {
    forget(model);
    let focus = model.may_take_focus(now);
    model.dialogs.add(lock_dialog(held), focus, model.keys.last_text);
}

/// Removes the dialog, because the session is now open.
pub(crate) fn forget(model: &mut Model) {
    let last_text = model.keys.last_text;
    model.dialogs.forget(|panel| panel.kind.is::<LockDialog>(), last_text);
}

pub(crate) fn on_answer(model: &mut Model, held: LockQuestion, answer: LockAnswer, effects: &mut Vec<Effect>) {
    match answer {
        LockAnswer::ReadOnly => {}
        LockAnswer::TakeOver => {
            let text = format!("asked process {} to save and exit; the session opens here after that", held.pid);
            model.transcript.push(Kind::Note { text, tone: Tone::Plain });
        }
        LockAnswer::Another => effects.push(Effect::Exit(ExitReason::Another)),
        LockAnswer::Quit => effects.push(Effect::Exit(ExitReason::Quit)),
    }
    // Send the answer before the screen closes.
    effects.insert(0, Effect::Held(held, answer));
}
