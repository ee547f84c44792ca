//! Build output directories: the names that build tools use, and the conditions under which a command may write to such
//! a directory without approval.

use crate::protocol::RunsWhen;
use crate::sys::git_index::read_index;
use crate::sys::path::open_file;
use crate::tools::executable_files::reader;
use crate::tools::ignored::IgnoreRules;
use crate::tools::settings::ToolSettings;
use crate::tools::shell::unapproved_run::path_directories;
use std::collections::{HashMap, VecDeque};
use std::fs::DirEntry;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Names of directories that build tools freely create and delete. `.env*`, `.venv`, `node_modules` and databases are
/// never among them.
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
/// Name of the cache directory inside `node_modules`.
const CACHE_OF_MODULES: &str = ".cache";
const CACHE_TAG: &str = "CACHEDIR.TAG";
const TAG_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
/// Size in bytes above which a git index is not read.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Maximum depth below the workspace to which existing build directories are searched for.
const MAX_DEPTH: usize = 4;
/// Maximum number of directories to list during the search.
const MAX_LISTED: usize = 1_000;

/// Build directories below one root of the workspace.
pub(super) struct BuildDirectories<'a> {
    root: &'a Path,
    settings: &'a ToolSettings,
    /// Directories that have been checked, with whether they qualify.
    known: HashMap<PathBuf, bool>,
    /// Tracked paths in each repository, or `None` if its index cannot be read.
    tracked: HashMap<PathBuf, Option<Vec<PathBuf>>>,
}

impl<'a> BuildDirectories<'a> {
    pub(super) fn new(root: &'a Path, settings: &'a ToolSettings) -> Self {
        Self { root, settings, known: HashMap::new(), tracked: HashMap::new() }
    }

    /// Returns whether a directory, given relative to the root, met all conditions for being written to without
    /// approval before the command ran.
    pub(super) fn qualifies(&mut self, directory: &Path, ignored: &mut IgnoreRules<'_>) -> bool {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let qualifies = self.meets_conditions(directory, ignored);
        self.known.insert(directory.to_owned(), qualifies);
        qualifies
    }

    fn meets_conditions(&mut self, directory: &Path, ignored: &mut IgnoreRules<'_>) -> bool {
        let real = self.root.join(directory);
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
        let is_cache = |top: &Path| directory.parent() == Some(top) && directory.ends_with(CACHE_OF_MODULES);
        let is_ignored = ignored.outermost(directory).is_some_and(|top| directory == top || is_cache(&top));
        if !is_ignored || ignored.changed_since(directory, self.settings.session.since) {
            return false;
        }
        let tracked = self.tracked.entry(repository.clone()).or_insert_with(|| tracked_paths(&repository));
        tracked.as_ref().is_some_and(|tracked| !tracked.iter().any(|path| repository.join(path).starts_with(&real)))
    }
}

/// Existing directories that have the name of a build directory, found before the search reached its limit.
#[derive(Debug, Default)]
pub(super) struct FoundDirectories {
    /// Paths of the directories relative to the root.
    pub directories: Vec<PathBuf>,
    /// Whether the search was able to list every directory down to its maximum depth.
    pub is_whole: bool,
}

/// Searches a root of the workspace for build directories without following symlinks.
pub(super) fn find_build_directories(root: &Path) -> FoundDirectories {
    let mut found = FoundDirectories { directories: Vec::new(), is_whole: true };
    let (mut open, mut listed) = (VecDeque::from([(PathBuf::new(), 0)]), 0);
    while let Some((directory, depth)) = open.pop_front() {
        if listed == MAX_LISTED {
            found.is_whole = false;
            break;
        }
        listed += 1;
        let entries = std::fs::read_dir(root.join(&directory)).into_iter().flatten().flatten();
        let is_directory = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        for entry in entries.filter(is_directory) {
            let path = directory.join(entry.file_name());
            if listed_directory(&path, true).is_some() {
                found.directories.push(path);
            } else if depth + 1 < MAX_DEPTH && may_hold_build_directories(&path) {
                open.push_back((path, depth + 1));
            }
        }
    }
    found.directories.sort();
    found
}

fn may_hold_build_directories(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
    !name.starts_with('.') && !path.parent().is_some_and(|parent| parent.ends_with("node_modules"))
}

/// Returns the outermost directory in the path, or the path itself, that has the name of a build directory.
pub(super) fn listed_directory(path: &Path, is_directory: bool) -> Option<PathBuf> {
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

fn is_tagged(directory: &Path) -> bool {
    let Ok(file) = open_file(&directory.join(CACHE_TAG)) else { return false };
    let mut start = Vec::new();
    let read = file.take(TAG_SIGNATURE.len() as u64).read_to_end(&mut start);
    read.is_ok() && start == TAG_SIGNATURE
}

/// Returns the tracked paths of a repository, as listed in its index. Returns `None` if the index cannot be read.
fn tracked_paths(repository: &Path) -> Option<Vec<PathBuf>> {
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
    fn build_directories_are_recognized_by_name() {
        let of = |path: &str| listed_directory(Path::new(path), false).map(|found| found.display().to_string());
        assert_eq!(of("target/debug/build/x"), Some("target".to_owned()));
        assert_eq!(of("a/b/.pytest_cache/v"), Some("a/b/.pytest_cache".to_owned()));
        assert_eq!(of("node_modules/.cache/x"), Some("node_modules/.cache".to_owned()));
        for path in ["target", "src/a.rs", "node_modules/x/build/y", ".venv/build/x", ".env.d/build/x", "targets/x"] {
            assert_eq!(of(path), None, "{path}");
        }
        assert_eq!(listed_directory(Path::new("target"), true), Some("target".into()));
    }

    #[test]
    fn existing_build_directories_are_found_except_inside_dependency_directories() {
        let ground = tempfile::tempdir().unwrap();
        for directory in
            ["target/debug/build", "a/b/build", "node_modules/.cache", "node_modules/x/dist", ".venv/build", "a/b/c/d/e/out"]
        {
            std::fs::create_dir_all(ground.path().join(directory)).unwrap();
        }
        std::os::unix::fs::symlink(ground.path().join("target"), ground.path().join("dist")).unwrap();
        let found = find_build_directories(ground.path());
        let expected: Vec<PathBuf> = ["a/b/build", "node_modules/.cache", "target"].map(PathBuf::from).into();
        assert_eq!(found.directories, expected);
        assert!(found.is_whole);
        for number in 0..MAX_LISTED {
            std::fs::create_dir(ground.path().join(format!("d{number}"))).unwrap();
        }
        assert!(!find_build_directories(ground.path()).is_whole);
    }
}
