//! How a shell line runs so that nothing of it outlives its end, or aye's.

mod capture;
mod environment;
mod run;
mod supervise;
#[cfg(test)]
mod tests;
mod tree;
mod wire;

pub use capture::{Captured, whole_start};
pub use environment::{Environment, command_environment};
pub use run::{End, Finished, Helper, Namespaces, ProcessError, Spec, run};
pub use supervise::{SUPERVISE, supervise_main};
