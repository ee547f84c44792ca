//! The terminal screen: model, update, view.

pub mod highlight;
mod ink;
pub mod markdown;
pub mod theme;
