//! Checkpoints: file content before a change.

use super::BoxFuture;
use std::path::PathBuf;

/// The files of one directory as they were once. Its number grows with time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub number: i64,
    pub root: PathBuf,
    /// Files that are not kept, relative to the root, and why; the first ones.
    pub left_out: Vec<(PathBuf, String)>,
    /// How many those are.
    pub left_out_count: u64,
}

/// What stood at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stood {
    Missing,
    File {
        content: ContentId,
        bytes: u64,
        mode: u32,
    },
    Link {
        to: PathBuf,
    },
    /// Something that is not kept.
    Unkept,
}

/// Names a content, and nothing else can have its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentId(pub [u8; 32]);

/// A path that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Relative to the root.
    pub path: PathBuf,
    pub before: Stood,
    /// The content is not kept yet: it is on the disk.
    pub after: Stood,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CheckpointError {
    pub message: String,
}

/// Keeps files and says what became of them. `files` are all that count, relative to the root, links among them.
pub trait Checkpoints: Send + Sync {
    /// What is there now; it costs what changed since the last time, and a look at every file.
    fn take(&self, root: PathBuf, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Checkpoint, CheckpointError>>;
    /// What is different now, in the order of the paths.
    fn changes(&self, since: Checkpoint, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<Changed>, CheckpointError>>;
    /// A content that was kept; an error where it was given up for newer ones or is damaged.
    fn content(&self, id: ContentId) -> BoxFuture<'_, Result<Vec<u8>, CheckpointError>>;
}
