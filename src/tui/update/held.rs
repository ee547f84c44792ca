//! A session that another process has open: asked about before there is a start.

use crate::tui::approval::{Panel, Question};
use crate::tui::front::{Ended, Held, HeldAnswer};
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};

pub fn ask(model: &mut Model, held: Held, now: u64) {
    forget(model);
    let focus = model.may_take_focus(now);
    model.panels.add(Panel::held(held), focus, model.keys.last_text);
}

/// The session is there: nothing is left to ask.
pub fn forget(model: &mut Model) {
    let last_text = model.keys.last_text;
    model.panels.forget(|panel| matches!(panel.question, Question::Held(_)), last_text);
}

pub fn answered(model: &mut Model, held: Held, answer: HeldAnswer, effects: &mut Vec<Effect>) {
    match answer {
        HeldAnswer::ReadOnly => {}
        HeldAnswer::TakeOver => {
            let text = format!("process {} is asked to save and to end; then this session is opened here", held.pid);
            model.transcript.push(Kind::Note { text, tone: Tone::Plain });
        }
        HeldAnswer::Another => effects.push(Effect::Exit(Ended::Another)),
        HeldAnswer::Quit => effects.push(Effect::Exit(Ended::Quit)),
    }
    // It goes out before the screen does.
    effects.insert(0, Effect::Held(held, answer));
}
