//! Git in commands: their configuration, and protection from programs configured by a repository.

mod config_format;
mod global_config;
mod hardening;
mod notes;
mod programs;
mod repositories;
mod repository_scan;

pub use global_config::{GlobalConfig, Sources};
pub(in crate::tools) use hardening::{Hardening, Purpose, Strictness, names_git};
pub(in crate::tools) use notes::git_notes;
pub use repositories::RepositoryTrust;
pub use repository_scan::RepositoryScan;
