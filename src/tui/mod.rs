//! The terminal screen: what the person sees and types.

mod approval;
mod asking;
mod attached;
mod attention;
mod browse;
mod changes;
mod clipboard;
mod composer;
mod diff;
mod display;
mod dropped;
mod figures;
mod front;
mod glyphs;
mod guard;
mod help;
mod highlight;
mod history;
mod host;
mod inbox;
mod ink;
mod input;
mod keymap;
mod markdown;
#[cfg(feature = "fuzzing")]
pub mod measure;
mod menu;
mod model;
mod models;
mod onboarding;
#[cfg(test)]
mod outside;
mod pace;
mod palette;
mod picker;
mod plain;
mod reading;
mod rewind;
#[cfg(test)]
pub mod samples;
#[cfg(test)]
mod screen;
mod servers;
mod sessions;
mod status;
mod task;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
mod tree;
mod update;
mod view;
mod vim;
mod wires;

pub use clipboard::{Between, Clipboard};
pub use figures::tokens;
pub use front::{
    Ahead, BroughtFile, Editor, Ended, Front, Ground, Header, Held, HeldAnswer, KeptAs, KeyFile, ModelAccess, Next, Notices,
    Options, Outcome, Shown, Shows, Start, ThemeChoice, Trust, TrustAnswer,
};
pub use guard::{HELD_MS, Pace};
pub use highlight::on_let_go;
pub use host::run;
#[cfg(feature = "fuzzing")]
pub use input::inputs_in;
pub use keymap::problems as key_problems;
pub use onboarding::provider_of_key;
pub use plain::run as run_plain;
pub use terminal::{Emulator, columns, give_back_at_once, spare_contained};
pub use theme::Colours;
pub use transcript::exit_of;
pub use update::COMMANDS;
