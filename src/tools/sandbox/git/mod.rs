//! Git in commands: its configuration, and protection from programs that a repository configures.

mod config_format;
mod global_config;
mod hardening;
mod programs;
mod repositories;
mod repository_scan;

pub(crate) use global_config::{GlobalConfig, Sources};
pub(in crate::tools) use hardening::{GitWorkspace, Hardening, Purpose, Strictness, mentions_git};
pub(crate) use repositories::RepositoryTrust;
pub(crate) use repository_scan::RepositoryScan;
