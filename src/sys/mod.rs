//! The operating system: paths, atomic writes, processes, HTTP transport.

pub mod file;
pub mod path;
pub mod process;
