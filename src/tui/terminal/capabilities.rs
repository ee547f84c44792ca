//! Capabilities reported by the terminal, and the actions that follow from them.

use super::TerminalMode;
use super::emulator::Emulator;
use crate::tui::input::{ModeState, TerminalReply};

/// Properties of the terminal that are known so far.
#[derive(Debug, Default)]
pub(crate) struct TerminalCapabilities {
    pub emulator: Emulator,
    /// Name that the terminal has reported.
    pub name: String,
    /// Whether the terminal has replied to all the queries that it supports.
    pub has_answered: bool,
    kitty: bool,
    modify: bool,
}

/// Action that follows from a reply by the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CapabilityEffect {
    Nothing,
    Push(TerminalMode),
    /// Turns synchronised updates on or off.
    Synchronise(bool),
    /// Adapts to the terminal's change to a light or dark background.
    Scheme {
        light: bool,
    },
    TrueColour,
}

impl TerminalCapabilities {
    pub(crate) fn new(emulator: Emulator) -> Self {
        Self { emulator, ..Self::default() }
    }

    pub(crate) fn apply_reply(&mut self, answer: TerminalReply) -> CapabilityEffect {
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

    /// Returns whether the terminal reports shift+enter and ctrl+enter as distinct from Enter.
    pub(crate) fn reports_modified_enter(&self) -> bool {
        self.kitty || self.modify
    }
}
