//! Determines which access the sandbox blocked for a command, from aye's proxy and from the command's output.

mod created_paths;
mod output_parser;
#[cfg(test)]
mod tests;

pub(in crate::tools) use created_paths::CreatedPaths;

use crate::protocol::SandboxAccess;
use crate::sys::path::{PathKind, resolve};
use crate::sys::sandbox::{Backend, Confinement, NetworkAccess, View};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::network::BlockedHosts;
use output_parser::{DenialReason, DeniedPath, WantedAccess};
use std::path::{Path, PathBuf};

/// Maximum number of paths in one approval.
const MAX: usize = 8;
/// Directories in the home directory that are too widely shared to be made visible for the sake of a single file.
const SHARED: &[&str] =
    &[".config", ".local", ".local/share", ".local/state", ".cache", "Library", "Library/Application Support"];
/// Directories that are private to each command or not available to any, so access to them is never offered.
const NEVER_OPENED: &[&str] = &["/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run", "/var/run"];

/// Access that was blocked for a command, which therefore failed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::tools) struct BlockedAccess {
    /// Access that can be allowed by an approval.
    pub outside: Vec<SandboxAccess>,
    /// Hosts that were blocked, with the reasons. Not all of them can be allowed.
    servers: Vec<String>,
    /// Servers to which the command tried to connect without the proxy.
    bypassed: Vec<String>,
    /// Paths in the workspace that the command could only read.
    pub only_read: Vec<PathBuf>,
    /// Whether the command ran read-only because a rule allowed it merely as a read-only command.
    narrowed: bool,
}

impl BlockedAccess {
    /// Determines the blocked access. `hosts` are the hosts that the proxy and the kernel denied, and `printed` is the
    /// output of the command, which ran in `cwd`.
    pub(in crate::tools) fn detect(
        printed: &[&str],
        cwd: &Path,
        hosts: BlockedHosts,
        confinement: &Confinement,
        settings: &ToolSettings,
    ) -> Self {
        Self::from_outputs(printed, hosts, &SandboxedCommand { confinement, settings, cwd, never: NEVER_OPENED })
    }

    fn from_outputs(printed: &[&str], hosts: BlockedHosts, held: &SandboxedCommand<'_>) -> Self {
        let offline = held.confinement.network == NetworkAccess::Proxied;
        let BlockedHosts { openable: mut outside, lines: servers, mut bypassed, needs_network } = hosts;
        let reports_failure = || printed.iter().any(|text| output_parser::reports_network_failure(text));
        if offline && (needs_network || (servers.is_empty() && reports_failure())) {
            outside.push(SandboxAccess::Network);
        }
        bypassed.truncate(MAX);
        let mut only_read: Vec<PathBuf> = Vec::new();
        let mut opens: Vec<PathBuf> = Vec::new();
        let mut shows: Vec<PathBuf> = Vec::new();
        for place in printed.iter().flat_map(|text| output_parser::denied_paths(text)) {
            match held.remedy(&place) {
                AccessMethod::Opens(path) if !opens.iter().any(|known| path.starts_with(known)) => {
                    opens.retain(|known| !known.starts_with(&path));
                    opens.push(path);
                }
                AccessMethod::OnlyRead(path) if !only_read.contains(&path) => only_read.push(path),
                AccessMethod::Shows(path) if !shows.iter().any(|known| path.starts_with(known)) => {
                    shows.retain(|known| !known.starts_with(&path));
                    shows.push(path);
                }
                AccessMethod::Opens(_) | AccessMethod::OnlyRead(_) | AccessMethod::Shows(_) | AccessMethod::Nothing => {}
            }
        }
        shows.retain(|shown| !opens.iter().any(|opened| shown.starts_with(opened)));
        outside.extend(
            shows
                .into_iter()
                .filter_map(|path| path.to_str().map(|path| SandboxAccess::Read { path: path.to_owned(), removes: false })),
        );
        outside.extend(
            opens.into_iter().filter_map(|path| path.to_str().map(|path| SandboxAccess::Write { path: path.to_owned() })),
        );
        outside.truncate(MAX);
        only_read.truncate(MAX);
        Self { outside, servers, bypassed, only_read, narrowed: false }
    }

    /// Determines which writes were blocked for a line that was allowed as read-only. Uses only `stderr`, because
    /// stdout may be the content of any file.
    pub(in crate::tools) fn detect_read_only(mut self, stderr: &str, cwd: &Path, confinement: &Confinement) -> Self {
        if !output_parser::reports_read_only(stderr) {
            return self;
        }
        // Other paths are guesses; most likely the command tried to write in the workspace.
        self.outside.retain(|place| !matches!(place, SandboxAccess::Write { .. }));
        let root = confinement.roots.iter().find(|root| cwd.starts_with(root)).and_then(|root| root.to_str());
        self.outside.extend(root.map(|root| SandboxAccess::Write { path: root.to_owned() }));
        (self.narrowed, self.only_read) = (true, Vec::new());
        self
    }

    /// Keeps only what the note says about attempts to connect without the proxy.
    pub(in crate::tools) fn without_offers(self) -> Self {
        Self { bypassed: self.bypassed, ..Self::default() }
    }

    /// Formats the note for the model. Returns `None` if no access was blocked.
    pub(in crate::tools) fn note(&self) -> Option<String> {
        let mut lines = Vec::new();
        if self.narrowed {
            lines.push(
                "[sandbox: this command ran in a read-only view of the workspace, because without approval the policy gives it \
                 only read access; nothing was written there. The user can approve running it once more with write access.]"
                    .to_owned(),
            );
        }
        if !self.only_read.is_empty() {
            let places: Vec<String> = self.only_read.iter().map(|path| format!("`{}`", path.display())).collect();
            lines.push(format!(
                "[sandbox: the policy gives commands read-only access to {}; nothing was written there]",
                places.join(", ")
            ));
        }
        if !self.bypassed.is_empty() {
            lines.push(format!("[sandbox: the command tried to connect without aye's proxy: {}]", self.bypassed.join(", ")));
        }
        let is_told_by_the_narrowing = self.narrowed && self.outside.len() == 1;
        if !self.outside.is_empty() && !is_told_by_the_narrowing {
            let what: Vec<String> = self.outside.iter().map(ToString::to_string).collect();
            let what = what.join(", ");
            lines.push(format!("[sandbox: blocked {what}; the user can allow exactly this for one run]"));
        } else if !self.servers.is_empty() {
            lines.push(format!("[sandbox: blocked {}; no approval can allow this]", self.servers.join(", ")));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// How access to a path can be allowed.
enum AccessMethod {
    /// This path can be made writable.
    Opens(PathBuf),
    /// This path is hidden by default and can be made visible.
    Shows(PathBuf),
    OnlyRead(PathBuf),
    Nothing,
}

/// A command's sandbox and working directory.
struct SandboxedCommand<'a> {
    confinement: &'a Confinement,
    settings: &'a ToolSettings,
    cwd: &'a Path,
    never: &'a [&'a str],
}

impl SandboxedCommand<'_> {
    fn remedy(&self, place: &DeniedPath) -> AccessMethod {
        let Ok(found) = resolve(&place.given, self.cwd, self.settings.home.as_deref()) else { return AccessMethod::Nothing };
        let below = |places: &[PathBuf]| places.iter().any(|place| found.real.starts_with(place));
        let Confinement { roots, view, writable, read_only, hidden, shown, caches, substitutes, strength, .. } = self.confinement;
        let depth = |places: &[PathBuf]| {
            let above = places.iter().filter(|place| found.real.starts_with(place));
            above.map(|place| place.components().count()).max().unwrap_or(0)
        };
        let (veil, closed): (Vec<PathBuf>, Vec<PathBuf>) =
            hidden.iter().cloned().partition(|place| self.settings.command.sandbox.paths.visible.hidden.contains(place));
        // Credentials, aye's own directories, and paths blocked by the policy.
        if depth(&closed) > depth(shown) {
            return AccessMethod::Nothing;
        }
        let is_hidden_by_default = depth(&veil) > 0 && ![roots, shown, writable].into_iter().any(|places| below(places));
        if below(roots) {
            // Paths visible in the sandbox are blocked only by the policy.
            let refused = place.why == DenialReason::ReadOnly && (*view == View::ReadOnly || below(read_only));
            return if refused { AccessMethod::OnlyRead(found.real) } else { AccessMethod::Nothing };
        }
        let own = self.never.iter().any(|place| found.real.starts_with(place));
        if substitutes.iter().any(|substitute| found.real.starts_with(&substitute.directory)) {
            return AccessMethod::Nothing;
        }
        if own || below(writable) || caches.iter().any(|cache| found.real.starts_with(&cache.directory)) {
            return AccessMethod::Nothing;
        }
        if is_hidden_by_default && *strength == Backend::Landlock && place.why == DenialReason::NoAccess {
            return self.access_to_hidden(&found.real, found.kind, false);
        }
        if let DenialReason::Missing { written } = place.why {
            return if is_hidden_by_default {
                self.access_to_hidden(&found.real, found.kind, written)
            } else {
                AccessMethod::Nothing
            };
        }
        // In a namespace, the kernel reports a read-only file system; missing permissions give another error.
        let is_there = !matches!(found.kind, PathKind::Missing);
        if place.why == DenialReason::NoAccess && *strength == Backend::Namespaces && is_there {
            return AccessMethod::Nothing;
        }
        match self.opens(&found.real, found.kind, place.wanted) {
            Some(path) if (self.settings.paths.may_open)(&path) && could_write(&path) => AccessMethod::Opens(path),
            Some(_) | None => AccessMethod::Nothing,
        }
    }

    /// Returns the access needed for an existing hidden path: to its directory, or only to the file itself if the
    /// directory is too broad. If a path is to be created, its directory must be writable.
    fn access_to_hidden(&self, real: &Path, kind: PathKind, written: bool) -> AccessMethod {
        let is_wide = |directory: &Path| self.is_too_wide(directory) || self.is_shared(directory);
        let parent = real.parent().filter(|parent| !is_wide(parent));
        let (path, opens) = match (kind, parent) {
            (PathKind::Missing, Some(parent)) if written && parent.is_dir() => (parent, true),
            (PathKind::Directory, _) if !is_wide(real) => (real, false),
            (PathKind::File { .. }, parent) => (parent.unwrap_or(real), false),
            _ => return AccessMethod::Nothing,
        };
        if opens && (self.settings.paths.may_open)(path) && could_write(path) {
            return AccessMethod::Opens(path.to_owned());
        }
        let may_be_shown = !opens && self.can_show(real) && self.can_show(path);
        if may_be_shown { AccessMethod::Shows(path.to_owned()) } else { AccessMethod::Nothing }
    }

    /// Returns whether this is a directory in which many programs store files.
    fn is_shared(&self, directory: &Path) -> bool {
        self.settings
            .home
            .as_deref()
            .and_then(|home| directory.strip_prefix(home).ok())
            .is_some_and(|below| SHARED.iter().any(|shared| below == Path::new(shared)))
    }

    /// Returns whether the policy allows the path to be made visible and the user can read it.
    fn can_show(&self, path: &Path) -> bool {
        (self.settings.paths.may_show)(path) && crate::sys::path::may_read(path)
    }

    /// Returns the smallest path that must be made writable.
    fn opens(&self, real: &Path, kind: PathKind, wanted: WantedAccess) -> Option<PathBuf> {
        let parent = existing(real.parent()?);
        let too_wide = self.is_too_wide(&parent);
        match (kind, wanted) {
            (PathKind::Missing, WantedAccess::Away) | (PathKind::Link { .. }, _) => (!too_wide).then_some(parent),
            (PathKind::Missing, _) if !too_wide => Some(parent),
            (PathKind::Missing, _) => {
                let first = parent.join(real.strip_prefix(&parent).ok()?.components().next()?);
                // A final slash means a directory, even if it does not exist.
                let directory = wanted == WantedAccess::Directory || first != real;
                Some(if directory { first.join("") } else { first })
            }
            (PathKind::Special, _) => None,
            (_, WantedAccess::Away) => (!too_wide).then_some(parent),
            (PathKind::Directory, _) => (!self.is_too_wide(real)).then(|| real.to_owned()),
            (PathKind::File { .. }, _) => Some(real.to_owned()),
        }
    }

    /// Returns whether the directory is too broad to be allowed, like the home directory or a parent of the workspace.
    fn is_too_wide(&self, directory: &Path) -> bool {
        let above = |place: &Path| place.starts_with(directory);
        let is_top = directory.components().count() <= 2;
        is_top || self.settings.home.as_deref().is_some_and(above) || self.confinement.roots.iter().any(|root| above(root))
    }
}

/// Returns the deepest ancestor of a path, including the path itself, that exists.
fn existing(path: &Path) -> PathBuf {
    path.ancestors().find(|level| level.symlink_metadata().is_ok()).unwrap_or(path).to_owned()
}

/// Returns whether the user can write to this path. An approval cannot grant access to other users' paths.
fn could_write(path: &Path) -> bool {
    crate::sys::path::may_write(&existing(path))
}
