//! Missing paths that one run may write. They are created before the run, and removed after it if unused.

use crate::protocol::SandboxAccess;
use std::fs::{self, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Paths created for a run.
#[derive(Debug, Default)]
pub(in crate::tools) struct CreatedPaths {
    made: Vec<(PathBuf, State)>,
}

/// Metadata that changes whenever the path is used.
#[derive(Debug, PartialEq, Eq)]
struct State {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl State {
    fn from_metadata(data: &Metadata) -> Self {
        Self {
            inode: data.ino(),
            bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl CreatedPaths {
    /// Creates the missing writable paths of a run. Paths that cannot be created stay unavailable, and the command
    /// reports the error.
    pub(in crate::tools) fn make(opens: &[SandboxAccess]) -> Self {
        let mut made = Vec::new();
        for opened in opens {
            let SandboxAccess::Write { path: text } = opened else { continue };
            let path = Path::new(text.trim_end_matches('/'));
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let done = if text.ends_with('/') {
                fs::create_dir(path)
            } else {
                OpenOptions::new().write(true).create_new(true).mode(0o666).open(path).map(drop)
            };
            if let (Ok(()), Ok(data)) = (done, path.symlink_metadata()) {
                made.push((path.to_owned(), State::from_metadata(&data)));
            }
        }
        Self { made }
    }
}

impl Drop for CreatedPaths {
    fn drop(&mut self) {
        for (path, state) in &self.made {
            let Ok(data) = path.symlink_metadata() else { continue };
            if State::from_metadata(&data) == *state {
                // A non-empty directory is kept anyway.
                let _ = if data.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
            }
        }
    }
}
