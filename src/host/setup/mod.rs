//! First-time setup for all front ends, which detects, tests and saves the user's choices.

pub(crate) mod approvals;
pub(crate) mod detect;
pub(crate) mod handler;
pub(crate) mod presets;
pub(crate) mod write;
