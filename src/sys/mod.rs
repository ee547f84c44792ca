//! The operating system: paths, atomic writes, processes, HTTP transport.

pub mod clipboard;
pub mod fatal;
pub mod file;
pub mod http;
pub mod ignored;
pub mod instance;
pub mod keyring;
pub mod landing;
pub mod layer;
pub mod locale;
pub mod memory;
pub mod opener;
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
