//! Values of `approve`, whether the user approves a command or its effects, and of `unsandboxed`, whether a command may run
//! outside the sandbox.

/// Subject of an approval if no rule matches a command: the command before it runs, or its effects after it ran in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Approve {
    #[default]
    Command,
    Effects,
}

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
