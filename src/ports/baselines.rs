//! Baselines: the content of each path before its first change in a session.

use super::{BoxFuture, Checkpoint, CheckpointError, PathDifference, StoredState};
use crate::protocol::{ChangedBy, SessionId, TaskId};
use std::collections::HashSet;
use std::path::PathBuf;

/// Session, task and step to which changes are attributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribution {
    pub session: SessionId,
    /// Task of the changes, if any.
    pub task: Option<TaskId>,
    /// Step, counted over the session; 0 before the first step.
    pub step: u64,
}

/// Path that differs from its state at the start of the session, or before the task first changed
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub path: PathBuf,
    pub before: StoredState,
    /// Reason why the original content was not stored; absent if it was.
    pub why: Option<String>,
    pub now: StoredState,
    pub by: Vec<ChangedBy>,
}

/// Path whose state is known, so that it need not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownPath {
    pub path: PathBuf,
    pub before: StoredState,
    pub why: Option<String>,
    /// State after the change, if known.
    pub after: Option<StoredState>,
}

/// All changed paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Differences {
    pub files: Vec<Difference>,
    /// Number of paths beyond the limit for one session.
    pub left_out: u64,
}

/// Running command that may still change paths below the root of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunSpan {
    pub number: i64,
    pub owner: Attribution,
    pub since: Checkpoint,
}

/// State of a path, with a fingerprint for comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkedState {
    pub stood: StoredState,
    pub mark: Vec<u8>,
    /// Reason why the content is not stored; absent if it is.
    pub why: Option<String>,
}

/// Change of a path in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    pub path: PathBuf,
    pub task: Option<TaskId>,
    pub before: MarkedState,
    /// Fingerprint of the state after the step, if it was read.
    pub after: Option<Vec<u8>>,
    pub by: Vec<ChangedBy>,
    /// Whether another writer changed the path during the step.
    pub mixed: bool,
}

/// Directory that was created or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TouchedDirectory {
    pub path: PathBuf,
    pub task: Option<TaskId>,
    pub made: bool,
    /// Mode of the directory, if it was removed.
    pub mode: u32,
}

/// All changes since a step, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangeHistory {
    pub files: Vec<Touch>,
    pub directories: Vec<TouchedDirectory>,
    /// Descriptions of changes that were not seen or not stored.
    pub gaps: Vec<String>,
    /// Number of changes beyond the limit for one session.
    pub left_out: u64,
}

/// Storage for the baselines of sessions. The first baseline stored for a path is never replaced.
pub(crate) trait Baselines: Send + Sync {
    /// Stores baselines before a tool changes these paths or paths below them.
    fn keep(&self, owner: Attribution, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Records the state of these paths after a tool changed them.
    fn record_tool_change(&self, owner: Attribution, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Records changes found afterwards, of paths without a known state.
    fn note(&self, owner: Attribution, by: ChangedBy, noted: Vec<KnownPath>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Begins a span, before a command that can change files of the snapshot.
    fn begin_span(&self, owner: Attribution, since: Checkpoint) -> BoxFuture<'_, Result<RunSpan, CheckpointError>>;
    /// Records the changes of a command. Ends the span, unless the command is still running (`goes_on`).
    fn end_span(&self, span: RunSpan, changed: Vec<PathDifference>, goes_on: bool) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Returns the changed paths that a file tool of another session wrote while the command ran, and that have not
    /// changed since.
    fn written_by_others(
        &self,
        span: RunSpan,
        changed: Vec<PathDifference>,
    ) -> BoxFuture<'_, Result<HashSet<PathBuf>, CheckpointError>>;
    /// Returns the open spans of this process and of processes that died.
    fn open_spans(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<RunSpan>, CheckpointError>>;
    /// Returns the first snapshot of each root in the session.
    fn first(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>>;
    /// Returns the state of these paths in the snapshot.
    fn states_at(&self, since: Checkpoint, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<StoredState>, CheckpointError>>;
    /// Records directories that were created or removed by the task of the owner.
    fn note_directories(&self, owner: Attribution, noted: Vec<TouchedDirectory>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Records a change that cannot be undone, and why.
    fn note_gap(&self, owner: Attribution, words: String) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Returns the changes of this step and of all later steps of the session.
    fn trail(&self, session: SessionId, step: u64) -> BoxFuture<'_, Result<ChangeHistory, CheckpointError>>;
    /// Returns the current state of these paths.
    fn current_states(&self, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<MarkedState>, CheckpointError>>;
    /// Compares paths with their baselines. With a task, compares them with their state before the task first changed
    /// them.
    fn differences(&self, session: SessionId, task: Option<TaskId>) -> BoxFuture<'_, Result<Differences, CheckpointError>>;
}
