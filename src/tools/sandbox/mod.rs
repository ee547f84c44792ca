//! Sandbox rules, and the parts of the system and the workspace to which they apply: caches, repositories, protected
//! files, and visible system directories.

mod cache_budget;
mod caches;
mod git;
mod git_dirs;
mod policy;
mod protected_scan;
mod visible;

pub(in crate::tools) use cache_budget::bytes_below;
pub(crate) use cache_budget::{cache_use, prune_caches};
pub(crate) use caches::Caches;
pub(in crate::tools) use caches::{ELSEWHERE, Leases};
pub(crate) use git::{GitConfigPaths, GlobalConfig, RepositoryTrust};
pub(in crate::tools) use git::{GitPurpose, GitWorkspace, Hardening, Strictness, mentions_git};
pub(crate) use git_dirs::GitOutside;
pub(in crate::tools) use git_dirs::{RepositoryAccess, take_away};
pub(in crate::tools) use policy::Writes;
pub(crate) use policy::{HostCapabilities, SandboxPaths, SandboxPolicy};
pub(in crate::tools) use protected_scan::{ProtectedScan, ScanResult};
pub(crate) use visible::{SystemFacts, Visible};
