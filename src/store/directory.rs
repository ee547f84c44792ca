//! Data directory, which is private to the user. A lock ensures that processes open the store in it one at a time.

use super::StoreError;
use std::fs::{DirBuilder, File, OpenOptions};
use std::path::Path;

pub(super) fn prepare(data_dir: &Path) -> Result<(), StoreError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(data_dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            StoreError::Unusable { path: data_dir.to_owned(), reason: "not a directory".to_owned() }
        }
        _ => StoreError::unusable(data_dir, &error),
    })
}

/// Locks the store while its database is examined, created or moved, to prevent two processes that start at once from
/// both moving it.
pub(super) fn lock(data_dir: &Path) -> Result<File, StoreError> {
    let path = data_dir.join("aye.lock");
    let file = private().create(true).truncate(false).open(&path).map_err(|error| StoreError::unusable(data_dir, &error))?;
    match file.lock() {
        Ok(()) => Ok(file),
        // The file system has no locks. The database is still protected by SQLite's own locking.
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        Err(error) => Err(StoreError::unusable(&path, &error)),
    }
}

/// Returns options for opening files that only their owner can access.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
