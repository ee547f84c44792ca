//! The files that say what a search leaves out. A repository brings them along, and the walk opens what has their names: a link
//! to a device would be read without end, a pipe would be waited for.

use crate::tools::tool::Settings;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// A larger one says nothing that a person wrote.
const MOST_BYTES: u64 = 1 << 20;
/// What git writes in one line about where its data is.
const POINTER_BYTES: u64 = 4096;

/// What is opened on the way into a directory and must not be, by its name in there.
pub(in crate::tools) fn trap(directory: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<String> {
    let named = [".ignore", ".gitignore"].into_iter().find(|name| !is_plain(&directory.join(name), MOST_BYTES, may_read));
    named.map(str::to_owned).or_else(|| is_trap(&directory.join(".git"), may_read).then(|| ".git".to_owned()))
}

/// The same for where a search starts and all directories above it.
pub(in crate::tools) fn trap_above(start: &Path, settings: &Settings) -> Option<PathBuf> {
    start.ancestors().find_map(|directory| Some(directory.join(trap(directory, &*settings.may_read)?)))
}

/// Whether the list of what is left out that belongs to a `.git` leads astray. Of a work tree it is kept elsewhere.
fn is_trap(git: &Path, may_read: &dyn Fn(&Path) -> bool) -> bool {
    let Ok(metadata) = git.metadata() else { return false };
    if !metadata.is_file() {
        return !is_plain(&git.join("info/exclude"), MOST_BYTES, may_read);
    }
    // As the walk reads it: what is relative starts from where aye was started.
    let Some(line) = line(git, may_read) else { return true };
    let Some(data) = line.strip_prefix("gitdir: ").map(PathBuf::from) else { return false };
    let pointer = data.join("commondir");
    if pointer.symlink_metadata().is_err() {
        return false;
    }
    let Some(line) = self::line(&pointer, may_read) else { return true };
    let common = if line.starts_with('.') { data.join(line) } else { PathBuf::from(line) };
    !is_plain(&common.join("info/exclude"), MOST_BYTES, may_read)
}

/// The first line of a small file.
fn line(path: &Path, may_read: &dyn Fn(&Path) -> bool) -> Option<String> {
    if !is_plain(path, POINTER_BYTES, may_read) {
        return None;
    }
    let bytes = crate::sys::file::read(&path.canonicalize().ok()?, POINTER_BYTES).ok()?;
    String::from_utf8_lossy(&bytes).lines().next().map(str::to_owned)
}

/// Whether it is not there, or a small file that is no way to read what may not be read.
fn is_plain(path: &Path, most_bytes: u64, may_read: &dyn Fn(&Path) -> bool) -> bool {
    let small = |metadata: &Metadata| metadata.is_file() && metadata.len() <= most_bytes;
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => match path.canonicalize() {
            Ok(real) => may_read(&real) && real.metadata().is_ok_and(|metadata| small(&metadata)),
            Err(_) => true,
        },
        // A directory is opened and gives an error.
        Ok(metadata) => metadata.is_dir() || small(&metadata),
        Err(_) => true,
    }
}
