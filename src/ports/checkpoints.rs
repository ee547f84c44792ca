//! Checkpoints: snapshots of file content taken before a change.

use super::BoxFuture;
use std::path::PathBuf;

/// Snapshot of the files below a directory. Later snapshots have higher numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub number: i64,
    pub root: PathBuf,
    /// First few files that were not stored, relative to the root, each with the reason.
    pub left_out: Vec<(PathBuf, String)>,
    /// Total number of files that were not stored.
    pub left_out_count: u64,
}

/// State of a path, as recorded in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredState {
    Missing,
    File {
        content: ContentId,
        bytes: u64,
        mode: u32,
    },
    Link {
        to: PathBuf,
    },
    /// File whose content was not stored.
    Unkept,
}

/// Unique identifier of stored file content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ContentId(pub [u8; 32]);

/// Path whose current state differs from its state in the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathDifference {
    /// Path relative to the snapshot's root.
    pub path: PathBuf,
    pub before: StoredState,
    /// Current state. Its content has not been stored and exists only on disk.
    pub after: StoredState,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CheckpointError {
    pub message: String,
}

/// Snapshot storage. `files` lists every file to include, relative to the root, and may contain symlinks.
pub(crate) trait Checkpoints: Send + Sync {
    /// Takes a snapshot. Every file is checked, but only files that changed since the last snapshot are copied.
    fn take(&self, root: PathBuf, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Checkpoint, CheckpointError>>;
    /// Compares a snapshot with the current files and returns the changed paths in sorted order.
    fn changes(&self, since: Checkpoint, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<PathDifference>, CheckpointError>>;
    /// Returns stored content. Fails if the content has been evicted or is damaged.
    fn content(&self, id: ContentId) -> BoxFuture<'_, Result<Vec<u8>, CheckpointError>>;
}
