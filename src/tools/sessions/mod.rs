//! Tools that work with terminal sessions and background commands.

pub(in crate::tools) mod cli_environment;
pub(in crate::tools) mod cli_platform;
pub(in crate::tools) mod cli_read;
pub(in crate::tools) mod cli_session;
pub(in crate::tools) mod cli_stop;
pub(in crate::tools) mod cli_write;
