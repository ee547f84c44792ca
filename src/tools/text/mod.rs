//! Tools that work on the sections of a text.

mod allowed;
mod change;
mod data;
mod format;
mod markdown;
mod outline;
mod section;
pub(in crate::tools) mod text_inspect;
pub(in crate::tools) mod text_patch;
mod visible;

pub use allowed::TextTools;
pub(in crate::tools) use allowed::{drafted, running};
