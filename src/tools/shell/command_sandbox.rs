//! The sandbox of commands: the rules of the policy, as far as this system can enforce them.

use super::caches::{Caches, ELSEWHERE, Leases};
use super::git::{GlobalConfig, RepositoryScan, RepositoryTrust};
use super::git_dirs::{GitOutside, RepositoryAccess};
pub(in crate::tools) use super::leftover_files::CommandSandbox;
use super::leftover_files::Unapproved;
use super::protected_scan::{ProtectedScan, SocketSearch};
use super::visible::Visible;
use crate::policy::{Cache, GitWrites, Network, SandboxRequirements, SandboxSetting, Unasked, changes_nothing, git_writes};
use crate::protocol::{Outside, SandboxTier};
use crate::sys::sandbox::{Confinement, NetworkAccess, ResourceLimits, Strength, View, is_served};
use crate::tools::settings::Settings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sandbox settings shared by all commands under a policy.
#[derive(Debug, Clone)]
pub struct SandboxPolicy {
    /// Sandbox level of this system, or `Bare` if the policy turns the sandbox off.
    pub tier: SandboxTier,
    /// Whether a command may write anywhere in the workspace.
    pub writes: bool,
    /// The workspace and additional directories.
    pub roots: Vec<PathBuf>,
    /// Additional writable paths, or all writable paths if `writes` is false.
    pub writable: Vec<PathBuf>,
    /// Read-only paths; missing ones cannot be created.
    pub read_only: Vec<PathBuf>,
    /// Paths that are read-only if they exist.
    pub read_only_if_there: Vec<PathBuf>,
    /// Writable paths inside read-only ones.
    pub reopened: Vec<PathBuf>,
    /// Paths hidden from all commands: aye's own directories, credentials, and paths that the policy blocks for reading.
    pub hidden: Vec<PathBuf>,
    /// Visible exceptions from the hidden and private paths.
    pub shown: Vec<PathBuf>,
    /// Paths hidden by default, and their visible exceptions.
    pub visible: Visible,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
    /// Directory for previews, or the reason why there are none.
    pub previews: Result<PathBuf, String>,
    pub cache: Cache,
    pub caches: Caches,
    /// Directory of the cache layers, if the system supports layers.
    pub layers: Option<PathBuf>,
    pub git: GitOutside,
    pub trust: RepositoryTrust,
    /// Global git configuration for commands.
    pub git_config: Option<GlobalConfig>,
    pub(in crate::tools) survey: Option<Arc<ProtectedScan>>,
    /// Search for all repositories of the workspace, if the project is not trusted.
    pub(in crate::tools) repositories: Option<Arc<RepositoryScan>>,
    /// Assumptions of the policy about a command that runs without approval.
    pub(in crate::tools) unasked: Option<Unasked>,
    /// Whether the command runs in a layer without approval.
    pub(in crate::tools) layered: bool,
    /// Whether the command is read-only only because a rule allowed it as a reading command; with approval it may write.
    pub(in crate::tools) narrowed: bool,
    /// Sandbox setting of the policy.
    pub(in crate::tools) setting: SandboxSetting,
    /// Rules of the policy that no sandbox can enforce.
    pub(in crate::tools) unheld: Vec<String>,
}

/// Writable part of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writes {
    Nothing,
    Part,
    All,
}

/// Properties of the system and the user that the policy does not know.
#[derive(Debug, Clone)]
pub struct HostCapabilities {
    pub tier: SandboxTier,
    /// Directory for layers, or the reason why there is none.
    pub layers: Result<PathBuf, String>,
    pub caches: Caches,
    /// Git directories outside the workspace; none if the project is not trusted.
    pub git: GitOutside,
    pub visible: Visible,
    pub trust: RepositoryTrust,
    pub git_config: Option<GlobalConfig>,
}

impl SandboxPolicy {
    /// Returns settings without a sandbox.
    pub fn nothing() -> Self {
        Self {
            tier: SandboxTier::Bare,
            writes: true,
            roots: Vec::new(),
            writable: Vec::new(),
            read_only: Vec::new(),
            read_only_if_there: Vec::new(),
            reopened: Vec::new(),
            hidden: Vec::new(),
            shown: Vec::new(),
            visible: Visible::default(),
            network: NetworkAccess::Open,
            limits: ResourceLimits::default(),
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

    /// Combines the policy with the properties of the system.
    pub fn new(held: SandboxRequirements, ground: HostCapabilities) -> Self {
        let repositories = (ground.trust != RepositoryTrust::Trusted).then(|| RepositoryScan::new(&held.roots));
        if held.sandbox == SandboxSetting::Off {
            return Self { trust: ground.trust, repositories, ..Self::nothing() };
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
        let searched = granted.map(SocketSearch::whole).chain(toolchains).collect();
        let survey = ground.tier.holds().then(|| ProtectedScan::new(held.roots.clone(), held.marks, searched));
        let mut hidden = held.hidden;
        hidden.extend(visible.hidden.iter().chain(&visible.masked).cloned());
        Self {
            tier: ground.tier,
            writes,
            roots: held.roots,
            writable,
            read_only: held.read_only,
            read_only_if_there: held.read_only_if_there,
            reopened: held.reopened,
            hidden,
            shown: visible.shown.iter().cloned().collect(),
            visible,
            network: match held.network {
                Network::Deny => NetworkAccess::Proxied,
                Network::Allow => NetworkAccess::Open,
            },
            limits: ResourceLimits {
                processes: held.limits.processes,
                memory_bytes: held.limits.memory_mb.map(megabytes),
                file_bytes: held.limits.file_mb.map(megabytes),
                cpu_seconds: held.limits.cpu_seconds,
            },
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

    /// Returns the files of the workspace whose names suggest secrets.
    ///
    /// # Errors
    ///
    /// Returns the reason if not all of them are known.
    pub(in crate::tools) fn secrets(&self) -> Result<Vec<PathBuf>, String> {
        let survey = self.survey.as_ref().ok_or("the workspace was not scanned")?;
        let found = survey.fresh();
        match &found.cut {
            None => Ok(found.secrets.clone()),
            Some(_) => Err("the workspace is too large to find all files with secrets".to_owned()),
        }
    }

    /// Returns whether the sandbox makes the whole workspace read-only.
    pub(in crate::tools) fn is_read_only_view(&self) -> bool {
        self.tier.holds() && self.writes_in_workspace() == Writes::Nothing
    }

    /// Returns the writable part of the workspace.
    pub(in crate::tools) fn writes_in_workspace(&self) -> Writes {
        let inside = |place: &PathBuf| self.roots.iter().any(|root| place.starts_with(root));
        match (self.writes, self.writable.iter().any(inside)) {
            (true, _) => Writes::All,
            (false, true) => Writes::Part,
            (false, false) => Writes::Nothing,
        }
    }

    /// Makes everything that exists read-only, as in plan mode.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self {
            writes: false,
            writable: Vec::new(),
            reopened: Vec::new(),
            setting: self.setting.min(SandboxSetting::ReadOnly),
            ..self
        }
    }

    /// Starts scanning the workspace on another thread.
    pub fn look_through(&self) {
        if let Some(survey) = &self.survey {
            survey.look_again();
        }
    }

    /// Describes the rules of the policy that are not enforced for commands. Waits for the scan of the workspace.
    pub fn unheld(&self) -> Vec<String> {
        let cut = self.survey.as_ref().and_then(|survey| survey.now().cut.clone());
        self.unheld.iter().cloned().chain(cut).collect()
    }

    /// Returns the text for the status row: `sandbox on: preview · net off`.
    pub fn status(&self) -> String {
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

    /// Returns the text for an approval prompt: `on: reads the workspace, programs and caches, writes ~/src/greeter and a
    /// private /tmp, …`.
    pub fn words(&self, home: &Path) -> String {
        let for_people = |path: &PathBuf| crate::text::abbreviate_home(path, home);
        let mut places: Vec<String> = if self.writes { self.roots.iter().map(for_people).collect() } else { Vec::new() };
        if self.setting == SandboxSetting::WorkspaceWrite {
            let inner = |place: &&PathBuf| !(self.writes && self.roots.iter().any(|root| place.starts_with(root)));
            places.extend(self.writable.iter().filter(inner).map(for_people));
        }
        let (can, none) = ("the command has all your permissions", "NONE on this kernel");
        match (self.setting, self.tier) {
            (SandboxSetting::Off, _) => format!("OFF by your policy: {can}"),
            (_, SandboxTier::Bare) => format!("{none}: {can}"),
            (_, SandboxTier::LandlockOnly) => {
                places.push("/tmp".to_owned());
                format!("NONE but Landlock on this kernel: writes only {}; otherwise {can}", places.join(", "))
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

/// System directories that may contain sockets of other programs.
const SEARCHED: [&str; 2] = ["/opt", "/usr/local"];

fn megabytes(count: u64) -> u64 {
    count.saturating_mul(1 << 20)
}

/// Additional needs of one command.
#[derive(Debug, Clone, Default)]
pub(in crate::tools) struct ExtraAccess {
    pub opens: Vec<Outside>,
    pub git: GitWrites,
    /// Whether the command only reads, so that it sees no repository around the workspace.
    pub reads: bool,
}

impl ExtraAccess {
    /// Returns the needs of a line that may run.
    pub(in crate::tools) fn by(line: &str, opens: Vec<Outside>) -> Self {
        Self { opens, git: git_writes(line), reads: changes_nothing(line) && !line.contains("git") }
    }
}

impl Settings {
    /// Prepares the sandbox of a command, including caches. Performs blocking I/O, and waits for the first scan.
    pub(in crate::tools) fn hold(&self, wanted: &ExtraAccess) -> CommandSandbox {
        let Some((mut confinement, must_not_appear)) = self.confined(wanted) else { return CommandSandbox::default() };
        let holding = &self.holding;
        let mut hold = CommandSandbox { must_not_appear, ..CommandSandbox::default() };
        if wanted.git != GitWrites::Makes && holding.writes_in_workspace() > Writes::Nothing {
            let unapproved = holding.unasked.is_some();
            let found = |survey: &Arc<ProtectedScan>| if unapproved { survey.fresh() } else { survey.now() };
            hold.survey = holding.survey.as_ref().map(|survey| (Arc::clone(survey), found(survey)));
            let reported_only = wanted.git != GitWrites::Nothing;
            hold.unapproved = unapproved.then_some(Unapproved { reported_only, since: None });
        }
        if confinement.strength == Strength::Namespaces && holding.setting == SandboxSetting::WorkspaceWrite {
            if holding.cache == Cache::Inherit {
                confinement.writable.extend(holding.caches.directories.iter().cloned());
            }
            if let Some(base) = &holding.layers {
                hold.leases = Leases::take(base, &holding.caches, holding.cache == Cache::Private, &holding.roots);
                confinement.caches.clone_from(&hold.leases.layers);
                confinement.substitutes.clone_from(&hold.leases.substitutes);
            }
            confinement.writable.extend(holding.caches.locks.iter().cloned());
        }
        hold.confinement = Some(confinement);
        hold
    }

    /// Adjusts the environment of a command; these variables override existing ones.
    pub(in crate::tools) fn adapt(&self, environment: &mut Vec<(OsString, OsString)>, confinement: Option<&Confinement>) {
        let Some(confinement) = confinement.filter(|confinement| confinement.strength == Strength::Namespaces) else { return };
        let mut own = vec![("TMPDIR", "/tmp")];
        // Caches cannot have layers, so downloads go to a directory that is removed with the command.
        if self.holding.cache == Cache::Private && confinement.caches.is_empty() {
            own.extend(ELSEWHERE);
        }
        environment.retain(|(name, _)| !own.iter().any(|(own, _)| name == own) && name != "TMP" && name != "TEMP");
        environment.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
        // A missing `.git` is blocked by an empty directory, which Go takes for a broken repository.
        if confinement.roots.iter().any(|root| root.join(".git").symlink_metadata().is_err()) {
            without_revision(environment, self.home.as_deref());
        }
        if let Some(config) = &self.holding.git_config {
            GlobalConfig::apply(config.directory().as_deref(), environment);
        }
    }

    /// Prepares the sandbox without caches; `None` without a sandbox.
    pub(in crate::tools) fn confine(&self, wanted: &ExtraAccess) -> Option<Confinement> {
        self.confined(wanted).map(|(confinement, _)| confinement)
    }

    /// Prepares the sandbox, and also returns the paths that must not exist afterwards.
    fn confined(&self, wanted: &ExtraAccess) -> Option<(Confinement, Vec<PathBuf>)> {
        let holding = &self.holding;
        let strength = match holding.tier {
            SandboxTier::Bare => return None,
            SandboxTier::LandlockOnly => Strength::Landlock,
            SandboxTier::Guarded | SandboxTier::Preview => Strength::Namespaces,
        };
        let opened = self.opened(wanted);
        let writable = wanted.opens.iter().filter_map(|opened| match opened {
            Outside::Write { path } => Some(PathBuf::from(path)),
            Outside::Host { .. } | Outside::Network | Outside::Read { .. } => None,
        });
        let readable = wanted.opens.iter().filter_map(|opened| match opened {
            Outside::Read { path } => Some(PathBuf::from(path)),
            Outside::Host { .. } | Outside::Network | Outside::Write { .. } => None,
        });
        let found = holding.survey.as_ref().map(|survey| survey.now()).unwrap_or_default();
        let shut = |place: &&PathBuf| {
            let made = wanted.git == GitWrites::Makes && place.ends_with(".git") && place.symlink_metadata().is_err();
            !opened.writable.contains(place) && !made
        };
        let mut read_only: Vec<PathBuf> = real(&holding.read_only, Missing::Kept);
        read_only.extend(real(&holding.read_only_if_there, Missing::LeftOut));
        let runs_code = found.runs_code.iter().filter(|_| wanted.git == GitWrites::Nothing);
        read_only.extend(found.read_only.iter().chain(runs_code).filter(|place| !holding.reopened.contains(place)).cloned());
        read_only = read_only.iter().filter(shut).cloned().collect();
        read_only.extend(opened.read_only);
        let mut hidden = real(&holding.hidden, Missing::LeftOut);
        hidden.extend(found.hidden.iter().cloned());
        // A served socket can be reached from all namespaces.
        hidden.extend(found.sockets.iter().filter(|socket| is_served(socket)).cloned());
        let mut shown = holding.shown.clone();
        shown.extend(holding.git_config.iter().filter_map(GlobalConfig::directory));
        shown.extend(readable);
        if !wanted.reads {
            shown.extend(holding.visible.around.iter().cloned());
        }
        let sorted = |mut places: Vec<PathBuf>| {
            places.sort();
            places.dedup();
            places
        };
        let confinement = Confinement {
            strength,
            roots: holding.roots.clone(),
            view: if holding.writes { View::Real } else { View::ReadOnly },
            writable: sorted(holding.writable.iter().cloned().chain(writable).chain(opened.writable).collect()),
            read_only: sorted(read_only),
            reopened: holding.reopened.clone(),
            hidden: sorted(hidden),
            shown: sorted(real(&shown, Missing::LeftOut)),
            links: holding.visible.links.iter().cloned().collect(),
            caches: Vec::new(),
            substitutes: Vec::new(),
            network: if wanted.opens.contains(&Outside::Network) { NetworkAccess::Open } else { holding.network },
            limits: holding.limits,
        };
        Some((confinement, opened.must_not_appear))
    }

    /// Returns the writable paths of repositories.
    fn opened(&self, wanted: &ExtraAccess) -> RepositoryAccess {
        let holding = &self.holding;
        if wanted.git == GitWrites::Nothing || holding.setting == SandboxSetting::ReadOnly {
            return RepositoryAccess::default();
        }
        let mut repositories: Vec<PathBuf> = holding.roots.iter().map(|root| root.join(".git")).collect();
        repositories.extend(holding.survey.iter().flat_map(|survey| survey.now().repositories.clone()));
        repositories.sort_by_key(|git| git.components().count());
        repositories.dedup();
        RepositoryAccess::of(&repositories).and(holding.git.opened())
    }
}

/// Makes Go omit the revision from programs, in addition to the user's own flags.
fn without_revision(environment: &mut Vec<(OsString, OsString)>, home: Option<&Path>) {
    const FLAGS: &str = "GOFLAGS";
    const NO_REVISION: &str = "-buildvcs=false";
    let given = environment.iter().find(|(name, _)| name == FLAGS).map(|(_, value)| value.to_string_lossy().into_owned());
    let kept = || {
        let text = std::fs::read_to_string(home?.join(".config/go/env")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("GOFLAGS=").map(str::to_owned))
    };
    let flags = given.or_else(kept).unwrap_or_default();
    if !flags.contains("-buildvcs") {
        environment.retain(|(name, _)| name != FLAGS);
        environment.push((FLAGS.into(), format!("{flags} {NO_REVISION}").trim_start().into()));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Kept,
    LeftOut,
}

/// Resolves these paths. Symlinks are followed; a dangling one protects nothing.
fn real(places: &[PathBuf], missing: Missing) -> Vec<PathBuf> {
    let one = |place: &PathBuf| match place.symlink_metadata() {
        Ok(_) => place.canonicalize().ok(),
        Err(_) if missing == Missing::LeftOut => None,
        // Resolve only the part that exists.
        Err(_) => {
            let above = place.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok())?;
            Some(above.canonicalize().ok()?.join(place.strip_prefix(above).ok()?))
        }
    };
    places.iter().filter_map(one).collect()
}
