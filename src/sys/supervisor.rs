//! Supervisor: the role in which aye starts itself to run a command and watch it.

/// First argument that makes this program a helper.
pub(in crate::sys) const SUPERVISE: &str = "__supervise";
