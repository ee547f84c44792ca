//! Combines the sandbox capabilities of the system, which are determined once per run, with the settings of the policy.

use super::context::AppContext;
use super::policy_layers::Policy;
use crate::agent::SandboxStatus;
use crate::policy::{Enforcer, Sandbox, SandboxSetting};
use crate::protocol::SandboxTier;
use crate::sys::process::Helper;
use crate::sys::sandbox::{Probe, Tier, probe};
use crate::tools::{
    Caches, GitConfigPaths, GitOutside, GlobalConfig, HostCapabilities, RepositoryTrust, SandboxPolicy, SystemFacts, Visible,
};
use std::path::{Path, PathBuf};

/// Directories that contain the home directories of users.
const HOMES: [&str; 2] = ["/home", "/Users"];
/// Maximum number of other users' home directories in which credentials are hidden.
const MAX_HOMES: usize = 64;

/// Sandbox capabilities of the system. They are determined once per run, whereas the policy may change.
#[derive(Debug, Clone)]
pub(crate) struct SandboxHost {
    ground: HostCapabilities,
    /// Missing capabilities, each with the reason and how to fix it.
    missing: Vec<String>,
    homes: Vec<PathBuf>,
    home: PathBuf,
}

impl SandboxHost {
    /// Probes the system for its capabilities, which takes a few milliseconds.
    pub(crate) fn find(app: &AppContext, trust: RepositoryTrust) -> Self {
        Self::from_probe(app, trust, probe(&Helper::default().program, &app.roots, &app.directories.data))
    }

    /// Returns an instance for calls that start no programs. The system is not probed, because that would take longer
    /// than most of these calls. If a program is started anyway, it is treated as unsandboxed.
    pub(crate) fn unprobed(app: &AppContext) -> Self {
        Self::from_probe(app, RepositoryTrust::Untrusted, Probe { tier: Tier::Bare, missing: Vec::new(), upper_base: None })
    }

    /// Determines the capabilities from the result of a probe.
    pub(crate) fn from_probe(app: &AppContext, trust: RepositoryTrust, probe: Probe) -> Self {
        let data = &app.directories.shared;
        let Probe { tier: found, missing, upper_base } = probe;
        let tier = tier(found);
        let why =
            || missing.first().cloned().unwrap_or_else(|| "copy-on-write previews are not available on this system".to_owned());
        let layers = upper_base.ok_or_else(why);
        let mut never: Vec<&Path> = vec![&app.home, data, &app.directories.config];
        never.extend(app.roots.iter().map(PathBuf::as_path));
        let variable = |name: &str| app.environment.get(name).map(str::to_owned);
        let caches = Caches::find(&app.home, variable, &never);
        let git = match trust {
            RepositoryTrust::Trusted | RepositoryTrust::NeverAsked => GitOutside::find(&app.workspace),
            RepositoryTrust::Untrusted => GitOutside::default(),
        };
        let git_config = Some(GlobalConfig::new(sources(app)));
        let homes = other_homes(&app.home);
        // Without a sandbox, nothing is hidden from commands.
        let visible = if tier == SandboxTier::Bare {
            Visible::default()
        } else {
            let own = [data.as_path(), app.directories.config.as_path()];
            Visible::find(&SystemFacts { home: &app.home, homes: &homes, roots: &app.roots, own: &own, variable: &variable })
        };
        let ground = HostCapabilities { tier, layers, caches, git, visible, trust, git_config };
        Self { ground, missing, homes, home: app.home.clone() }
    }

    /// Returns whether a sandbox is present, for use in verdicts.
    pub(crate) fn sandbox(&self) -> Sandbox {
        if self.ground.tier.is_enforcing() { Sandbox::Present } else { Sandbox::Absent }
    }

    /// Returns whether commands can run in a copy of the workspace.
    pub(crate) fn has_previews(&self) -> bool {
        self.ground.tier == SandboxTier::Preview
    }

    /// Updates the instance after the user has trusted the project.
    pub(crate) fn trust(&mut self, app: &AppContext) {
        self.ground.git = GitOutside::find(&app.workspace);
        self.ground.trust = RepositoryTrust::Trusted;
    }

    /// Returns the enforcer for a policy, using the context's mode and the sandbox of this system.
    pub(crate) fn enforcer(&self, app: &AppContext, policy: &Policy) -> Enforcer {
        let enforcer = app.enforcer(policy, self.sandbox(), app.mode);
        match self.ground.trust {
            RepositoryTrust::Trusted | RepositoryTrust::NeverAsked => enforcer,
            RepositoryTrust::Untrusted => enforcer.for_untrusted_project(),
        }
    }

    /// Returns the sandbox settings that result from this policy.
    pub(crate) fn sandbox_policy(&self, policy: &Enforcer) -> SandboxPolicy {
        SandboxPolicy::new(policy.sandbox_requirements(&self.homes, jiff::Timestamp::now()), self.ground.clone())
    }

    /// Describes the sandbox, for use in an approval prompt.
    pub(crate) fn describe(&self, sandbox: &SandboxPolicy) -> String {
        sandbox.describe(&self.home)
    }

    /// Returns the sandbox state for the status row, and a notice about missing capabilities.
    pub(crate) fn status(&self, sandbox: &SandboxPolicy, policy: &Enforcer) -> SandboxStatus {
        SandboxStatus { tier: sandbox.tier, words: sandbox.status(), missing: self.notice(policy) }
    }

    /// If the policy requires a sandbox that is not fully available, returns the notice to show at startup.
    fn notice(&self, policy: &Enforcer) -> Option<String> {
        if policy.sandbox() == SandboxSetting::Off || !policy.grants("Shell.Exec") {
            return None;
        }
        let why = self.missing.first().map(|why| format!(" ({why})")).unwrap_or_default();
        match self.ground.tier {
            SandboxTier::Bare => {
                Some(format!("this kernel has no sandbox{why}. aye asks before every command. Run `aye doctor` for details"))
            }
            SandboxTier::LandlockOnly => Some(format!(
                "this kernel has no sandbox except Landlock{why}. aye asks before every command. Run `aye doctor` \
                    for details"
            )),
            SandboxTier::Guarded => Some(format!(
                "commands run in the sandbox, but their changes cannot be previewed{why}. Run `aye doctor` for details"
            )),
            SandboxTier::Preview => None,
        }
    }
}

pub(crate) fn tier(found: Tier) -> SandboxTier {
    match found {
        Tier::Bare => SandboxTier::Bare,
        Tier::Rules => SandboxTier::LandlockOnly,
        Tier::Namespaces => SandboxTier::Guarded,
        Tier::Layers => SandboxTier::Preview,
    }
}

/// Returns the files of the user's git configuration, and the path of the filtered copy that commands use.
fn sources(app: &AppContext) -> GitConfigPaths {
    let absolute = |name: &str| app.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    GitConfigPaths {
        home: app.home.clone(),
        named: absolute("GIT_CONFIG_GLOBAL"),
        xdg: absolute("XDG_CONFIG_HOME"),
        workspace: app.workspace.clone(),
        directory: app.directories.data.join("git"),
    }
}

/// Returns other users' home directories, as far as they are visible to this user.
fn other_homes(own: &Path) -> Vec<PathBuf> {
    let below = HOMES.into_iter().filter_map(|homes| std::fs::read_dir(homes).ok()).flatten().flatten();
    let all = below.map(|entry| entry.path()).chain([PathBuf::from("/root")]);
    all.filter(|home| home != own && home.is_dir()).take(MAX_HOMES).collect()
}
