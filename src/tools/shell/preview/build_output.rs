//! Build output: directories that a command may change without approval.

use super::ignored::Ignored;
use super::written_bytes::bytes_of;
use crate::protocol::{CountedEffects, RunsWhen};
use crate::sys::git_index::read_index;
use crate::sys::overlay::{Change, Changes, Kind};
use crate::sys::path::{open_file, read_link};
use crate::tools::executable_files::reader;
use crate::tools::paths::shown_in_one_line;
use crate::tools::sandbox::RepositoryTrust;
use crate::tools::settings::Settings;
use crate::tools::shell::unapproved_run::path_directories;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Names of directories that build tools create and delete freely. Never `.env*`, `.venv`, `node_modules` or a database.
const NAMES: &[&str] = &[
    "target",
    "build",
    "dist",
    "out",
    "obj",
    "_build",
    ".build",
    "cmake-build-debug",
    "cmake-build-release",
    "CMakeFiles",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".hypothesis",
    "htmlcov",
    "coverage",
    ".nyc_output",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".turbo",
    ".parcel-cache",
    ".cache",
    ".gradle",
    ".eslintcache",
    "__pycache__",
    ".zig-cache",
    "zig-out",
    "dist-newstyle",
    ".stack-work",
    "elm-stuff",
    "DerivedData",
    "test-results",
    ".dart_tool",
];
/// Name of the cache directory in `node_modules`.
const CACHE_OF_MODULES: &str = ".cache";
const CACHE_TAG: &str = "CACHEDIR.TAG";
const TAG_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
/// Size in bytes above which a git index is not read.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// The build output in one directory of the workspace.
pub(super) struct BuildOutput<'a> {
    changes: &'a Changes,
    settings: &'a Settings,
    /// Whether each directory qualifies.
    known: HashMap<PathBuf, bool>,
    /// Tracked paths of each repository; `None` if its index cannot be read.
    tracked: HashMap<PathBuf, Option<Vec<PathBuf>>>,
    found: BTreeMap<PathBuf, CountedEffects>,
}

impl<'a> BuildOutput<'a> {
    pub(super) fn new(changes: &'a Changes, settings: &'a Settings) -> Self {
        Self { changes, settings, known: HashMap::new(), tracked: HashMap::new(), found: BTreeMap::new() }
    }

    /// Counts a change if it is build output, and returns whether it is.
    pub(super) fn counts(&mut self, change: &Change, ignored: &mut Ignored<'_>) -> bool {
        let Some(directory) = self.directory_of(change, ignored) else { return false };
        let name = shown_in_one_line(&self.changes.old(&directory), self.settings);
        let none = CountedEffects { path: name, created: 0, changed: 0, deleted: 0, bytes: 0 };
        let counted = self.found.entry(directory).or_insert(none);
        counted.bytes += bytes_of(change);
        if change.kind() != Some(Kind::Directory) {
            match (change.before, change.after) {
                (None, _) => counted.created += 1,
                (Some(_), Some(_)) => counted.changed += 1,
                (Some(_), None) => counted.deleted += 1,
            }
        }
        true
    }

    pub(super) fn counted(self) -> impl Iterator<Item = CountedEffects> {
        self.found.into_values()
    }

    fn directory_of(&mut self, change: &Change, ignored: &mut Ignored<'_>) -> Option<PathBuf> {
        if self.settings.command.sandbox.trust != RepositoryTrust::Trusted {
            return None;
        }
        let directory = named(&change.path, change.kind() == Some(Kind::Directory))?;
        let is_known = self.known.get(&directory).copied();
        let qualifies = is_known.unwrap_or_else(|| self.qualifies(&directory, change, ignored));
        self.known.insert(directory.clone(), qualifies);
        (qualifies && self.may_be_kept(change, &directory)).then_some(directory)
    }

    /// Returns whether a directory met all conditions for unasked writing before the run.
    fn qualifies(&mut self, directory: &Path, change: &Change, ignored: &mut Ignored<'_>) -> bool {
        let real = self.changes.old(directory);
        let is_plain = match real.symlink_metadata() {
            Ok(data) => data.is_dir() && real.canonicalize().is_ok_and(|found| found == real),
            Err(_) => true,
        };
        let on_path = path_directories(self.settings).iter().any(|entry| entry.starts_with(&real));
        if !is_plain || on_path || reader(&real, self.settings).is_some_and(|reader| reader.when == RunsWhen::Opened) {
            return false;
        }
        let Some(repository) = real.ancestors().skip(1).find(|above| above.join(".git").symlink_metadata().is_ok()) else {
            return is_tagged(&real);
        };
        let repository = repository.to_owned();
        let top = ignored.directory_of(change);
        let is_ignored =
            top.is_some_and(|top| directory == top || directory.parent() == Some(&top) && directory.ends_with(CACHE_OF_MODULES));
        if !is_ignored || ignored.changed_since(directory, self.settings.since) {
            return false;
        }
        let tracked = self.tracked.entry(repository.clone()).or_insert_with(|| tracked(&repository));
        tracked.as_ref().is_some_and(|tracked| !tracked.iter().any(|path| repository.join(path).starts_with(&real)))
    }

    /// Returns whether this entry may be applied in it.
    fn may_be_kept(&self, change: &Change, directory: &Path) -> bool {
        if change.moved_from.as_ref().is_some_and(|from| !from.starts_with(directory)) {
            return false;
        }
        if reader(&self.changes.old(&change.path), self.settings).is_some_and(|reader| reader.when == RunsWhen::Opened) {
            return false;
        }
        match change.after.map(|after| after.kind) {
            None | Some(Kind::File | Kind::Directory) => true,
            Some(Kind::Special) => false,
            Some(Kind::Link) => {
                let says = read_link(&self.changes.new_content(&change.path));
                says.is_ok_and(|says| stays_in(&change.path, Path::new(&says), directory))
            }
        }
    }
}

/// Returns the outermost directory on the list that contains the path, or the path itself.
fn named(path: &Path, is_directory: bool) -> Option<PathBuf> {
    let count = path.components().count() - usize::from(!is_directory);
    let mut directory = PathBuf::new();
    for component in path.components().take(count) {
        let within_modules = directory.ends_with("node_modules");
        directory.push(component);
        let name = component.as_os_str().to_str()?;
        if within_modules && name != CACHE_OF_MODULES || name == ".venv" || name.starts_with(".env") {
            return None;
        }
        if NAMES.contains(&name) {
            return Some(directory);
        }
    }
    None
}

/// Returns whether a symlink at `path` with this target stays in the directory.
fn stays_in(path: &Path, says: &Path, directory: &Path) -> bool {
    let mut at: Vec<_> = path.parent().map_or_else(Vec::new, |parent| parent.components().collect());
    for component in says.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => at.push(component),
            Component::ParentDir if at.pop().is_some() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    at.into_iter().collect::<PathBuf>().starts_with(directory)
}

fn is_tagged(directory: &Path) -> bool {
    let Ok(file) = open_file(&directory.join(CACHE_TAG)) else { return false };
    let mut start = Vec::new();
    let read = file.take(TAG_SIGNATURE.len() as u64).read_to_end(&mut start);
    read.is_ok() && start == TAG_SIGNATURE
}

/// Returns the tracked paths of a repository from its index.
fn tracked(repository: &Path) -> Option<Vec<PathBuf>> {
    let git = repository.join(".git");
    let git = if git.is_dir() {
        git
    } else {
        let text = std::fs::read_to_string(&git).ok()?;
        repository.join(text.strip_prefix("gitdir:")?.trim())
    };
    let index = git.join("index");
    if index.symlink_metadata().is_err() {
        // Nothing has been added yet.
        return git.join("HEAD").symlink_metadata().is_ok().then(Vec::new);
    }
    let mut bytes = Vec::new();
    open_file(&index).ok()?.take(MAX_INDEX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_INDEX_BYTES {
        return None;
    }
    let mut paths = Vec::new();
    read_index(&bytes, |entry| paths.push(entry.path.to_owned()))?;
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_directories_are_known_by_their_names() {
        let of = |path: &str| named(Path::new(path), false).map(|found| found.display().to_string());
        assert_eq!(of("target/debug/build/x"), Some("target".to_owned()));
        assert_eq!(of("a/b/.pytest_cache/v"), Some("a/b/.pytest_cache".to_owned()));
        assert_eq!(of("node_modules/.cache/x"), Some("node_modules/.cache".to_owned()));
        for path in ["target", "src/a.rs", "node_modules/x/build/y", ".venv/build/x", ".env.d/build/x", "targets/x"] {
            assert_eq!(of(path), None, "{path}");
        }
        assert_eq!(named(Path::new("target"), true), Some("target".into()));
    }

    #[test]
    fn a_link_in_it_may_lead_only_into_it() {
        let stays = |path: &str, says: &str| stays_in(Path::new(path), Path::new(says), Path::new("target"));
        assert!(stays("target/a/link", "../b") && stays("target/link", "./c/d"));
        for (path, says) in
            [("target/link", "../src"), ("target/link", "/etc"), ("target/a/link", "../../x"), ("target/l", "../../../x")]
        {
            assert!(!stays(path, says), "{says}");
        }
    }
}
