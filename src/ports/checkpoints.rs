//! Checkpoints: file content before a change.

use super::BoxFuture;
use std::path::PathBuf;

/// Snapshot of the files of one directory. Its number grows with time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub number: i64,
    pub root: PathBuf,
    /// First files that are not stored, relative to the root, and why.
    pub left_out: Vec<(PathBuf, String)>,
    /// Number of files that are not stored.
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
    /// File that is not stored.
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
    /// Current state. Its content is not stored yet, only on disk.
    pub after: StoredState,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CheckpointError {
    pub message: String,
}

/// Storage that takes snapshots of files and compares them. `files` lists all files to include, relative to the root, symlinks among them.
pub(crate) trait Checkpoints: Send + Sync {
    /// Takes a snapshot. The cost is a check of every file, and a copy of the files that changed since the last snapshot.
    fn take(&self, root: PathBuf, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Checkpoint, CheckpointError>>;
    /// Compares with the current files, and returns the changed paths in order.
    fn changes(&self, since: Checkpoint, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<PathDifference>, CheckpointError>>;
    /// Returns a stored content; an error if it was evicted or is damaged.
    fn content(&self, id: ContentId) -> BoxFuture<'_, Result<Vec<u8>, CheckpointError>>;
}
