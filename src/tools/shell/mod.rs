//! Commands: their sandbox, the access that it blocks, and their effects.

pub(in crate::tools) mod amendment;
pub(in crate::tools) mod checkpoint;
pub(in crate::tools) mod command_run;
pub(in crate::tools) mod command_sandbox;
pub(in crate::tools) mod delete_estimate;
pub(in crate::tools) mod executed_files;
pub(in crate::tools) mod file_hashes;
pub(in crate::tools) mod git_clean_backup;
pub(in crate::tools) mod git_notes;
pub(in crate::tools) mod launch;
mod leftover_files;
pub(in crate::tools) mod named_command;
pub(in crate::tools) mod network;
pub(in crate::tools) mod preview;
pub(in crate::tools) mod run_command;
pub(in crate::tools) mod sandbox_denials;
mod search_path;
pub(in crate::tools) mod symlink_check;
pub(in crate::tools) mod unapproved_run;
