//! Environment of the built binary: a scripted model, a terminal, a project on disk.

/// Path in the shared test material, which `build.rs` finds. Tests that use it are ignored if `cfg(aye_shared)` is not
/// set.
macro_rules! shared {
    ($path:literal) => {
        std::path::Path::new(env!("AYE_SHARED_DIR")).join($path)
    };
}
pub(crate) use shared;

mod editor;
mod object_store;
mod process;
mod project;
mod rpc;
mod server;
pub mod service;
#[cfg(target_os = "linux")]
pub mod story;
mod terminal;
pub mod texts;
#[cfg(target_os = "linux")]
pub mod trace;
mod wire;

pub use editor::Editor;
pub use object_store::{Fault, ObjectServer};
pub use process::{Events, Output, Running, processes_running, wait_until};
pub use project::Project;
pub use rpc::Rpc;
pub use server::{Answer, Gate, Request, Server};
pub use terminal::Terminal;

use std::time::Duration;

/// Maximum time to wait for an event that should occur soon. It is generous, because a busy machine is not a failure; a
/// passing test never waits this long.
pub const TIMEOUT: Duration = Duration::from_secs(180);
