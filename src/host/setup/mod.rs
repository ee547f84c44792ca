//! First-time setup for every front end: detects, tests and saves.

pub mod detect;
pub mod handler;
pub mod presets;
pub mod write;
