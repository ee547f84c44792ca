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
mod supervisor;
#[cfg(target_os = "linux")]
pub mod tree_watch;
#[cfg(not(target_os = "linux"))]
mod unsupported_watch;
#[cfg(target_os = "linux")]
pub mod watch;

#[cfg(not(target_os = "linux"))]
pub use unsupported_watch::{tree_watch, watch};
