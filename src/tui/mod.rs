//! The terminal screen: model, update, view.

mod ink;
pub mod theme;
