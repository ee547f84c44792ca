//! Identity of a directory, which another directory at the same path does not share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directory that a copy-on-write layer covers in this process, and its identity before that.
static COVERED: OnceLock<(PathBuf, String)> = OnceLock::new();

/// Identity of a directory, determined before a copy-on-write layer covers it.
pub(crate) struct UncoveredDirectory {
    real: PathBuf,
    identity: String,
}

impl UncoveredDirectory {
    /// Determines the identity of a directory that is about to be covered, given its canonical path.
    pub(crate) fn examine(real: &Path) -> Self {
        Self { real: real.to_owned(), identity: inode(real) }
    }

    /// Remembers the directory as covered, once the layer is mounted. The layer shows the same project, but has a
    /// device and an inode of its own. Only the first call in a process has an effect, because a process covers a
    /// single directory.
    pub(crate) fn remember_covered(self) {
        let _ = COVERED.set((self.real, self.identity));
    }
}

/// Returns whether a copy-on-write layer covers the directory in this process.
pub(super) fn is_covered(real: &Path) -> bool {
    identity(real) != inode(real)
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
