//! The operating system: paths, atomic writes, processes, HTTP transport.

pub mod file;
pub mod http;
pub mod instance;
pub mod layer;
pub mod path;
pub mod process;
pub mod programs;
pub mod proxy;
pub mod sandbox;
pub mod tree_watch;
pub mod watch;
