//! First-time setup for every front end: detects, tests and saves.

pub(crate) mod approvals;
pub(crate) mod detect;
pub(crate) mod handler;
pub(crate) mod presets;
pub(crate) mod write;
