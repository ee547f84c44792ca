//! Supervisor role, in which aye starts itself to run and watch a command.

/// First command-line argument with which this program acts as a helper.
pub(in crate::sys) const SUPERVISE: &str = "__supervise";
