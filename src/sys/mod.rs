//! The operating system: paths, atomic writes, processes, HTTP transport.

pub mod http;
pub mod instance;
