//! Tools that open paths on the user's desktop.

pub(in crate::tools) mod handoff;
pub(in crate::tools) mod open_path;
pub(in crate::tools) mod reveal_in_os;
