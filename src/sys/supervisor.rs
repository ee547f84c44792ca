//! Supervisor: the role in which aye starts itself to run and watch a command.

/// First argument that makes this program a helper.
pub(in crate::sys) const SUPERVISE: &str = "__supervise";
