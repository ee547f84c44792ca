//! What the terminal told of itself so far, and what follows from it.

use super::Push;
use super::emulator::Emulator;
use crate::tui::input::{Answer, Standing};

/// What is known of the terminal.
#[derive(Debug, Default)]
pub struct Told {
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
pub enum Then {
    Nothing,
    Push(Push),
    /// Frames are marked, or not.
    Synchronise(bool),
    /// The ground is light or dark now.
    Scheme {
        light: bool,
    },
    TrueColour,
}

impl Told {
    pub fn new(emulator: Emulator) -> Self {
        Self { emulator, ..Self::default() }
    }

    pub fn hear(&mut self, answer: Answer) -> Then {
        match answer {
            Answer::Kitty if std::mem::replace(&mut self.kitty, true) => Then::Nothing,
            Answer::Kitty => Then::Push(Push::Kitty),
            Answer::ModifyOtherKeys => {
                self.modify = true;
                Then::Nothing
            }
            Answer::Mode(2026, standing) => Then::Synchronise(!matches!(standing, Standing::Unknown | Standing::AlwaysOff)),
            Answer::Mode(2027, Standing::Off) => Then::Push(Push::Clusters),
            Answer::Mode(2031, Standing::Off | Standing::On) => Then::Push(Push::Schemes),
            Answer::Mode(2048, Standing::Off | Standing::On) => Then::Push(Push::Sizes),
            Answer::Mode(..) => Then::Nothing,
            Answer::Scheme { light } => Then::Scheme { light },
            Answer::TrueColour => Then::TrueColour,
            Answer::Name(name) => {
                self.name = name;
                Then::Nothing
            }
            Answer::Attributes => {
                let is_first = !std::mem::replace(&mut self.has_answered, true);
                let modifies = !self.kitty && (self.modify || self.emulator.may_modify_keys());
                if is_first && modifies { Then::Push(Push::ModifiedKeys) } else { Then::Nothing }
            }
        }
    }

    /// Whether Enter with shift or ctrl is known to arrive as that.
    pub fn tells_enter(&self) -> bool {
        self.kitty || self.modify
    }
}
