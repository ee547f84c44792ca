//! Commands: their sandbox, blocked access, and effects.

pub(in crate::tools) mod amended;
pub(in crate::tools) mod apart;
pub(in crate::tools) mod blocking;
pub(in crate::tools) mod cache_budget;
pub(in crate::tools) mod caches;
pub(in crate::tools) mod checkpoint;
pub(in crate::tools) mod cleared;
pub(in crate::tools) mod command_run;
pub(in crate::tools) mod commands;
pub(in crate::tools) mod confine;
mod deleted;
pub(in crate::tools) mod denied;
pub(in crate::tools) mod git;
pub(in crate::tools) mod git_places;
pub(in crate::tools) mod launch;
mod left;
pub(in crate::tools) mod links;
pub(in crate::tools) mod named_command;
pub(in crate::tools) mod network;
pub(in crate::tools) mod preview;
pub(in crate::tools) mod run_command;
pub(in crate::tools) mod run_files;
mod search_path;
pub(in crate::tools) mod survey;
pub(in crate::tools) mod visible;
