//! The terminal screen: model, update, view.

pub mod diff;
pub mod highlight;
mod ink;
pub mod markdown;
#[cfg(test)]
pub mod screen;
pub mod theme;
