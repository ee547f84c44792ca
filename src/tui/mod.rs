//! The terminal screen: what the person sees and types.

mod approval;
mod changes;
mod composer;
mod diff;
mod display;
mod figures;
mod front;
mod glyphs;
mod guard;
mod highlight;
mod history;
mod host;
mod ink;
mod input;
mod markdown;
mod model;
mod models;
mod picker;
mod reading;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod screen;
mod status;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
mod update;
mod view;

pub use front::{
    BroughtFile, Ended, Front, Ground, Header, KeptAs, ModelAccess, Options, Outcome, Start, ThemeChoice, Trust, TrustAnswer,
};
pub use host::run;
pub use theme::Colours;
