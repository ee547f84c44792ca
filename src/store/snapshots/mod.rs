//! Workspace snapshots, which store contents under their hashes and record the content of each path over time.

mod baselines;
mod change_log;
mod eviction;
mod file_stat;
mod index;
mod objects;
mod path_state;
mod retention;
mod schema;
#[cfg(test)]
mod tests;

use super::index_file::IndexError;
use super::lock_ignoring_poison;
use crate::ports::{
    Attribution, Baselines, BoxFuture, ChangeHistory, Checkpoint, CheckpointError, Checkpoints, ContentId, Differences,
    KnownPath, MarkedState, PathDifference, RunSpan, StoredState, TouchedDirectory,
};
use crate::protocol::{ChangedBy, SessionId, TaskId};
use change_log::ChangeLogTable;
use index::SnapshotIndex;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Name of the snapshot directory inside the data directory.
const DIRECTORY: &str = "snapshots";

/// Snapshot storage limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct SnapshotLimits {
    /// Maximum size of a file in bytes. The content of larger files is not stored.
    pub file_bytes: u64,
    /// Maximum total size in bytes of the new contents in a single snapshot. The content of any further files is not
    /// stored.
    pub snapshot_bytes: u64,
    /// Maximum total size in bytes of all contents. If it is exceeded, the oldest snapshots are deleted.
    pub all_bytes: u64,
    pub files: usize,
    /// Maximum number of paths with baselines per session.
    pub session_files: u64,
    /// Maximum total size in bytes of the new contents that baselines add per session.
    pub session_bytes: u64,
}

const LIMITS: SnapshotLimits = SnapshotLimits {
    file_bytes: 64 << 20,
    snapshot_bytes: 1 << 30,
    all_bytes: 4 << 30,
    files: 200_000,
    session_files: 20_000,
    session_bytes: 512 << 20,
};

/// Snapshot store in a data directory, opened on first use.
pub(crate) struct Snapshots {
    inner: Arc<Inner>,
}

struct Inner {
    directory: PathBuf,
    limits: SnapshotLimits,
    index: Mutex<Option<SnapshotIndex>>,
}

impl Snapshots {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self::with_limits(data_dir, LIMITS)
    }

    /// Returns the snapshot store with a different limit on its total size.
    pub(crate) fn with_budget(self, all_bytes: u64) -> Self {
        let (directory, limits) = (self.inner.directory.clone(), SnapshotLimits { all_bytes, ..self.inner.limits });
        Self { inner: Arc::new(Inner { directory, limits, index: Mutex::new(None) }) }
    }

    fn with_limits(data_dir: &Path, limits: SnapshotLimits) -> Self {
        let inner = Inner { directory: data_dir.join(DIRECTORY), limits, index: Mutex::new(None) };
        Self { inner: Arc::new(inner) }
    }

    /// Runs `work` on a thread that may block on disk access.
    fn with_index<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SnapshotIndex) -> Result<T, IndexError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, CheckpointError>> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || inner.run(work)).await;
            done.unwrap_or_else(|error| {
                Err(CheckpointError { message: format!("the snapshot stopped before it finished: {error}") })
            })
        })
    }
}

impl Inner {
    fn run<T>(&self, work: impl FnOnce(&mut SnapshotIndex) -> Result<T, IndexError>) -> Result<T, CheckpointError> {
        let mut slot = lock_ignoring_poison(&self.index);
        if slot.is_none() {
            *slot = Some(SnapshotIndex::open(&self.directory, self.limits).map_err(|trouble| self.to_error(&trouble))?);
        }
        let Some(index) = slot.as_mut() else { return Err(CheckpointError { message: "no index".to_owned() }) };
        let done = work(index);
        if done.is_err() {
            // The state in memory may differ from the database.
            *slot = None;
        }
        done.map_err(|trouble| self.to_error(&trouble))
    }

    fn to_error(&self, trouble: &IndexError) -> CheckpointError {
        CheckpointError { message: trouble.message(&self.directory) }
    }
}

impl Checkpoints for Snapshots {
    fn take(&self, root: PathBuf, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Checkpoint, CheckpointError>> {
        self.with_index(move |index| index.take(root, files))
    }

    fn changes(&self, since: Checkpoint, files: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<PathDifference>, CheckpointError>> {
        self.with_index(move |index| index.changes(&since, files))
    }

    fn content(&self, id: ContentId) -> BoxFuture<'_, Result<Vec<u8>, CheckpointError>> {
        self.with_index(move |index| index.content(id))
    }
}

impl Snapshots {
    /// Returns whether each path has the same content and mode as before the session first changed it. Omits paths
    /// whose earlier state was not stored.
    pub(crate) fn baseline_matches(
        &self,
        session: &SessionId,
        paths: Vec<PathBuf>,
    ) -> Result<HashMap<PathBuf, bool>, CheckpointError> {
        if !self.inner.directory.exists() {
            return Ok(HashMap::new());
        }
        self.inner.run(|index| index.baseline_matches(session, paths))
    }

    /// Deletes the changes recorded for a session.
    pub(crate) fn forget(&self, session: &SessionId) -> Result<(), CheckpointError> {
        if !self.inner.directory.exists() {
            return Ok(());
        }
        self.inner.run(|index| index.forget_session(session))
    }
}

impl Baselines for Snapshots {
    fn keep(&self, owner: Attribution, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.with_index(move |index| index.keep_baselines(&owner, &paths))
    }

    fn record_tool_change(&self, owner: Attribution, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.with_index(move |index| index.settle_baselines(&owner, &paths))
    }

    fn note(&self, owner: Attribution, by: ChangedBy, noted: Vec<KnownPath>) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.with_index(move |index| index.note_baselines(&owner, by, noted))
    }

    fn begin_span(&self, owner: Attribution, since: Checkpoint) -> BoxFuture<'_, Result<RunSpan, CheckpointError>> {
        self.with_index(move |index| index.begin_span(owner, since))
    }

    fn end_span(&self, span: RunSpan, changed: Vec<PathDifference>, goes_on: bool) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.with_index(move |index| index.end_span(&span, changed, goes_on))
    }

    fn written_by_others(
        &self,
        span: RunSpan,
        changed: Vec<PathDifference>,
    ) -> BoxFuture<'_, Result<HashSet<PathBuf>, CheckpointError>> {
        self.with_index(move |index| index.written_by_others(&span, &changed))
    }

    fn open_spans(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<RunSpan>, CheckpointError>> {
        self.with_index(move |index| index.open_spans(&session))
    }

    fn first(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>> {
        self.with_index(move |index| index.first_snapshots(&session))
    }

    fn states_at(&self, since: Checkpoint, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<StoredState>, CheckpointError>> {
        self.with_index(move |index| index.states_at(&since, &paths))
    }

    fn note_directories(&self, owner: Attribution, noted: Vec<TouchedDirectory>) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.with_index(move |index| ChangeLogTable::new(index).note_directories(&owner, &noted))
    }

    fn note_gap(&self, owner: Attribution, words: String) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.with_index(move |index| ChangeLogTable::new(index).note_gap(&owner, &words))
    }

    fn trail(&self, session: SessionId, step: u64) -> BoxFuture<'_, Result<ChangeHistory, CheckpointError>> {
        self.with_index(move |index| ChangeLogTable::new(index).trail(&session, step))
    }

    fn current_states(&self, paths: Vec<PathBuf>) -> BoxFuture<'_, Result<Vec<MarkedState>, CheckpointError>> {
        self.with_index(move |index| Ok(ChangeLogTable::new(index).current_states(&paths)))
    }

    fn differences(&self, session: SessionId, task: Option<TaskId>) -> BoxFuture<'_, Result<Differences, CheckpointError>> {
        self.with_index(move |index| index.differences(&session, task.as_ref()))
    }
}
