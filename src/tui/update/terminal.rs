//! Effects of the capabilities reported by the terminal.

use crate::tui::input::TerminalReply;
use crate::tui::interface::ThemeChoice;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::terminal::{ASK_GROUND, CapabilityEffect};
use crate::tui::theme::ColourDepth;

pub(crate) fn on_reply(model: &mut UiModel, answer: TerminalReply, effects: &mut Vec<UiEffect>) {
    // Key hints may name other keys now.
    let told = model.screen.terminal.reports_modified_enter();
    match model.screen.terminal.apply_reply(answer) {
        CapabilityEffect::Nothing => {}
        CapabilityEffect::Push(what) => effects.push(UiEffect::Push(what)),
        CapabilityEffect::Synchronise(synchronised) => effects.push(UiEffect::Synchronise(synchronised)),
        CapabilityEffect::Scheme { light } => {
            // The next report contains the exact colour.
            background(model, if light { (255, 255, 255) } else { (0, 0, 0) });
            effects.push(UiEffect::Write(ASK_GROUND.to_vec()));
        }
        CapabilityEffect::TrueColour
            if matches!(model.options.terminal.colours, ColourDepth::Indexed256 | ColourDepth::Sixteen) =>
        {
            model.options.terminal.colours = ColourDepth::True;
            model.choose_theme();
        }
        CapabilityEffect::TrueColour => {}
    }
    model.keys.kitty = model.screen.terminal.reports_modified_enter();
    model.screen.dirty |= told != model.keys.kitty;
}

pub(crate) fn background(model: &mut UiModel, colour: (u8, u8, u8)) {
    if model.screen.background.replace(colour) == Some(colour) || model.options.theme != ThemeChoice::Auto {
        return;
    }
    let before = model.screen.theme.name.clone();
    model.retheme();
    if before != model.screen.theme.name {
        model.transcript.forget_layout();
        model.screen.dirty = true;
    }
}

/// Queries the background colour again when the window gains focus, for terminals that do not report changes (mode
/// 2031).
pub(crate) fn ask_again(model: &UiModel, effects: &mut Vec<UiEffect>) {
    if model.screen.background.is_some() && model.options.theme == ThemeChoice::Auto {
        effects.push(UiEffect::Write(ASK_GROUND.to_vec()));
    }
}
