//! Searches for every `.git` below some directories. The listings of unchanged directories are cached.

use crate::sys::file::DirectoryStamp;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of entries to examine.
const MAX_ENTRIES: usize = 200_000;

/// A search, with its cache.
#[derive(Debug)]
pub(crate) struct RepositoryScan {
    roots: Vec<PathBuf>,
    seen: Mutex<HashMap<PathBuf, RepositoryListing>>,
}

/// Result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RepositoryList {
    /// Path of every `.git`, including those that are symlinks.
    pub found: Vec<PathBuf>,
    /// Whether the search stopped at the limit on entries.
    pub is_cut: bool,
}

/// A cached directory listing.
#[derive(Debug)]
struct RepositoryListing {
    stamp: DirectoryStamp,
    entries: usize,
    has_git: bool,
    below: Vec<OsString>,
}

impl RepositoryScan {
    /// Creates a search of these directories and of the repository that contains them.
    pub(crate) fn new(roots: &[PathBuf]) -> Arc<Self> {
        let mut places = roots.to_vec();
        for root in roots {
            let above = root.ancestors().skip(1).find(|level| level.join(".git").symlink_metadata().is_ok());
            places.extend(above.map(Path::to_owned));
        }
        places.sort();
        places.dedup_by(|below, above| below.starts_with(above));
        Arc::new(Self { roots: places, seen: Mutex::default() })
    }

    /// Performs the search, which involves blocking I/O.
    pub(super) fn find(&self) -> RepositoryList {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *seen);
        let mut open: VecDeque<PathBuf> = self.roots.iter().cloned().collect();
        let (mut places, mut entries) = (RepositoryList::default(), 0);
        while let Some(directory) = open.pop_front() {
            if seen.contains_key(&directory) {
                continue;
            }
            let known = before.remove(&directory);
            let Some(listed) = list_directory(&directory, known, MAX_ENTRIES - entries) else { continue };
            entries += listed.entries;
            if listed.has_git {
                places.found.push(directory.join(".git"));
            }
            open.extend(listed.below.iter().map(|name| directory.join(name)));
            if entries >= MAX_ENTRIES {
                places.is_cut = true;
                return places;
            }
            if listed.stamp.is_settled() {
                seen.insert(directory, listed);
            }
        }
        places
    }
}

fn list_directory(directory: &Path, known: Option<RepositoryListing>, most: usize) -> Option<RepositoryListing> {
    let stamp = DirectoryStamp::read(directory)?;
    if let Some(known) = known.filter(|known| known.stamp == stamp && known.entries < most) {
        return Some(known);
    }
    let mut listed = RepositoryListing { stamp, entries: 0, has_git: false, below: Vec::new() };
    for entry in std::fs::read_dir(directory).ok()?.flatten().take(most) {
        listed.entries += 1;
        let name = entry.file_name();
        if name == ".git" {
            listed.has_git = true;
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            listed.below.push(name);
        }
    }
    Some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_scans_cover_all_directories() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        for directory in [".git/x/.git", "a/.git", "a/b/.vscode/x", "target/.git", "node_modules/y"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::os::unix::fs::symlink("elsewhere", root.join("a/b/.vscode/x/.git")).unwrap();
        std::fs::write(root.join("node_modules/y/.git"), "gitdir: x\n").unwrap();
        let everywhere = RepositoryScan::new(std::slice::from_ref(&root));
        let found = || {
            let mut places = everywhere.find();
            places.found.sort();
            places
        };
        let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        let all = [".git", "a/.git", "a/b/.vscode/x/.git", "node_modules/y/.git", "target/.git"];
        assert_eq!(found(), RepositoryList { found: at(&all), is_cut: false });
        std::fs::remove_dir(root.join("target/.git")).unwrap();
        assert_eq!(found().found, at(&all[..4]));
        // For a subdirectory of a repository, the whole repository is searched, each path once.
        let mut of_a_part = RepositoryScan::new(&[root.join("a/b")]).find().found;
        of_a_part.sort();
        assert_eq!(of_a_part, at(&["a/.git", "a/b/.vscode/x/.git"]));
    }
}
