//! Runs shell lines and manages their processes. No process outlives the line or aye.

mod capture;
mod environment;
mod handshake;
mod landlock_only;
mod messages;
mod piped;
mod run;
mod shared_memory;
mod shell;
mod signal_queue;
mod supervise;
mod terminal;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use capture::{OutputCapture, whole_start};
pub(crate) use environment::{EnvironmentSelection, command_environment, describe_environment, program_environment};
pub(crate) use messages::TerminalSize;
pub(crate) use piped::{PipedProcess, start_piped};
#[cfg(test)]
pub(crate) use run::Namespaces;
#[cfg(test)]
pub(crate) use run::run;
pub(crate) use run::{
    CommandSpec, End, FinishedRun, Helper, OutputChunk, OutputReceivers, Printed, ProcessError, run_with_receivers, signal_name,
};
pub(crate) use shell::Shell;
pub(crate) use supervise::supervise_main;
pub(crate) use terminal::{Terminal, TerminalInput, TerminalResult, TerminalState, start_terminal};

use super::supervisor::SUPERVISE;

/// Returns whether this process was started as the helper of another aye process.
pub(crate) fn is_helper() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == SUPERVISE)
}
