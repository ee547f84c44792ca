//! Services beyond this machine, all optional and off by default.

pub(crate) mod policy_bundles;
pub(crate) mod workspace;
