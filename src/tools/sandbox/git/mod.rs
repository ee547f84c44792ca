//! Git in commands: its configuration, and protection against programs that a repository configures.

mod config_format;
mod global_config;
mod hardening;
mod programs;
mod repositories;
mod repository_scan;

pub(crate) use global_config::{GitConfigPaths, GlobalConfig};
pub(in crate::tools) use hardening::{GitPurpose, GitWorkspace, Hardening, Strictness, mentions_git};
pub(crate) use repositories::RepositoryTrust;
pub(crate) use repository_scan::RepositoryScan;
