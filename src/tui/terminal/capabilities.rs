//! What the terminal told of itself so far, and what follows from it.

use super::TerminalMode;
use super::emulator::Emulator;
use crate::tui::input::{ModeState, TerminalReply};

/// What is known of the terminal.
#[derive(Debug, Default)]
pub struct TerminalCapabilities {
    pub emulator: Emulator,
    /// Its own name for itself.
    pub name: String,
    /// It has answered all that it will.
    pub has_answered: bool,
    kitty: bool,
    modify: bool,
}

/// What an answer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapabilityEffect {
    Nothing,
    Push(TerminalMode),
    /// Frames are marked, or not.
    Synchronise(bool),
    /// The ground is light or dark now.
    Scheme {
        light: bool,
    },
    TrueColour,
}

impl TerminalCapabilities {
    pub fn new(emulator: Emulator) -> Self {
        Self { emulator, ..Self::default() }
    }

    pub fn hear(&mut self, answer: TerminalReply) -> CapabilityEffect {
        match answer {
            TerminalReply::Kitty if std::mem::replace(&mut self.kitty, true) => CapabilityEffect::Nothing,
            TerminalReply::Kitty => CapabilityEffect::Push(TerminalMode::Kitty),
            TerminalReply::ModifyOtherKeys => {
                self.modify = true;
                CapabilityEffect::Nothing
            }
            TerminalReply::Mode(2026, standing) => {
                CapabilityEffect::Synchronise(!matches!(standing, ModeState::Unknown | ModeState::AlwaysOff))
            }
            TerminalReply::Mode(2027, ModeState::Off) => CapabilityEffect::Push(TerminalMode::Clusters),
            TerminalReply::Mode(2031, ModeState::Off | ModeState::On) => CapabilityEffect::Push(TerminalMode::Schemes),
            TerminalReply::Mode(2048, ModeState::Off | ModeState::On) => CapabilityEffect::Push(TerminalMode::Sizes),
            TerminalReply::Mode(..) => CapabilityEffect::Nothing,
            TerminalReply::Scheme { light } => CapabilityEffect::Scheme { light },
            TerminalReply::TrueColour => CapabilityEffect::TrueColour,
            TerminalReply::Name(name) => {
                self.name = name;
                CapabilityEffect::Nothing
            }
            TerminalReply::Attributes => {
                let is_first = !std::mem::replace(&mut self.has_answered, true);
                let modifies = !self.kitty && (self.modify || self.emulator.may_modify_keys());
                if is_first && modifies { CapabilityEffect::Push(TerminalMode::ModifiedKeys) } else { CapabilityEffect::Nothing }
            }
        }
    }

    /// Whether Enter with shift or ctrl is known to arrive as that.
    pub fn tells_enter(&self) -> bool {
        self.kitty || self.modify
    }
}
