//! The sandbox for a single command, which consists of the policy rules that this system can enforce.

pub(in crate::tools) use super::leftover_files::CommandSandbox;
use super::leftover_files::UnapprovedFiles;
use crate::policy::{Cache, GitWrites, SandboxSetting, git_writes, is_read_only, reads_unnamed_files};
use crate::protocol::{SandboxAccess, SandboxTier};
use crate::sys::sandbox::{Backend, Confinement, NetworkAccess, View, is_served};
use crate::tools::sandbox::{ELSEWHERE, GlobalConfig, Leases, ProtectedScan, RepositoryAccess, Writes};
use crate::tools::settings::ToolSettings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Access that a command needs in addition to what all commands have.
#[derive(Debug, Clone, Default)]
pub(in crate::tools) struct ExtraAccess {
    pub opens: Vec<SandboxAccess>,
    pub git: GitWrites,
    /// Whether the command only reads. If so, it cannot see a repository that contains the workspace.
    pub reads: bool,
    /// Whether the command may read files that it does not name, as `grep -r` does. If it runs without approval because
    /// it only reads, it cannot see files with secrets.
    pub reads_unnamed: bool,
}

impl ExtraAccess {
    /// Returns the paths that are writable in addition.
    pub(in crate::tools) fn writable_paths(&self) -> impl Iterator<Item = PathBuf> {
        self.opens.iter().filter_map(|opened| match opened {
            SandboxAccess::Write { path } => Some(PathBuf::from(path)),
            SandboxAccess::Host { .. } | SandboxAccess::Network | SandboxAccess::Read { .. } => None,
        })
    }

    /// Returns the additional access that an allowed line needs.
    pub(in crate::tools) fn for_line(line: &str, opens: Vec<SandboxAccess>) -> Self {
        let reads = is_read_only(line) && !line.contains("git");
        Self { opens, git: git_writes(line), reads, reads_unnamed: reads_unnamed_files(line) }
    }
}

impl ToolSettings {
    /// Prepares a command's sandbox, including the caches. Performs blocking I/O, and waits for the first scan.
    pub(in crate::tools) fn prepare_sandbox(&self, wanted: &ExtraAccess) -> CommandSandbox {
        let Some((mut confinement, must_not_appear)) = self.build_confinement(wanted) else { return CommandSandbox::default() };
        let sandbox = &self.command.sandbox;
        let mut hold = CommandSandbox { must_not_appear, ..CommandSandbox::default() };
        if wanted.git != GitWrites::Makes && sandbox.writes_in_workspace() > Writes::Nothing {
            let unapproved = sandbox.unasked.is_some();
            let found = |survey: &Arc<ProtectedScan>| if unapproved { survey.wait_for_scan() } else { survey.now() };
            hold.survey = sandbox.survey.as_ref().map(|survey| (Arc::clone(survey), found(survey)));
            let reported_only = wanted.git != GitWrites::Nothing;
            hold.unapproved = unapproved.then_some(UnapprovedFiles { reported_only, since: None });
        }
        if confinement.strength == Backend::Namespaces && sandbox.setting == SandboxSetting::WorkspaceWrite {
            if sandbox.cache == Cache::Inherit {
                confinement.writable.extend(sandbox.caches.directories.iter().cloned());
            }
            if let Some(base) = &sandbox.layers {
                hold.leases = Leases::acquire(base, &sandbox.caches, sandbox.cache == Cache::Private, &sandbox.paths.roots);
                confinement.caches.clone_from(&hold.leases.layers);
                confinement.substitutes.clone_from(&hold.leases.substitutes);
            }
            confinement.writable.extend(sandbox.caches.locks.iter().cloned());
        }
        hold.confinement = Some(confinement);
        hold
    }

    /// Adjusts a command's environment. The new variables override existing ones.
    pub(in crate::tools) fn adapt(&self, environment: &mut Vec<(OsString, OsString)>, confinement: Option<&Confinement>) {
        let Some(confinement) = confinement.filter(|confinement| confinement.strength == Backend::Namespaces) else { return };
        let mut own = vec![("TMPDIR", "/tmp")];
        // Caches cannot have layers here, so downloads go to a directory that is removed with the command.
        if self.command.sandbox.cache == Cache::Private && confinement.caches.is_empty() {
            own.extend(ELSEWHERE);
        }
        environment.retain(|(name, _)| !own.iter().any(|(own, _)| name == own) && name != "TMP" && name != "TEMP");
        environment.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
        // A missing `.git` is blocked by an empty directory, which Go takes for a broken repository.
        if confinement.roots.iter().any(|root| root.join(".git").symlink_metadata().is_err()) {
            without_revision(environment, self.home.as_deref());
        }
        if let Some(config) = &self.command.sandbox.git_config {
            GlobalConfig::apply(config.directory().as_deref(), environment);
        }
    }

    /// Prepares the sandbox without caches. Returns `None` if there is no sandbox.
    pub(in crate::tools) fn confine(&self, wanted: &ExtraAccess) -> Option<Confinement> {
        self.build_confinement(wanted).map(|(confinement, _)| confinement)
    }

    /// Prepares the sandbox. Also returns the paths that must not exist once the command has ended.
    fn build_confinement(&self, wanted: &ExtraAccess) -> Option<(Confinement, Vec<PathBuf>)> {
        let sandbox = &self.command.sandbox;
        let strength = match sandbox.tier {
            SandboxTier::Bare => return None,
            SandboxTier::LandlockOnly => Backend::Landlock,
            SandboxTier::Guarded | SandboxTier::Preview => Backend::Namespaces,
        };
        let opened = self.writable_repositories(wanted);
        let writable = wanted.writable_paths();
        let readable = wanted.opens.iter().filter_map(|opened| match opened {
            SandboxAccess::Read { path, .. } => Some(PathBuf::from(path)),
            SandboxAccess::Host { .. } | SandboxAccess::Network | SandboxAccess::Write { .. } => None,
        });
        let found = sandbox.survey.as_ref().map(|survey| survey.now()).unwrap_or_default();
        let shut = |place: &&PathBuf| {
            let made = wanted.git == GitWrites::Makes && place.ends_with(".git") && place.symlink_metadata().is_err();
            !opened.writable.contains(place) && !made
        };
        let mut read_only: Vec<PathBuf> = resolve_paths(&sandbox.paths.read_only, MissingPaths::Kept);
        read_only.extend(resolve_paths(&sandbox.paths.read_only_if_there, MissingPaths::LeftOut));
        let runs_code = found.runs_code.iter().filter(|_| wanted.git == GitWrites::Nothing);
        read_only
            .extend(found.read_only.iter().chain(runs_code).filter(|place| !sandbox.paths.reopened.contains(place)).cloned());
        read_only = read_only.iter().filter(shut).cloned().collect();
        read_only.extend(opened.read_only);
        let mut hidden = resolve_paths(&sandbox.paths.hidden, MissingPaths::LeftOut);
        hidden.extend(found.hidden.iter().cloned());
        // A served socket can be reached from all namespaces.
        hidden.extend(found.sockets.iter().filter(|socket| is_served(socket)).cloned());
        let mut shown = sandbox.paths.shown.clone();
        shown.extend(sandbox.git_config.iter().filter_map(GlobalConfig::directory));
        shown.extend(readable);
        if !wanted.reads {
            shown.extend(sandbox.paths.visible.around.iter().cloned());
        }
        let sorted = |mut places: Vec<PathBuf>| {
            places.sort();
            places.dedup();
            places
        };
        let shown = sorted(resolve_paths(&shown, MissingPaths::LeftOut));
        let only_reads = sandbox.unasked.is_some_and(|unasked| unasked.as_reading);
        if only_reads && wanted.reads_unnamed && strength == Backend::Namespaces {
            let found = sandbox.survey.as_ref().map(|survey| survey.wait_for_scan()).unwrap_or_default();
            hidden.extend(found.secrets.iter().filter(|secret| !shown.contains(secret)).cloned());
        }
        let confinement = Confinement {
            strength,
            roots: sandbox.paths.roots.clone(),
            view: if sandbox.paths.writes { View::Real } else { View::ReadOnly },
            writable: sorted(sandbox.paths.writable.iter().cloned().chain(writable).chain(opened.writable).collect()),
            read_only: sorted(read_only),
            reopened: sandbox.paths.reopened.clone(),
            hidden: sorted(hidden),
            shown,
            links: sandbox.paths.visible.links.iter().cloned().collect(),
            caches: Vec::new(),
            substitutes: Vec::new(),
            network: if wanted.opens.contains(&SandboxAccess::Network) { NetworkAccess::Open } else { sandbox.network },
            limits: sandbox.limits,
        };
        Some((confinement, opened.must_not_appear))
    }

    /// Returns the repositories' paths to which the command may write.
    fn writable_repositories(&self, wanted: &ExtraAccess) -> RepositoryAccess {
        let sandbox = &self.command.sandbox;
        let is_read_only = self.command.git_is_read_only || sandbox.setting == SandboxSetting::ReadOnly;
        if wanted.git == GitWrites::Nothing || is_read_only {
            return RepositoryAccess::default();
        }
        let mut repositories: Vec<PathBuf> = sandbox.paths.roots.iter().map(|root| root.join(".git")).collect();
        repositories.extend(sandbox.survey.iter().flat_map(|survey| survey.now().repositories.clone()));
        repositories.sort_by_key(|git| git.components().count());
        repositories.dedup();
        RepositoryAccess::for_repositories(&repositories).merge(sandbox.git.all_access())
    }
}

/// Makes Go omit the revision from the programs that it builds, while retaining the user's own flags.
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
enum MissingPaths {
    Kept,
    LeftOut,
}

/// Resolves these paths, following symlinks. Dangling symlinks are ignored.
fn resolve_paths(places: &[PathBuf], missing: MissingPaths) -> Vec<PathBuf> {
    let one = |place: &PathBuf| match place.symlink_metadata() {
        Ok(_) => place.canonicalize().ok(),
        Err(_) if missing == MissingPaths::LeftOut => None,
        // Resolve only the part that exists.
        Err(_) => {
            let above = place.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok())?;
            Some(above.canonicalize().ok()?.join(place.strip_prefix(above).ok()?))
        }
    };
    places.iter().filter_map(one).collect()
}
