//! Values of three keys: `approve` (whether the user approves a command or its effects), `unsandboxed` (whether a
//! command may run outside the sandbox), and `build_output` (where a command in a copy writes build output).

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

/// Location to which a command that runs in a copy writes build output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum BuildOutputMode {
    /// To the copy, and from there to the workspace once all other effects are decided.
    #[default]
    Layer,
    /// Directly to build directories that existed before.
    Direct,
}

/// Values of `build_output` in a policy file.
pub(crate) const BUILD_OUTPUTS: &[(&str, BuildOutputMode)] =
    &[("layer", BuildOutputMode::Layer), ("direct", BuildOutputMode::Direct)];
