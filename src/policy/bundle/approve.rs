//! Value of `approve`: what the user approves of a command.

/// What the user approves if no rule matches a command: the command before it runs, or its effects after it ran in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Approve {
    #[default]
    Command,
    Effects,
}

/// Values of `approve` in a policy file.
pub const APPROVES: &[(&str, Approve)] = &[("command", Approve::Command), ("effects", Approve::Effects)];
