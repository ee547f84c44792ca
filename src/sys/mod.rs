//! Access to the operating system: paths, atomic writes, processes and HTTP transport.

pub(crate) mod allocator;
pub(crate) mod clipboard;
pub(crate) mod fatal_signals;
pub(crate) mod file;
pub(crate) mod git_index;
pub(crate) mod http;
pub(crate) mod ignore_files;
pub(crate) mod instance;
pub(crate) mod key_command;
pub(crate) mod keyring;
pub(crate) mod locale;
pub(crate) mod oauth_callback;
pub(crate) mod opener;
pub(crate) mod overlay;
pub(crate) mod parallel;
pub(crate) mod path;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod proxy;
pub(crate) mod sandbox;
pub(crate) mod secret_prompt;
pub(crate) mod signals;
pub(crate) mod socket;
mod supervisor;
pub(crate) mod timed_command;
#[cfg(target_os = "linux")]
pub(crate) mod tree_watch;
#[cfg(not(target_os = "linux"))]
mod unsupported_watch;
#[cfg(target_os = "linux")]
pub(crate) mod watch;

#[cfg(not(target_os = "linux"))]
pub use unsupported_watch::{tree_watch, watch};
