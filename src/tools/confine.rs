//! What holds a command of the tools: the policy's terms, as far as this system can keep them.

use super::tool::Settings;
use crate::protocol::{Outside, SandboxTier};
use crate::sys::sandbox::{Confinement, NetworkAccess, ResourceLimits, Strength, View};
use std::path::PathBuf;

/// What is known of it once, for all commands of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// What this system can do, or `Bare` where the policy says `off`.
    pub tier: SandboxTier,
    /// Whether a command may write in the workspace.
    pub writes: bool,
    /// The workspace and what was added to it.
    pub roots: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// What no command sees: aye's own places, credentials, what the policy blocks for reading.
    pub hidden: Vec<PathBuf>,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
    /// Where commands are previewed, or why they are not.
    pub previews: Result<PathBuf, String>,
}

impl Holding {
    /// Nothing holds a command.
    pub fn nothing() -> Self {
        Self {
            tier: SandboxTier::Bare,
            writes: true,
            roots: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            network: NetworkAccess::Open,
            limits: ResourceLimits::default(),
            previews: Err("the sandbox is off".to_owned()),
        }
    }
}

/// What one command needs beyond that.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub opens: Vec<Outside>,
}

impl Settings {
    /// How a command is held; `None` where nothing holds it.
    pub(super) fn confine(&self, wanted: &Wanted) -> Option<Confinement> {
        let Holding { tier, writes, roots, writable, hidden, network, limits, previews: _ } = self.holding.clone();
        let strength = match tier {
            SandboxTier::Bare => return None,
            SandboxTier::LandlockOnly => Strength::Landlock,
            SandboxTier::Guarded | SandboxTier::Preview => Strength::Namespaces,
        };
        let opened = wanted.opens.iter().filter_map(|opened| match opened {
            Outside::Write { path } => Some(PathBuf::from(path)),
            Outside::Host { .. } | Outside::Network => None,
        });
        Some(Confinement {
            strength,
            roots,
            view: if writes { View::Real } else { View::ReadOnly },
            writable: writable.into_iter().chain(opened).collect(),
            read_only: Vec::new(),
            reopened: Vec::new(),
            hidden,
            caches: Vec::new(),
            network: if wanted.opens.contains(&Outside::Network) { NetworkAccess::Open } else { network },
            limits,
        })
    }
}
