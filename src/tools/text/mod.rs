//! Tools that read and change the sections of a document.

mod data;
mod format;
mod limits;
mod markdown;
mod outline;
mod redacted_lines;
mod section;
mod splice;
pub(in crate::tools) mod text_inspect;
pub(in crate::tools) mod text_patch;

pub(in crate::tools) use limits::{draft_call, running};
