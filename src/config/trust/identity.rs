//! Identity of a directory, which another directory at the same path does not share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directory that a copy-on-write layer covers in this process, and its identity before that.
static COVERED: OnceLock<(PathBuf, String)> = OnceLock::new();

/// Remembers the identity of a directory that a copy-on-write layer is about to cover in this process. The layer shows
/// the same project, but has a device and an inode of its own. Only the first call has an effect, because a process
/// covers a single directory.
pub(crate) fn remember_covered(real: &Path) {
    let _ = COVERED.set((real.to_owned(), inode(real)));
}

/// Returns the device and the inode of a directory; of a covered one, those of the directory below the layer. Empty if
/// they cannot be determined.
pub(super) fn identity(real: &Path) -> String {
    match COVERED.get() {
        Some((covered, identity)) if covered == real => identity.clone(),
        Some(_) | None => inode(real),
    }
}

/// Returns the current device and inode of a directory; empty if they cannot be determined.
#[cfg(unix)]
pub(super) fn inode(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|metadata| format!("{}:{}", metadata.dev(), metadata.ino())).unwrap_or_default()
}

#[cfg(not(unix))]
pub(super) fn inode(_path: &Path) -> String {
    String::new()
}
