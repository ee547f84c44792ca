//! Values of the keys `approve` (whether the user approves a command or its effects), `unsandboxed` (whether a command
//! may run outside the sandbox) and `build_output` (where a command that runs in a copy of the workspace writes its
//! build output).

pub use crate::protocol::Approve;

/// Values that a policy file accepts for `approve`.
pub(crate) const APPROVES: &[(&str, Approve)] = &[("command", Approve::Command), ("effects", Approve::Effects)];

/// Value of `unsandboxed`, which determines whether a command may run outside the sandbox with the user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Unsandboxed {
    Deny,
    #[default]
    Ask,
}

/// Values that a policy file accepts for `unsandboxed`.
pub(crate) const UNSANDBOXED: &[(&str, Unsandboxed)] = &[("deny", Unsandboxed::Deny), ("ask", Unsandboxed::Ask)];

/// Destination of the build output of a command that runs in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum BuildOutputMode {
    /// The copy. The output is applied to the workspace once all other effects have been approved or rejected.
    #[default]
    Layer,
    /// Build directories that already exist in the workspace, to which the output is written directly.
    Direct,
}

/// Values that a policy file accepts for `build_output`.
pub(crate) const BUILD_OUTPUTS: &[(&str, BuildOutputMode)] =
    &[("layer", BuildOutputMode::Layer), ("direct", BuildOutputMode::Direct)];
