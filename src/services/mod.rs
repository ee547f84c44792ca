//! Services beyond this machine, all optional and off by default.

pub(crate) mod backend_tools;
pub(crate) mod policy_bundles;
pub(crate) mod workspace;
