//! Values of `approve`, whether the user approves a command or its effects, and of `unsandboxed`, whether a command may run
//! outside the sandbox.

pub use crate::protocol::Approve;

/// Values of `approve` in a policy file.
pub(crate) const APPROVES: &[(&str, Approve)] = &[("command", Approve::Command), ("effects", Approve::Effects)];

/// Whether the user can let one command run outside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Unsandboxed {
    Deny,
    #[default]
    Ask,
}

/// Values of `unsandboxed` in a policy file.
pub(crate) const UNSANDBOXED: &[(&str, Unsandboxed)] = &[("deny", Unsandboxed::Deny), ("ask", Unsandboxed::Ask)];
