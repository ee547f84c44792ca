//! Baselines: the content of a path before its first change in a session, stored before that change.

use super::{BoxFuture, Changed, Checkpoint, CheckpointError, Stood};
use crate::protocol::{ChangedBy, SessionId, TaskId};
use std::path::PathBuf;

/// Whose changes are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub session: SessionId,
    /// The task they belong to as well.
    pub task: Option<TaskId>,
    /// And the step, as counted over the session; 0 before the first.
    pub step: u64,
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

/// What stands at a path, and a mark that two have only if they are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub stood: Stood,
    pub mark: Vec<u8>,
    /// Of what is not kept, why.
    pub why: Option<String>,
}

/// One step's change of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    pub path: PathBuf,
    pub task: Option<TaskId>,
    pub before: Standing,
    /// The mark of what was left there, where that was seen.
    pub after: Option<Vec<u8>>,
    pub by: Vec<ChangedBy>,
    /// Somebody else changed it in the middle of the step.
    pub mixed: bool,
}

/// A directory that was made, or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedDirectory {
    pub path: PathBuf,
    pub task: Option<TaskId>,
    pub made: bool,
    /// Of one that was removed.
    pub mode: u32,
}

/// All that was changed from a step on, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trail {
    pub files: Vec<Touch>,
    pub directories: Vec<TouchedDirectory>,
    /// What was not seen or not kept, in words.
    pub gaps: Vec<String>,
    /// Changes beyond what is kept of one session.
    pub left_out: u64,
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
    /// Directories that were made or removed; the task is the owner's.
    fn note_directories(&self, owner: Owner, noted: Vec<TouchedDirectory>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Something that cannot be put back, and why.
    fn note_gap(&self, owner: Owner, words: String) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// What was changed in this step of the session and in those after it.
    fn trail(&self, session: SessionId, step: u64) -> BoxFuture<'_, Result<Trail, CheckpointError>>;
    /// What stands at these paths now.
    fn standing(&self, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<Standing>, CheckpointError>>;
    /// What differs from its baseline now; with a task, from what stood there when the task first changed it.
    fn differences(&self, session: SessionId, task: Option<TaskId>) -> BoxFuture<'_, Result<Differences, CheckpointError>>;
}
