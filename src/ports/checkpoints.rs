//! Checkpoints: snapshots of file content before a change.

use super::BoxFuture;
use std::path::PathBuf;

/// Snapshot of the files in a directory. Later snapshots have higher numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub number: i64,
    pub root: PathBuf,
    /// First files that were not stored, relative to the root, each with the reason.
    pub left_out: Vec<(PathBuf, String)>,
    /// Total number of files that were not stored.
    pub left_out_count: u64,
}

/// State of a path in a snapshot.
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
    /// File without stored content.
    Unkept,
}

/// Unique identifier of stored content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ContentId(pub [u8; 32]);

/// Path that differs from the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathDifference {
    /// Path relative to the root.
    pub path: PathBuf,
    pub before: StoredState,
    /// Current state. Its content is only on disk.
    pub after: StoredState,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CheckpointError {
    pub message: String,
}

/// Storage for snapshots of files. `files` lists all files to include, relative to the root; symlinks are allowed.
pub(crate) trait Checkpoints: Send + Sync {
    /// Takes a snapshot. Checks every file, and copies those that changed since the last snapshot.
    fn take(&self, root: PathBuf, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Checkpoint, CheckpointError>>;
    /// Compares the snapshot with the current files, and returns the changed paths in order.
    fn changes(&self, since: Checkpoint, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<PathDifference>, CheckpointError>>;
    /// Returns stored content; an error if it was evicted or is damaged.
    fn content(&self, id: ContentId) -> BoxFuture<'_, Result<Vec<u8>, CheckpointError>>;
}
