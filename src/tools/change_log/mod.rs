//! Log of the files that a session changes: which task and step made each change, the content saved before it, and the
//! commands that are running.

mod directories;
mod external;
pub(in crate::tools) mod tool_writes;

use crate::ports::{Attribution, Baselines, Checkpoint, CheckpointError, Checkpoints, PathDifference, RunSpan};
use crate::protocol::{SessionId, TaskId};
pub(in crate::tools) use directories::{Directories, changed_directories, directories_at};
pub(in crate::tools) use external::{ExternalChanges, Tracking};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tool_writes::ToolWrites;
pub(in crate::tools) use tool_writes::WriteMark;

/// Log of the changes made in one session. It does not depend on the current policy and is cheap to clone.
#[derive(Clone)]
pub(crate) struct ChangeLog {
    inner: Arc<Inner>,
    /// Whether this log belongs to one of the session's agents. Changes made by an agent are attributed to the
    /// session's current task and step.
    of_agent: bool,
}

struct Inner {
    baselines: Arc<dyn Baselines>,
    checkpoints: Arc<dyn Checkpoints>,
    session: SessionId,
    /// Whether the session already had records when this process started.
    resumed: bool,
    task: Mutex<Option<TaskId>>,
    /// Number of the current step, counted over the whole session.
    step: AtomicU64,
    /// Span numbers of the commands for which a call is waiting.
    running: Mutex<HashSet<i64>>,
    external: tokio::sync::Mutex<ExternalChanges>,
    written: ToolWrites,
}

/// Paths that were saved before a tool changes them.
pub(in crate::tools) struct SavedPaths {
    owner: Attribution,
    paths: Vec<PathBuf>,
    directories: Directories,
}

/// Period during which a command may change files. It ends on drop, whether or not the changes were recorded.
pub(in crate::tools) struct CommandSpan {
    inner: Arc<Inner>,
    span: RunSpan,
}

impl Drop for CommandSpan {
    fn drop(&mut self) {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.span.number);
    }
}

impl CommandSpan {
    /// Records which directories were created or removed between the two states.
    pub(in crate::tools) async fn directories(&self, before: &Directories, now: &Directories) {
        let noted = changed_directories(before, now);
        if !noted.is_empty() {
            log_failure(self.inner.baselines.note_directories(self.span.owner.clone(), noted).await);
        }
    }

    /// Returns the changes, except those made by file tools in other sessions.
    pub(in crate::tools) async fn without_others(&self, mut changed: Vec<PathDifference>) -> Vec<PathDifference> {
        if changed.is_empty() {
            return changed;
        }
        let others = self.inner.baselines.written_by_others(self.span.clone(), changed.clone()).await;
        if let Some(others) = log_failure(others).filter(|others| !others.is_empty()) {
            changed.retain(|one| !others.contains(&self.span.since.root.join(&one.path)));
        }
        changed
    }

    /// Records the changes that the command made, and ends its span.
    pub(in crate::tools) async fn record_changes(self, changed: Vec<PathDifference>) {
        log_failure(self.inner.baselines.end_span(self.span.clone(), changed, false).await);
    }
}

impl ChangeLog {
    pub(crate) fn new(
        baselines: Arc<dyn Baselines>,
        checkpoints: Arc<dyn Checkpoints>,
        session: SessionId,
        resumed: bool,
    ) -> Self {
        let inner = Inner {
            baselines,
            checkpoints,
            session,
            resumed,
            task: Mutex::default(),
            step: AtomicU64::new(0),
            running: Mutex::default(),
            external: tokio::sync::Mutex::default(),
            written: ToolWrites::default(),
        };
        Self { inner: Arc::new(inner), of_agent: false }
    }

    /// Returns the log for one of the session's agents. Tasks and steps that the agent begins are ignored.
    pub(crate) fn for_agent(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), of_agent: true }
    }

    /// Attributes subsequent changes to this task. Returns whether it is the first task in this process.
    pub(in crate::tools) fn begin_task(&self, task: TaskId) -> bool {
        if self.of_agent {
            return false;
        }
        self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).replace(task).is_none()
    }

    /// Attributes subsequent changes to this step.
    pub(in crate::tools) fn set_step(&self, step: u64) {
        if !self.of_agent {
            self.inner.step.store(step, Ordering::Relaxed);
        }
    }

    pub(in crate::tools) fn baselines(&self) -> &dyn Baselines {
        &*self.inner.baselines
    }

    pub(in crate::tools) fn checkpoints(&self) -> &dyn Checkpoints {
        &*self.inner.checkpoints
    }

    pub(in crate::tools) fn session(&self) -> &SessionId {
        &self.inner.session
    }

    pub(in crate::tools) fn is_resumed(&self) -> bool {
        self.inner.resumed
    }

    /// Returns what is known about changes made by other programs.
    pub(in crate::tools) fn external(&self) -> &tokio::sync::Mutex<ExternalChanges> {
        &self.inner.external
    }

    /// Returns whether a call is waiting for the command with this span.
    pub(in crate::tools) fn is_waited_for(&self, span: &RunSpan) -> bool {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).contains(&span.number)
    }

    /// Returns the task and step to which changes are currently attributed.
    pub(in crate::tools) fn owner(&self) -> Attribution {
        let task = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Attribution { session: self.inner.session.clone(), task, step: self.inner.step.load(Ordering::Relaxed) }
    }

    /// Saves the paths that a tool is about to change. A failure is recorded, but does not keep the tool from running.
    pub(in crate::tools) async fn keep(&self, paths: Vec<PathBuf>) -> SavedPaths {
        let (owner, looked) = (self.owner(), paths.clone());
        let directories = tokio::task::spawn_blocking(move || directories_at(&looked)).await.unwrap_or_default();
        if let Err(error) = self.inner.baselines.keep(owner.clone(), paths.clone()).await {
            tracing::warn!(%error, "the list of changed files is incomplete");
            log_failure(
                self.inner.baselines.note_gap(owner.clone(), format!("{} was not saved: {error}", list_paths(&paths))).await,
            );
        }
        SavedPaths { owner, paths, directories }
    }

    /// Records the current content of the saved paths as content that the tool wrote.
    pub(in crate::tools) async fn record_saved(&self, kept: SavedPaths) {
        let SavedPaths { owner, paths, directories } = kept;
        self.inner.written.note(&paths);
        let looked = paths.clone();
        let now = tokio::task::spawn_blocking(move || directories_at(&looked)).await.unwrap_or_default();
        let noted = changed_directories(&directories, &now);
        if !noted.is_empty() {
            log_failure(self.inner.baselines.note_directories(owner.clone(), noted).await);
        }
        log_failure(self.inner.baselines.record_tool_change(owner, paths).await);
    }

    /// Records that this step made a change that cannot be undone.
    pub(in crate::tools) async fn note_gap(&self, words: String) {
        log_failure(self.inner.baselines.note_gap(self.owner(), words).await);
    }

    /// Creates a mark. Files that aye's tools write from now on can be recognized as theirs.
    pub(in crate::tools) fn mark(&self) -> WriteMark {
        self.inner.written.mark()
    }

    /// Marks the start of a command. `others_go_on` says whether a command for which no call waits is already running.
    pub(in crate::tools) fn mark_command(&self, others_go_on: bool) -> WriteMark {
        self.inner.written.command(others_go_on)
    }

    /// Records that aye itself wrote these paths.
    pub(in crate::tools) fn record_write(&self, paths: &[PathBuf]) {
        self.inner.written.note(paths);
    }

    /// Begins the span of a command that may change the files in this snapshot.
    pub(in crate::tools) async fn begin(&self, since: &Checkpoint) -> Option<CommandSpan> {
        let span = log_failure(self.inner.baselines.begin_span(self.owner(), since.clone()).await)?;
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).insert(span.number);
        Some(CommandSpan { inner: Arc::clone(&self.inner), span })
    }
}

fn list_paths(paths: &[PathBuf]) -> String {
    match paths {
        [one] => format!("`{}`", one.display()),
        [first, rest @ ..] => format!("`{}` and {} more", first.display(), rest.len()),
        [] => "nothing".to_owned(),
    }
}

/// Logs a failure, whose only consequence is that the list of changes is incomplete.
pub(in crate::tools) fn log_failure<T>(done: Result<T, CheckpointError>) -> Option<T> {
    done.inspect_err(|error| tracing::warn!(%error, "the list of changed files is incomplete")).ok()
}
