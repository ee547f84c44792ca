//! Value of `approve`: what the user approves of a command.

/// What is approved of a command that no rule decides: the command before it runs, or its effects after it ran in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Approve {
    #[default]
    Command,
    Effects,
}

/// The values of `approve`.
pub const APPROVES: &[(&str, Approve)] = &[("command", Approve::Command), ("effects", Approve::Effects)];
