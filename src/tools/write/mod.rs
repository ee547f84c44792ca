//! What changes files: each shown first, then written if nothing changed meanwhile.

pub(in crate::tools) mod amended;
pub(in crate::tools) mod append_file;
pub(in crate::tools) mod apply_patch;
pub(in crate::tools) mod copy;
pub(in crate::tools) mod create_directory;
pub(in crate::tools) mod delete;
pub(in crate::tools) mod document;
pub(in crate::tools) mod edit_file;
mod editor;
pub(in crate::tools) mod file_change;
mod large;
pub(in crate::tools) mod matching;
mod misfit;
pub(in crate::tools) mod move_path;
pub(in crate::tools) mod replacement;
pub(in crate::tools) mod repository;
mod sequence;
mod tail;
pub(in crate::tools) mod tree_change;
pub(in crate::tools) mod write_file;
