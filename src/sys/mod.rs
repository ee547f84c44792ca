//! The operating system: paths, atomic writes, processes, HTTP transport.

pub mod allocator;
pub mod clipboard;
pub mod fatal_signals;
pub mod file;
pub mod git_index;
pub mod http;
pub mod ignore_files;
pub mod instance;
pub mod keyring;
pub mod locale;
pub mod oauth_callback;
pub mod opener;
pub mod overlay;
pub mod path;
pub mod process;
pub mod programs;
pub mod proxy;
pub mod sandbox;
pub mod secret_prompt;
pub mod signals;
pub mod socket;
pub mod tree_watch;
pub mod watch;
