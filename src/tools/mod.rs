//! The tools: plan and run, one file each.

mod arguments;
mod cli_environment;
mod cli_platform;
mod cli_read;
mod cli_session;
mod cli_stop;
mod cli_write;
mod commands;
mod confine;
mod copy;
mod create_directory;
mod delete;
mod document;
mod edit_file;
mod file_change;
mod file_search;
mod glob;
mod grep;
mod habits;
mod http_request;
mod ignore_files;
mod list_directory;
mod markers;
mod move_path;
mod named_command;
mod paths;
mod read_file;
mod registry;
mod replacement;
mod repository;
mod router;
mod run_command;
mod run_files;
#[cfg(test)]
mod tests;
mod tool;
mod tree_change;
mod unread;
mod walk;
mod write_file;

pub use commands::Commands;
pub use confine::Holding;
pub use registry::built_in_names;
pub use router::{Router, actions_for, actions_now, known, name_of};
pub use tool::Settings;
