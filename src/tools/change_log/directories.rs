//! Directories that a change creates or removes. They are tracked separately, because file changes reveal nothing about
//! empty directories.

use crate::ports::TouchedDirectory;
use crate::sys::path::is_without_links;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of directories per change. No ordinary project has that many.
const MAX: usize = 20_000;

/// Directories with their modes.
pub(in crate::tools) type Directories = BTreeMap<PathBuf, u32>;

/// Returns the directories at and below these paths, along with the existing parent directories.
pub(in crate::tools) fn directories_at(paths: &[PathBuf]) -> Directories {
    let mut found = Directories::new();
    for path in paths {
        for above in path.ancestors().skip(1) {
            if found.contains_key(above) {
                break;
            }
            add_directory(above, &mut found);
        }
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            if found.len() >= MAX || !add_directory(&path, &mut found) {
                continue;
            }
            if let Ok(entries) = std::fs::read_dir(&path) {
                let below = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                waiting.extend(below.map(|entry| entry.path()));
            }
        }
    }
    found
}

/// Adds a directory to `found`. Returns `false` if the path is not a directory or is reached through a symlink.
fn add_directory(path: &Path, found: &mut Directories) -> bool {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() && is_without_links(path) => {
            found.insert(path.to_owned(), metadata.mode() & 0o7777);
            true
        }
        _ => false,
    }
}

/// Returns the directories that were created or removed between two states. A directory that was merely not examined is
/// not reported as removed.
pub(in crate::tools) fn changed_directories(before: &Directories, now: &Directories) -> Vec<TouchedDirectory> {
    let made = now.iter().filter(|(path, _)| !before.contains_key(*path));
    let made = made.map(|(path, mode)| TouchedDirectory { path: path.clone(), task: None, made: true, mode: *mode });
    let is_there = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) && is_without_links(path);
    let gone = before.iter().filter(|(path, _)| !now.contains_key(*path) && !is_there(path));
    let gone = gone.map(|(path, mode)| TouchedDirectory { path: path.clone(), task: None, made: false, mode: *mode });
    made.chain(gone).collect()
}
