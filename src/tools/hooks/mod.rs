//! A session's hooks. They run in the sandbox, and their run time and output are limited.

mod call_hooks;
mod command;
mod command_hooks;
mod condition;
mod layer_hooks;
mod runner;

pub(in crate::tools) use command_hooks::CommandHooks;
pub(in crate::tools) use layer_hooks::{ChangedText, notes};
pub(in crate::tools) use runner::HookRunner;
