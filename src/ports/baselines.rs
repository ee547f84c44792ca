//! Baselines: the content of each path before its first change in a session.

use super::{BoxFuture, Checkpoint, CheckpointError, PathDifference, StoredState};
use crate::protocol::{ChangedBy, SessionId, TaskId};
use std::collections::HashSet;
use std::path::PathBuf;

/// Session, task and step to which a change is attributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribution {
    pub session: SessionId,
    /// Task that made the change, if any.
    pub task: Option<TaskId>,
    /// Step number within the session; 0 before the first step.
    pub step: u64,
}

/// Path that differs from its baseline: its state at the start of the session, or before the task first changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub path: PathBuf,
    pub before: StoredState,
    /// Reason why the original content was not stored; `None` if it was stored.
    pub why: Option<String>,
    pub now: StoredState,
    pub by: Vec<ChangedBy>,
}

/// Changed path whose earlier state is already known, so the file need not be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownPath {
    pub path: PathBuf,
    pub before: StoredState,
    pub why: Option<String>,
    /// State after the change, if known.
    pub after: Option<StoredState>,
}

/// Paths that differ from their baselines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Differences {
    pub files: Vec<Difference>,
    /// Number of changed paths omitted because the session exceeded its limit.
    pub left_out: u64,
}

/// Running command that may still change files below the snapshot's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunSpan {
    pub number: i64,
    pub owner: Attribution,
    pub since: Checkpoint,
}

/// State of a path, with a fingerprint for comparing it with other states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkedState {
    pub stood: StoredState,
    pub mark: Vec<u8>,
    /// Reason why the content was not stored; `None` if it was stored.
    pub why: Option<String>,
}

/// Change made to a path during one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    pub path: PathBuf,
    pub task: Option<TaskId>,
    pub before: MarkedState,
    /// Fingerprint of the path's state after the step, if that state was read.
    pub after: Option<Vec<u8>>,
    pub by: Vec<ChangedBy>,
    /// Whether something else also changed the path during the step.
    pub mixed: bool,
}

/// Directory that was created or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TouchedDirectory {
    pub path: PathBuf,
    pub task: Option<TaskId>,
    pub made: bool,
    /// Permission bits of a removed directory.
    pub mode: u32,
}

/// All changes made since a given step, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangeHistory {
    pub files: Vec<Touch>,
    pub directories: Vec<TouchedDirectory>,
    /// Descriptions of changes that were not detected or whose original content was not stored.
    pub gaps: Vec<String>,
    /// Number of changes omitted because the session exceeded its limit.
    pub left_out: u64,
}

/// Baseline storage for sessions. The first baseline of a path is never replaced.
pub(crate) trait Baselines: Send + Sync {
    /// Stores the baselines of these paths, and of everything below them, before a tool changes them.
    fn keep(&self, owner: Attribution, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Records the state of these paths after a tool has changed them.
    fn record_tool_change(&self, owner: Attribution, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Records changes detected after the fact. Paths whose earlier state is already known are skipped.
    fn note(&self, owner: Attribution, by: ChangedBy, noted: Vec<KnownPath>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Begins a span for a command that may change files in the snapshot. Must be called before the command starts.
    fn begin_span(&self, owner: Attribution, since: Checkpoint) -> BoxFuture<'_, Result<RunSpan, CheckpointError>>;
    /// Records the changes that a command made. Ends the span unless the command is still running (`goes_on`).
    fn end_span(&self, span: RunSpan, changed: Vec<PathDifference>, goes_on: bool) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Returns those of the changed paths that another session's file tool wrote while the command ran and that have
    /// not changed since.
    fn written_by_others(
        &self,
        span: RunSpan,
        changed: Vec<PathDifference>,
    ) -> BoxFuture<'_, Result<HashSet<PathBuf>, CheckpointError>>;
    /// Returns a session's open spans, including spans left open by processes that have exited.
    fn open_spans(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<RunSpan>, CheckpointError>>;
    /// Returns the session's first snapshot of each root.
    fn first(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>>;
    /// Returns the state of each path in the given snapshot.
    fn states_at(&self, since: Checkpoint, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<StoredState>, CheckpointError>>;
    /// Records directories that the owner created or removed.
    fn note_directories(&self, owner: Attribution, noted: Vec<TouchedDirectory>) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Records that a change cannot be undone, with a description for the user.
    fn note_gap(&self, owner: Attribution, words: String) -> BoxFuture<'_, Result<(), CheckpointError>>;
    /// Returns the changes made in this and all later steps of the session.
    fn trail(&self, session: SessionId, step: u64) -> BoxFuture<'_, Result<ChangeHistory, CheckpointError>>;
    /// Returns the current state of each path.
    fn current_states(&self, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<MarkedState>, CheckpointError>>;
    /// Compares changed paths with their baselines. If a task is given, compares them with their state before that
    /// task first changed them.
    fn differences(&self, session: SessionId, task: Option<TaskId>) -> BoxFuture<'_, Result<Differences, CheckpointError>>;
}
