//! What the terminal told of itself.

use crate::tui::front::ThemeChoice;
use crate::tui::input::Answer;
use crate::tui::model::{Effect, Model};
use crate::tui::terminal::{ASK_GROUND, Then};
use crate::tui::theme::Colours;

pub fn answered(model: &mut Model, answer: Answer, effects: &mut Vec<Effect>) {
    // The hints may name other keys now.
    let told = model.told.tells_enter();
    match model.told.hear(answer) {
        Then::Nothing => {}
        Then::Push(what) => effects.push(Effect::Push(what)),
        Then::Synchronise(synchronised) => effects.push(Effect::Synchronise(synchronised)),
        Then::Scheme { light } => {
            // Which colour it is exactly comes with the next answer.
            background(model, if light { (255, 255, 255) } else { (0, 0, 0) });
            effects.push(Effect::Write(ASK_GROUND.to_vec()));
        }
        Then::TrueColour if matches!(model.options.colours, Colours::Indexed256 | Colours::Sixteen) => {
            model.options.colours = Colours::True;
            model.choose_theme();
        }
        Then::TrueColour => {}
    }
    model.keys.kitty = model.told.tells_enter();
    model.dirty |= told != model.keys.kitty;
}

pub fn background(model: &mut Model, colour: (u8, u8, u8)) {
    if model.ground.replace(colour) == Some(colour) || model.options.theme != ThemeChoice::Auto {
        return;
    }
    let before = model.theme.name.clone();
    model.retheme();
    if before != model.theme.name {
        model.transcript.forget_layout();
        model.dirty = true;
    }
}

/// Without the reports of mode 2031 a change of colours is found out when the person comes back.
pub fn ask_again(model: &Model, effects: &mut Vec<Effect>) {
    if model.ground.is_some() && model.options.theme == ThemeChoice::Auto {
        effects.push(Effect::Write(ASK_GROUND.to_vec()));
    }
}
