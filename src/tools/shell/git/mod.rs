//! Git in commands: their configuration, and protection from programs configured by a repository.

mod everywhere;
mod format;
mod global;
mod hardened;
mod notes;
mod programs;
mod repositories;

pub use everywhere::Everywhere;
pub use global::{GlobalConfig, Sources};
pub(in crate::tools) use hardened::{Hardening, Purpose, Strictness, names_git};
pub use repositories::RepositoryTrust;
