//! Hooks of a session. They run in the sandbox, with limits on time and output.

mod call_hooks;
mod command;
mod command_hooks;
mod layer_hooks;
mod runner;

pub(in crate::tools) use command_hooks::CommandHooks;
pub(in crate::tools) use layer_hooks::{ChangedText, notes};
pub(in crate::tools) use runner::HookRunner;
