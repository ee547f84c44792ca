//! Parts of the system that commands can see: system directories, toolchains, caches and the programs in `PATH`.
//! Everything else is hidden.

mod programs;
mod table;
#[cfg(test)]
mod tests;

use super::git_dirs::GitOutside;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use table::{CREDENTIAL_WORDS, HOST_KEYS, SETTINGS, SYSTEM, SYSTEM_LINKS, SYSTEM_MASKS, SYSTEM_PARTS, TOOLCHAINS, ToolchainHome};

/// Maximum number of symlinks to follow in one path.
const MAX_LINKS: usize = 40;
/// Size in bytes above which a settings file is not examined and remains hidden.
const MAX_SETTINGS_BYTES: u64 = 256 * 1024;
/// Directories that are private to each command and initially empty. Paths in them are made visible in the same way as
/// paths in hidden directories.
const OWN: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// The visible paths, determined once per session. All of them are real paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Visible {
    /// Directories that are hidden by default: home directories, and directories that are not part of the system.
    pub(in crate::tools) hidden: Vec<PathBuf>,
    /// Files and directories that are inside visible directories but contain credentials.
    pub(in crate::tools) masked: Vec<PathBuf>,
    /// Paths that are visible although they are inside hidden directories.
    pub(in crate::tools) shown: BTreeSet<PathBuf>,
    /// Symlinks inside hidden directories, with their targets.
    pub(in crate::tools) links: BTreeSet<(PathBuf, PathBuf)>,
    /// Repositories that contain the workspace. They are visible except to lines that only read.
    pub(in crate::tools) around: Vec<PathBuf>,
    /// Home directories and aye's own directories. An entry inside one never makes the directory itself visible.
    never: Vec<PathBuf>,
    /// Directories that contain the workspace, which are treated in the same way as those in `never`.
    roots: Vec<PathBuf>,
}

/// Facts about the system and the user.
pub(crate) struct SystemFacts<'a> {
    pub home: &'a Path,
    /// Other users' home directories.
    pub homes: &'a [PathBuf],
    pub roots: &'a [PathBuf],
    /// aye's own directories.
    pub own: &'a [&'a Path],
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Visible {
    /// Finds the paths that exist, which takes a few milliseconds at most.
    pub(crate) fn find(machine: &SystemFacts<'_>) -> Self {
        let homes = std::iter::once(machine.home).chain(machine.homes.iter().map(PathBuf::as_path));
        let homes: Vec<PathBuf> = homes.filter(|home| home.parent().is_some()).map(Path::to_owned).collect();
        let mut hidden: Vec<PathBuf> = if cfg!(target_os = "linux") { top_level() } else { Vec::new() };
        let uncovered: Vec<PathBuf> =
            homes.iter().filter(|home| !hidden.iter().any(|hidden| home.starts_with(hidden))).cloned().collect();
        hidden.extend(uncovered);
        // A workspace that contains a home directory is visible except for credentials.
        hidden.retain(|hidden| !machine.roots.iter().any(|root| hidden.starts_with(root)));
        let mut never = homes;
        never.extend(machine.own.iter().map(|own| (*own).to_owned()));
        let mut visible = Self { hidden, never, roots: machine.roots.to_vec(), ..Self::default() };
        if cfg!(target_os = "linux") {
            visible.system();
        }
        let variable = |name: &str| (machine.variable)(name).map(PathBuf::from).filter(|named| named.is_absolute());
        for toolchain in TOOLCHAINS {
            let named = (!toolchain.variable.is_empty()).then(|| variable(toolchain.variable)).flatten();
            let at_home = (!toolchain.at_home.is_empty()).then(|| machine.home.join(toolchain.at_home));
            for directory in named.into_iter().chain(at_home) {
                visible.toolchain(toolchain, &directory);
            }
        }
        for name in SETTINGS {
            let path = machine.home.join(name);
            if is_harmless(&path) {
                visible.show(&path);
            }
        }
        // A home directory may be reached through a symlink.
        if let Some(found) = variable("HOME").and_then(|home| resolve_links(&home)) {
            visible.links.extend(found.links);
        }
        visible.programs(machine);
        visible.repositories(machine.roots);
        visible
    }

    /// Shows the repository that contains a root, because build tools read settings and workspace members above the
    /// root.
    fn repositories(&mut self, roots: &[PathBuf]) {
        for root in roots {
            let git = GitOutside::find(root);
            git.directories().iter().for_each(|directory| self.show(directory));
            let level = root.ancestors().skip(1).find(|level| level.join(".git").symlink_metadata().is_ok());
            let level = level.filter(|_| root.join(".git").symlink_metadata().is_err());
            if let Some(level) = level.filter(|level| level.parent().is_some() && self.is_hidden(level))
                && !self.never.iter().any(|never| never.starts_with(level))
            {
                self.around.push(level.to_owned());
            }
        }
    }

    fn system(&mut self) {
        for place in SYSTEM_PARTS {
            self.show(Path::new(place));
        }
        for link in SYSTEM_LINKS.iter().map(Path::new) {
            if let Ok(target) = std::fs::read_link(link) {
                self.links.insert((link.to_owned(), target));
            }
        }
        let (directory, start, end) = HOST_KEYS;
        let keys = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_key = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(start) && !name.ends_with(end))
        };
        let masks = SYSTEM_MASKS.iter().map(PathBuf::from).chain(keys.filter(is_key));
        // Paths that the user cannot read need no mask, because commands cannot read them either.
        self.masked.extend(masks.filter(|place| crate::sys::path::may_read(place)));
    }

    /// Shows those parts of a toolchain's directory that are meant to be visible.
    fn toolchain(&mut self, toolchain: &ToolchainHome, directory: &Path) {
        if directory.symlink_metadata().is_err() {
            return;
        }
        if toolchain.shows.is_empty() {
            self.show(directory);
        }
        toolchain.shows.iter().for_each(|part| self.show(&directory.join(part)));
        let masks = toolchain.masks.iter().filter_map(|mask| directory.join(mask).canonicalize().ok());
        self.masked.extend(masks);
    }

    /// Shows a path, along with the symlinks that lead to it, unless the path is missing or too broad.
    pub(in crate::tools) fn show(&mut self, given: &Path) {
        let Some(found) = resolve_links(given) else { return };
        if self.can_show(&found.real) {
            if self.is_hidden(&found.real) {
                self.shown.insert(found.real);
            }
            self.lead(found.links);
        }
    }

    /// Shows a path that the policy grants, however broad it is.
    pub(in crate::tools) fn grant(&mut self, given: &Path) {
        let Some(found) = resolve_links(given) else { return };
        self.hidden.retain(|hidden| !hidden.starts_with(&found.real));
        self.masked.retain(|masked| *masked != found.real);
        if self.is_hidden(&found.real) || self.masked.iter().any(|masked| found.real.starts_with(masked)) {
            self.shown.insert(found.real);
        }
        self.links.extend(found.links);
    }

    /// Returns whether a real path is hidden merely because it is not part of the project.
    #[cfg(test)]
    pub(in crate::tools) fn is_hidden_by_default(&self, real: &Path) -> bool {
        self.hidden.iter().any(|hidden| real.starts_with(hidden)) && !self.shown.iter().any(|shown| real.starts_with(shown))
    }

    /// Records those symlinks that are in hidden directories.
    fn lead(&mut self, links: Vec<(PathBuf, PathBuf)>) {
        let hidden: Vec<_> = links.into_iter().filter(|(link, _)| self.is_hidden(link)).collect();
        self.links.extend(hidden);
    }

    fn can_show(&self, real: &Path) -> bool {
        real.parent().is_some() && !self.never.iter().chain(&self.roots).any(|never| never.starts_with(real))
    }

    /// Returns whether a path is in a hidden directory, or in a directory, such as `/tmp`, that is private to each
    /// command.
    fn is_hidden(&self, real: &Path) -> bool {
        let is_above = |hidden: &Path| real.starts_with(hidden);
        self.hidden.iter().any(|hidden| is_above(hidden)) || OWN.iter().map(Path::new).any(is_above)
    }
}

/// A resolved path, along with the symlinks that were followed.
struct ResolvedLinks {
    links: Vec<(PathBuf, PathBuf)>,
    real: PathBuf,
}

/// Resolves a path component by component. Returns `None` if a component does not exist.
fn resolve_links(given: &Path) -> Option<ResolvedLinks> {
    let names = |path: &Path| -> Vec<OsString> {
        let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut rest: VecDeque<OsString> = names(given).into();
    let (mut real, mut links) = (PathBuf::from("/"), Vec::new());
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        if !next.symlink_metadata().ok()?.is_symlink() {
            real = next;
            continue;
        }
        let target = std::fs::read_link(&next).ok()?;
        if links.len() >= MAX_LINKS {
            return None;
        }
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        names(&target).into_iter().rev().for_each(|name| rest.push_front(name));
        links.push((next, target));
    }
    Some(ResolvedLinks { links, real })
}

/// Returns the entries of `/` that are not system directories. Symlinks are omitted, because their visibility depends
/// on their targets.
fn top_level() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    let hidden = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let mut hidden: Vec<PathBuf> =
        hidden.filter(|entry| !SYSTEM.iter().any(|name| entry.file_name() == *name)).map(|entry| entry.path()).collect();
    hidden.sort();
    hidden
}

/// Returns whether a settings file contains no line that looks like a credential.
fn is_harmless(path: &Path) -> bool {
    let mut text = String::new();
    let mut read = || -> std::io::Result<usize> {
        let real = path.canonicalize()?;
        let file = crate::sys::path::open_file(&real)?;
        if !file.metadata()?.is_file() || file.metadata()?.len() > MAX_SETTINGS_BYTES {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        file.take(MAX_SETTINGS_BYTES).read_to_string(&mut text)
    };
    read().is_ok() && !text.lines().any(may_be_credential)
}

/// Returns whether a line contains a word that suggests a credential, or a URL with a user name.
fn may_be_credential(line: &str) -> bool {
    let small = line.to_lowercase();
    let host = small.split_once("://").map(|(_, rest)| rest.split(['/', '"', '\'', ' ']).next().unwrap_or(rest));
    CREDENTIAL_WORDS.iter().any(|word| small.contains(word)) || host.is_some_and(|host| host.contains('@'))
}
