//! What commands are held with here: the system looked at once, and what the policy makes of it.

use super::place::Place;
use crate::agent::SandboxStatus;
use crate::policy::{Enforcer, Sandbox, SandboxSetting};
use crate::protocol::SandboxTier;
use crate::sys::process::Helper;
use crate::sys::sandbox::{Probe, Tier, probe};
use crate::tools::{Caches, GitOutside, GlobalConfig, Ground, Holding, Machine, RepositoryTrust, Sources, Visible};
use std::path::{Path, PathBuf};

/// Where systems keep home directories.
const HOMES: [&str; 2] = ["/home", "/Users"];
/// Other homes whose credentials are hidden.
const MAX_HOMES: usize = 64;

/// Looked at once for a run; what the policy says may change meanwhile.
#[derive(Debug, Clone)]
pub struct Standing {
    ground: Ground,
    /// What this system lacks, why, and how to get it.
    missing: Vec<String>,
    homes: Vec<PathBuf>,
    home: PathBuf,
}

impl Standing {
    /// Tries it out, which takes some milliseconds.
    pub fn find(place: &Place, trust: RepositoryTrust) -> Self {
        Self::of(place, trust, probe(&Helper::default().program, &place.roots, &place.directories.data))
    }

    /// Where nothing is started: what the system could hold is not asked, which costs more than most calls. Should something be
    /// started all the same, it is as if the system could hold nothing.
    pub fn unasked(place: &Place) -> Self {
        Self::of(place, RepositoryTrust::Untrusted, Probe { tier: Tier::Bare, missing: Vec::new(), upper_base: None })
    }

    /// What was found out by trying.
    pub fn of(place: &Place, trust: RepositoryTrust, probe: Probe) -> Self {
        let data = &place.directories.data;
        let Probe { tier: found, missing, upper_base } = probe;
        let tier = tier(found);
        let why =
            || missing.first().cloned().unwrap_or_else(|| "copy-on-write previews are not available on this system".to_owned());
        let layers = upper_base.ok_or_else(why);
        let mut never: Vec<&Path> = vec![&place.home, data, &place.directories.config];
        never.extend(place.roots.iter().map(PathBuf::as_path));
        let variable = |name: &str| place.environment.get(name).map(str::to_owned);
        let caches = Caches::find(&place.home, variable, &never);
        let git = match trust {
            RepositoryTrust::Trusted | RepositoryTrust::NeverAsked => GitOutside::find(&place.workspace),
            RepositoryTrust::Untrusted => GitOutside::default(),
        };
        let git_config = Some(GlobalConfig::new(sources(place)));
        let homes = other_homes(&place.home);
        // Where nothing holds a command nothing is hidden from it.
        let visible = if tier == SandboxTier::Bare {
            Visible::default()
        } else {
            let own = [data.as_path(), place.directories.config.as_path()];
            Visible::find(&Machine { home: &place.home, homes: &homes, roots: &place.roots, own: &own, variable: &variable })
        };
        let ground = Ground { tier, layers, caches, git, visible, trust, git_config };
        Self { ground, missing, homes, home: place.home.clone() }
    }

    /// What a verdict may rely on.
    pub fn sandbox(&self) -> Sandbox {
        if self.ground.tier.holds() { Sandbox::Present } else { Sandbox::Absent }
    }

    /// The project got the person's yes.
    pub fn trust(&mut self, place: &Place) {
        self.ground.git = GitOutside::find(&place.workspace);
        self.ground.trust = RepositoryTrust::Trusted;
    }

    /// How commands are held under this policy.
    pub fn holding(&self, policy: &Enforcer) -> Holding {
        Holding::new(policy.held_by(&self.homes, jiff::Timestamp::now()), self.ground.clone())
    }

    /// In a question: what holds the command.
    pub fn words(&self, holding: &Holding) -> String {
        holding.words(&self.home)
    }

    /// For the status row, and what is missing, to be said once.
    pub fn status(&self, holding: &Holding, policy: &Enforcer) -> SandboxStatus {
        SandboxStatus { tier: holding.tier, words: holding.status(), missing: self.notice(policy) }
    }

    /// What is said once at the start, where the policy wants a sandbox and there is not all of it.
    fn notice(&self, policy: &Enforcer) -> Option<String> {
        if policy.sandbox() == SandboxSetting::Off || !policy.grants("Shell.Exec") {
            return None;
        }
        let why = self.missing.first().map(|why| format!(" ({why})")).unwrap_or_default();
        match self.ground.tier {
            SandboxTier::Bare => {
                Some(format!("this kernel has no sandbox{why}. Commands always ask. Run `aye doctor` for details"))
            }
            SandboxTier::LandlockOnly => Some(format!(
                "this kernel has no sandbox except Landlock{why}. Commands always ask. Run `aye doctor` \
                    for details"
            )),
            SandboxTier::Guarded => Some(format!(
                "commands run in the sandbox, but their changes cannot be previewed{why}. Run `aye doctor` for details"
            )),
            SandboxTier::Preview => None,
        }
    }
}

pub fn tier(found: Tier) -> SandboxTier {
    match found {
        Tier::Bare => SandboxTier::Bare,
        Tier::Rules => SandboxTier::LandlockOnly,
        Tier::Namespaces => SandboxTier::Guarded,
        Tier::Layers => SandboxTier::Preview,
    }
}

/// Where the user's git configuration is, and where aye keeps what commands are given of it.
fn sources(place: &Place) -> Sources {
    let absolute = |name: &str| place.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Sources {
        home: place.home.clone(),
        named: absolute("GIT_CONFIG_GLOBAL"),
        xdg: absolute("XDG_CONFIG_HOME"),
        workspace: place.workspace.clone(),
        directory: place.directories.data.join("git"),
    }
}

/// The home directories of others, as far as they can be seen.
fn other_homes(own: &Path) -> Vec<PathBuf> {
    let below = HOMES.into_iter().filter_map(|homes| std::fs::read_dir(homes).ok()).flatten().flatten();
    let all = below.map(|entry| entry.path()).chain([PathBuf::from("/root")]);
    all.filter(|home| home != own && home.is_dir()).take(MAX_HOMES).collect()
}
