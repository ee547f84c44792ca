//! The tools: plan and run, one file each.

mod arguments;
mod caches;
mod command_run;
mod confine;
mod copy;
mod create_directory;
mod delete;
mod denied;
mod document;
mod edit_file;
mod file_change;
mod file_search;
mod git_places;
mod glob;
mod grep;
mod habits;
mod http_request;
mod ignore_files;
mod list_directory;
mod markers;
mod move_path;
mod named_command;
mod network;
mod paths;
mod preview;
mod read_file;
mod registry;
mod replacement;
mod repository;
mod router;
mod run_command;
mod run_files;
mod survey;
#[cfg(test)]
mod tests;
mod tool;
mod tree_change;
mod unread;
mod walk;
mod write_file;

pub use caches::Caches;
pub use confine::{Ground, Holding};
pub use git_places::GitOutside;
pub use registry::built_in_names;
pub use router::{Router, actions_for, actions_now, known, name_of};
pub use tool::Settings;
