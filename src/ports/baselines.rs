//! What stood at a path before its first change in a session, kept before that change.

use super::{BoxFuture, Changed, Checkpoint, CheckpointError, Stood};
use crate::protocol::{ChangedBy, SessionId, TaskId};
use std::path::PathBuf;

/// Whose changes are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub session: SessionId,
    /// The task they belong to as well.
    pub task: Option<TaskId>,
}

/// A path that is not what it was when the session, or the task, first changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub path: PathBuf,
    pub before: Stood,
    /// Of what was not kept, why.
    pub why: Option<String>,
    pub now: Stood,
    pub by: Vec<ChangedBy>,
}

/// A path of which something is known without looking at it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    pub path: PathBuf,
    pub before: Stood,
    pub why: Option<String>,
    /// What whoever changed it left there, where that is known.
    pub after: Option<Stood>,
}

/// All that differs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences {
    pub files: Vec<Difference>,
    /// Paths beyond what is kept of one session.
    pub left_out: u64,
}

/// Commands that may still change what lies below a root, since a snapshot of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub number: i64,
    pub owner: Owner,
    pub since: Checkpoint,
}

/// Keeps the baselines of sessions. What is kept of a path first stays.
pub trait Baselines: Send + Sync {
    /// Before a tool changes what is at these paths, or below them.
    fn keep(&self, owner: Owner, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// After it did: what stands there now is the tool's.
    fn settle(&self, owner: Owner, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Changes that were found afterwards, of paths of which nothing is known.
    fn note(&self, owner: Owner, by: ChangedBy, noted: Vec<Noted>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Before a command that can change what the snapshot holds.
    fn begin(&self, owner: Owner, since: Checkpoint) -> BoxFuture<'_, Result<Span, CheckpointError>>;
    /// What it changed. It is over unless it `goes_on`.
    fn end(&self, span: Span, changed: Vec<Changed>, goes_on: bool) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Those that are not over, of this process or of one that died.
    fn open_spans(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Span>, CheckpointError>>;
    /// The first snapshot of each root in the session.
    fn first(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>>;
    /// What stood at these paths of the root in the snapshot.
    fn stood(&self, since: Checkpoint, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<Stood>, CheckpointError>>;
    /// What differs from its baseline now; with a task, from what stood there when the task first changed it.
    fn differences(&self, session: SessionId, task: Option<TaskId>) -> BoxFuture<'_, Result<Differences, CheckpointError>>;
}
