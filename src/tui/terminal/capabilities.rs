//! Capabilities reported by the terminal, and the resulting actions.

use super::TerminalMode;
use super::emulator::Emulator;
use crate::tui::input::{ModeState, TerminalReply};

/// Known properties of the terminal.
#[derive(Debug, Default)]
pub(crate) struct TerminalCapabilities {
    pub emulator: Emulator,
    /// Name reported by the terminal.
    pub name: String,
    /// Whether the terminal has sent all its replies.
    pub has_answered: bool,
    kitty: bool,
    modify: bool,
}

/// Action after a reply from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CapabilityEffect {
    Nothing,
    Push(TerminalMode),
    /// Turn synchronised updates on or off.
    Synchronise(bool),
    /// The terminal changed to a light or dark background.
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

    /// Returns whether the terminal distinguishes shift+enter and ctrl+enter from Enter.
    pub(crate) fn reports_modified_enter(&self) -> bool {
        self.kitty || self.modify
    }
}
