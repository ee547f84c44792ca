//! What commands see of this machine: system directories, toolchains, caches and the programs of `PATH`. All else is hidden.

mod programs;
mod table;
#[cfg(test)]
mod tests;

use super::git_places::GitOutside;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use table::{CREDENTIAL_WORDS, HOST_KEYS, SETTINGS, SYSTEM, SYSTEM_LINKS, SYSTEM_MASKS, SYSTEM_PARTS, TOOLCHAINS, Toolchain};

/// Links of one path that are followed.
const MAX_LINKS: usize = 40;
/// Larger settings are not looked through, and not shown.
const MAX_SETTINGS_BYTES: u64 = 256 * 1024;
/// Empty directories of the command's own, in which places are shown as in hidden ones.
const OWN: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// Found once for a session. All paths are real.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    /// Directories that are hidden by default: home directories, and what is no system directory.
    pub(in crate::tools) hidden: Vec<PathBuf>,
    /// Files and directories in what is seen that hold credentials.
    pub(in crate::tools) masked: Vec<PathBuf>,
    /// What is seen of the hidden directories.
    pub(in crate::tools) shown: BTreeSet<PathBuf>,
    /// Symlinks in them, and their targets.
    pub(in crate::tools) links: BTreeSet<(PathBuf, PathBuf)>,
    /// The repositories around the workspace, seen but by lines that only read.
    pub(in crate::tools) around: Vec<PathBuf>,
    /// Home directories and aye's own, which are never shown for what they hold.
    never: Vec<PathBuf>,
    /// Nor is what holds the workspace.
    roots: Vec<PathBuf>,
}

/// What is known of the machine.
pub struct Machine<'a> {
    pub home: &'a Path,
    /// Home directories of others.
    pub homes: &'a [PathBuf],
    pub roots: &'a [PathBuf],
    /// aye's own directories.
    pub own: &'a [&'a Path],
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Visible {
    /// Looks for what exists. Some milliseconds at most.
    pub fn find(machine: &Machine<'_>) -> Self {
        let homes = std::iter::once(machine.home).chain(machine.homes.iter().map(PathBuf::as_path));
        let homes: Vec<PathBuf> = homes.filter(|home| home.parent().is_some()).map(Path::to_owned).collect();
        let mut hidden: Vec<PathBuf> = if cfg!(target_os = "linux") { top_level() } else { Vec::new() };
        let uncovered: Vec<PathBuf> =
            homes.iter().filter(|home| !hidden.iter().any(|hidden| home.starts_with(hidden))).cloned().collect();
        hidden.extend(uncovered);
        // A workspace that holds a home directory is seen whole, but for the credentials in it.
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
        // A home directory may be reached by a link.
        if let Some(found) = variable("HOME").and_then(|home| follow(&home)) {
            visible.links.extend(found.links);
        }
        visible.programs(machine);
        visible.repositories(machine.roots);
        visible
    }

    /// The repository that a root lies in: build tools read settings and members of it above the root.
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
        // What this user cannot read, no command of theirs can.
        self.masked.extend(masks.filter(|place| crate::sys::path::may_read(place)));
    }

    /// Shows what the table says of a toolchain in this directory.
    fn toolchain(&mut self, toolchain: &Toolchain, directory: &Path) {
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

    /// Shows a place, and the links that lead to it. Nothing where it does not exist, or is too much to be shown.
    pub(in crate::tools) fn show(&mut self, given: &Path) {
        let Some(found) = follow(given) else { return };
        if self.may_be_shown(&found.real) {
            if self.is_hidden(&found.real) {
                self.shown.insert(found.real);
            }
            self.lead(found.links);
        }
    }

    /// Shows a place that a policy names, however much that is.
    pub(in crate::tools) fn grant(&mut self, given: &Path) {
        let Some(found) = follow(given) else { return };
        self.hidden.retain(|hidden| !hidden.starts_with(&found.real));
        self.masked.retain(|masked| *masked != found.real);
        if self.is_hidden(&found.real) || self.masked.iter().any(|masked| found.real.starts_with(masked)) {
            self.shown.insert(found.real);
        }
        self.links.extend(found.links);
    }

    /// Whether a real path is hidden only because it belongs to no project.
    #[cfg(test)]
    pub(in crate::tools) fn is_veiled(&self, real: &Path) -> bool {
        self.hidden.iter().any(|hidden| real.starts_with(hidden)) && !self.shown.iter().any(|shown| real.starts_with(shown))
    }

    /// Keeps the links that lie in hidden places.
    fn lead(&mut self, links: Vec<(PathBuf, PathBuf)>) {
        let hidden: Vec<_> = links.into_iter().filter(|(link, _)| self.is_hidden(link)).collect();
        self.links.extend(hidden);
    }

    fn may_be_shown(&self, real: &Path) -> bool {
        real.parent().is_some() && !self.never.iter().chain(&self.roots).any(|never| never.starts_with(real))
    }

    /// Whether it is in an empty directory of every command, and not in one of the workspace's.
    fn is_hidden(&self, real: &Path) -> bool {
        let is_above = |hidden: &Path| real.starts_with(hidden);
        self.hidden.iter().any(|hidden| is_above(hidden)) || OWN.iter().map(Path::new).any(is_above)
    }
}

/// A path with the links on the way.
struct Followed {
    links: Vec<(PathBuf, PathBuf)>,
    real: PathBuf,
}

/// Follows a path name by name. `None` where something is missing.
fn follow(given: &Path) -> Option<Followed> {
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
    Some(Followed { links, real })
}

/// What stands in `/` and is no system directory. A link there leads to what is hidden or seen by its own place.
fn top_level() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    let hidden = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let mut hidden: Vec<PathBuf> =
        hidden.filter(|entry| !SYSTEM.iter().any(|name| entry.file_name() == *name)).map(|entry| entry.path()).collect();
    hidden.sort();
    hidden
}

/// Whether settings hold nothing that looks like a credential.
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

/// Whether a line has a word for a credential, or an address with a user in it.
fn may_be_credential(line: &str) -> bool {
    let small = line.to_lowercase();
    let host = small.split_once("://").map(|(_, rest)| rest.split(['/', '"', '\'', ' ']).next().unwrap_or(rest));
    CREDENTIAL_WORDS.iter().any(|word| small.contains(word)) || host.is_some_and(|host| host.contains('@'))
}
