//! The sandbox in which all commands run under a policy: its rules, and what the system supports.

use super::caches::Caches;
use super::git::{GlobalConfig, RepositoryScan, RepositoryTrust};
use super::git_dirs::GitOutside;
use super::protected_scan::{ProtectedScan, SocketSearch};
use super::visible::Visible;
use crate::policy::{BuildOutputMode, Cache, Network, SandboxRequirements, SandboxSetting, UnaskedConditions};
use crate::protocol::SandboxTier;
use crate::sys::sandbox::{NetworkAccess, ResourceLimits};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sandbox settings shared by all commands under a policy.
#[derive(Debug, Clone)]
pub(crate) struct SandboxPolicy {
    /// Sandbox level that this system supports, or `Bare` if the policy turns the sandbox off.
    pub tier: SandboxTier,
    pub paths: SandboxPaths,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
    pub build_output: BuildOutputMode,
    /// Directory for previews, or the reason why previews are not available.
    pub previews: Result<PathBuf, String>,
    pub cache: Cache,
    pub caches: Caches,
    /// Directory that contains the cache layers, if the system supports layers.
    pub layers: Option<PathBuf>,
    pub git: GitOutside,
    pub trust: RepositoryTrust,
    /// Global git configuration that commands use.
    pub git_config: Option<GlobalConfig>,
    pub(in crate::tools) survey: Option<Arc<ProtectedScan>>,
    /// Search for every repository in the workspace, if the project is not trusted.
    pub(in crate::tools) repositories: Option<Arc<RepositoryScan>>,
    /// Assumptions of the policy about commands that run without approval.
    pub(in crate::tools) unasked: Option<UnaskedConditions>,
    /// Whether the command runs in a layer before it is approved.
    pub(in crate::tools) layered: bool,
    /// Whether the command is read-only merely because a rule allowed it as a read-only command. With approval, it may
    /// write.
    pub(in crate::tools) narrowed: bool,
    /// The policy's sandbox setting.
    pub(in crate::tools) setting: SandboxSetting,
    /// Policy rules that the sandbox cannot enforce.
    pub(in crate::tools) unheld: Vec<String>,
}

/// Paths that commands see and write in the sandbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct SandboxPaths {
    /// Whether commands may write anywhere in the workspace.
    pub writes: bool,
    /// The workspace and any additional directories.
    pub roots: Vec<PathBuf>,
    /// Additional writable paths or, if `writes` is false, the only writable ones.
    pub writable: Vec<PathBuf>,
    /// Read-only paths. Those that do not exist cannot be created.
    pub read_only: Vec<PathBuf>,
    /// Paths that are read-only if they exist.
    pub read_only_if_there: Vec<PathBuf>,
    /// Writable paths inside read-only ones.
    pub reopened: Vec<PathBuf>,
    /// Paths hidden from all commands: aye's own directories, credentials, and paths that the policy blocks for
    /// reading.
    pub hidden: Vec<PathBuf>,
    /// Paths that are visible although they are inside hidden or private ones.
    pub shown: Vec<PathBuf>,
    /// Paths that are hidden by default, and the exceptions among them.
    pub visible: Visible,
}

impl SandboxPaths {
    /// Returns the paths without write access.
    fn read_only(self) -> Self {
        Self { writes: false, writable: Vec::new(), reopened: Vec::new(), ..self }
    }
}

/// Which part of the workspace is writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Writes {
    Nothing,
    Part,
    All,
}

/// Facts about the system and the user that do not come from the policy.
#[derive(Debug, Clone)]
pub(crate) struct HostCapabilities {
    pub tier: SandboxTier,
    /// Directory for layers, or the reason why there are no layers.
    pub layers: Result<PathBuf, String>,
    pub caches: Caches,
    /// Git directories outside the workspace. Empty if the project is not trusted.
    pub git: GitOutside,
    pub visible: Visible,
    pub trust: RepositoryTrust,
    pub git_config: Option<GlobalConfig>,
}

impl SandboxPolicy {
    /// Returns settings that apply no sandbox.
    pub(crate) fn unsandboxed() -> Self {
        Self {
            tier: SandboxTier::Bare,
            paths: SandboxPaths { writes: true, ..SandboxPaths::default() },
            network: NetworkAccess::Open,
            limits: ResourceLimits::default(),
            build_output: BuildOutputMode::Layer,
            previews: Err("the sandbox is off".to_owned()),
            cache: Cache::Inherit,
            caches: Caches::default(),
            layers: None,
            git: GitOutside::default(),
            trust: RepositoryTrust::default(),
            git_config: None,
            survey: None,
            repositories: None,
            unasked: None,
            layered: false,
            narrowed: false,
            setting: SandboxSetting::Off,
            unheld: Vec::new(),
        }
    }

    /// Returns the settings for a command that the user has allowed to run outside the sandbox.
    #[must_use]
    pub(in crate::tools) fn outside(&self) -> Self {
        let mut outside = Self { trust: self.trust, repositories: self.repositories.clone(), ..Self::unsandboxed() };
        outside.paths.roots.clone_from(&self.paths.roots);
        outside
    }

    /// Combines the policy with what the system supports.
    pub(crate) fn new(held: SandboxRequirements, ground: HostCapabilities) -> Self {
        let repositories = (ground.trust != RepositoryTrust::Trusted).then(|| RepositoryScan::new(&held.roots));
        if held.sandbox == SandboxSetting::Off {
            return Self { trust: ground.trust, repositories, ..Self::unsandboxed() };
        }
        let writes = held.is_whole() && held.sandbox == SandboxSetting::WorkspaceWrite;
        let mut writable = held.writable;
        if !writes {
            writable.extend(held.written);
        }
        let mut visible = ground.visible;
        ground.caches.directories.iter().chain(&ground.caches.locks).for_each(|cache| visible.show(cache));
        held.readable.iter().for_each(|place| visible.grant(place));
        let toolchains =
            visible.shown.iter().filter(|shown| !held.readable.contains(shown)).cloned().map(SocketSearch::toolchain);
        let granted = writable.iter().chain(&held.readable).cloned().chain(SEARCHED.iter().map(PathBuf::from));
        // Paths granted by the policy come first and are searched completely within the limit.
        let searched = granted.map(SocketSearch::entire).chain(toolchains).collect();
        let survey = ground.tier.is_enforcing().then(|| ProtectedScan::new(held.roots.clone(), held.marks, searched));
        let mut hidden = held.hidden;
        hidden.extend(visible.hidden.iter().chain(&visible.masked).cloned());
        Self {
            tier: ground.tier,
            paths: SandboxPaths {
                writes,
                roots: held.roots,
                writable,
                read_only: held.read_only,
                read_only_if_there: held.read_only_if_there,
                reopened: held.reopened,
                hidden,
                shown: visible.shown.iter().cloned().chain(held.plugin_skills).collect(),
                visible,
            },
            network: match held.network {
                Network::Deny => NetworkAccess::Proxied,
                Network::Allow => NetworkAccess::Open,
            },
            limits: ResourceLimits {
                processes: held.limits.processes,
                memory_bytes: held.limits.memory_mb.map(megabytes),
                file_bytes: held.limits.file_mb.map(megabytes),
                cpu_seconds: held.limits.cpu_seconds,
                layer_bytes: held.limits.layer_mb.map(megabytes),
            },
            build_output: held.build_output,
            previews: if ground.tier == SandboxTier::Preview {
                ground.layers.clone()
            } else {
                Err(ground.layers.clone().err().unwrap_or_else(|| "this system does not support copy-on-write views".to_owned()))
            },
            cache: held.cache,
            caches: ground.caches,
            layers: ground.layers.ok(),
            git: ground.git,
            trust: ground.trust,
            git_config: ground.git_config,
            survey,
            repositories,
            unasked: None,
            layered: false,
            narrowed: false,
            setting: held.sandbox,
            unheld: held.unheld,
        }
    }

    /// Returns the files in the workspace whose names suggest secrets.
    ///
    /// # Errors
    ///
    /// Returns the reason if not all of these files are known.
    pub(in crate::tools) fn secrets(&self) -> Result<Vec<PathBuf>, String> {
        let survey = self.survey.as_ref().ok_or("the workspace was not scanned")?;
        let found = survey.wait_for_scan();
        match &found.cut {
            None => Ok(found.secrets.clone()),
            Some(_) => Err("the workspace is too large to find all files with secrets".to_owned()),
        }
    }

    /// Returns whether a command that runs in a layer writes build directories directly.
    pub(in crate::tools) fn writes_build_output(&self) -> bool {
        self.layered && self.build_output == BuildOutputMode::Direct && self.trust == RepositoryTrust::Trusted
    }

    /// Returns whether the sandbox makes the whole workspace read-only.
    pub(in crate::tools) fn is_read_only_view(&self) -> bool {
        self.tier.is_enforcing() && self.writes_in_workspace() == Writes::Nothing
    }

    /// Returns which part of the workspace is writable.
    pub(in crate::tools) fn writes_in_workspace(&self) -> Writes {
        let inside = |place: &PathBuf| self.paths.roots.iter().any(|root| place.starts_with(root));
        match (self.paths.writes, self.paths.writable.iter().any(inside)) {
            (true, _) => Writes::All,
            (false, true) => Writes::Part,
            (false, false) => Writes::Nothing,
        }
    }

    /// Makes every existing path read-only, as in plan mode.
    #[must_use]
    pub(crate) fn read_only(self) -> Self {
        Self { paths: self.paths.read_only(), setting: self.setting.min(SandboxSetting::ReadOnly), ..self }
    }

    /// Starts a scan of the workspace on another thread.
    pub(crate) fn start_scan(&self) {
        if let Some(survey) = &self.survey {
            survey.start_scan();
        }
    }

    /// Describes the policy rules that are not enforced for commands. Waits for the first scan of the workspace.
    pub(crate) fn unenforceable_rules(&self) -> Vec<String> {
        let cut = self.survey.as_ref().and_then(|survey| survey.now().cut.clone());
        self.unheld.iter().cloned().chain(cut).collect()
    }

    /// Returns the text for the status row, such as `sandbox on: preview · net off`.
    pub(crate) fn status(&self) -> String {
        let tier = match (self.setting, self.tier) {
            (SandboxSetting::Off, _) => return "sandbox off".to_owned(),
            (_, SandboxTier::Bare) => return "sandbox none".to_owned(),
            (_, SandboxTier::LandlockOnly) => return "sandbox landlock only".to_owned(),
            (SandboxSetting::ReadOnly, _) => "read-only",
            (SandboxSetting::WorkspaceWrite, tier) => tier.as_str(),
        };
        let network = if self.network == NetworkAccess::Proxied { "off" } else { "on" };
        format!("sandbox on: {tier} · net {network}")
    }

    /// Returns the text for the approval prompt, such as `on: reads the workspace, programs and caches, writes
    /// ~/src/greeter and a private /tmp, …`.
    pub(crate) fn describe(&self, home: &Path) -> String {
        let for_people = |path: &PathBuf| crate::text::abbreviate_home(path, home);
        let mut places: Vec<String> =
            if self.paths.writes { self.paths.roots.iter().map(for_people).collect() } else { Vec::new() };
        if self.setting == SandboxSetting::WorkspaceWrite {
            let inner = |place: &&PathBuf| !(self.paths.writes && self.paths.roots.iter().any(|root| place.starts_with(root)));
            places.extend(self.paths.writable.iter().filter(inner).map(for_people));
        }
        let (can, none) = ("the command has all your permissions", "NONE on this kernel");
        match (self.setting, self.tier) {
            (SandboxSetting::Off, _) => format!("OFF by your policy: {can}"),
            (_, SandboxTier::Bare) => format!("{none}: {can}"),
            (_, SandboxTier::LandlockOnly) => {
                places.push("/tmp".to_owned());
                format!("NONE on this kernel except Landlock: commands write only to {}; otherwise {can}", places.join(", "))
            }
            (_, SandboxTier::Guarded | SandboxTier::Preview) => {
                let writes = if places.is_empty() { "only".to_owned() } else { format!("{} and", places.join(", ")) };
                let network = if self.network == NetworkAccess::Proxied { "off" } else { "OPEN" };
                format!(
                    "on: reads the workspace, programs and caches, writes {writes} a private /tmp, no other processes · network \
                     {network}"
                )
            }
        }
    }
}

/// System directories that may contain other programs' sockets.
const SEARCHED: [&str; 2] = ["/opt", "/usr/local"];

fn megabytes(count: u64) -> u64 {
    count.saturating_mul(1 << 20)
}
