//! Paths that do not exist but that a single run may write to. They are created before the run, and removed after it if
//! they were not used.

use crate::protocol::SandboxAccess;
use crate::sys::file::FileStamp;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Paths that were created for a run.
#[derive(Debug, Default)]
pub(in crate::tools) struct CreatedPaths {
    /// Each path with its stamp, which changes as soon as the path is used.
    made: Vec<(PathBuf, FileStamp)>,
}

impl CreatedPaths {
    /// Creates the paths that a run may write to and that do not exist. If a path cannot be created, it remains
    /// unavailable, and the command reports the error.
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
                made.push((path.to_owned(), FileStamp::from_metadata(&data)));
            }
        }
        Self { made }
    }
}

impl Drop for CreatedPaths {
    fn drop(&mut self) {
        for (path, state) in &self.made {
            let Ok(data) = path.symlink_metadata() else { continue };
            if FileStamp::from_metadata(&data) == *state {
                // A non-empty directory is not removed.
                let _ = if data.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
            }
        }
    }
}
