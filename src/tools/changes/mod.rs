//! Files changed by a session: saved before aye changes them, detected after commands, and watched for changes by other
//! programs.

mod directories;
mod external;
mod render;
mod rewind;
mod task_totals;
mod tool_writes;

use super::settings::Settings;
use super::shell::checkpoint::{self, Directories};
use crate::ports::{Baselines, Changed, Checkpoint, CheckpointError, Checkpoints, Owner, Span};
use crate::protocol::{Action, ChangedFiles, SessionId, TaskId};
use external::ExternalChanges;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
pub(in crate::tools) use tool_writes::{Mark, ToolWrites};

/// The changes of one session, independent of the current policy. Cheap to clone.
#[derive(Clone)]
pub struct Changes {
    inner: Arc<Inner>,
}

struct Inner {
    baselines: Arc<dyn Baselines>,
    checkpoints: Arc<dyn Checkpoints>,
    session: SessionId,
    /// Whether the session had records before this process started.
    resumed: bool,
    task: Mutex<Option<TaskId>>,
    /// Number of the current step, counted over the whole session.
    step: AtomicU64,
    /// Span numbers of commands that a call waits for.
    running: Mutex<HashSet<i64>>,
    outside: tokio::sync::Mutex<ExternalChanges>,
    written: ToolWrites,
}

/// Paths saved before a tool changes them.
pub(in crate::tools) struct SavedPaths {
    owner: Owner,
    paths: Vec<PathBuf>,
    directories: Directories,
}

/// A command that may change files. The span ends on drop, whether or not its changes were recorded.
pub(in crate::tools) struct CommandSpan {
    inner: Arc<Inner>,
    span: Span,
}

impl Drop for CommandSpan {
    fn drop(&mut self) {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.span.number);
    }
}

impl CommandSpan {
    /// Records the created and removed directories.
    pub(in crate::tools) async fn directories(&self, before: &Directories, now: &Directories) {
        let noted = directories::touched(before, now);
        if !noted.is_empty() {
            noticed(self.inner.baselines.note_directories(self.span.owner.clone(), noted).await);
        }
    }

    pub(in crate::tools) async fn changed(self, changed: Vec<Changed>) {
        noticed(self.inner.baselines.end(self.span.clone(), changed, false).await);
    }
}

impl Changes {
    pub fn new(baselines: Arc<dyn Baselines>, checkpoints: Arc<dyn Checkpoints>, session: SessionId, resumed: bool) -> Self {
        let inner = Inner {
            baselines,
            checkpoints,
            session,
            resumed,
            task: Mutex::default(),
            step: AtomicU64::new(0),
            running: Mutex::default(),
            outside: tokio::sync::Mutex::default(),
            written: ToolWrites::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Assigns further changes to this task. Changes by other programs are tracked from the first task on.
    pub(in crate::tools) fn began(&self, task: TaskId, settings: &Arc<Settings>) {
        let first = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).replace(task).is_none();
        if first {
            let (inner, settings) = (Arc::clone(&self.inner), Arc::clone(settings));
            tokio::spawn(async move { inner.outside.lock().await.begin(&settings).await });
        }
    }

    /// Assigns further changes to this step.
    pub(in crate::tools) fn stepped(&self, step: u64) {
        self.inner.step.store(step, Ordering::Relaxed);
    }

    fn owner(&self) -> Owner {
        let task = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Owner { session: self.inner.session.clone(), task, step: self.inner.step.load(Ordering::Relaxed) }
    }

    /// Saves the paths that a tool is about to change. A failure is recorded, but does not stop the tool.
    pub(in crate::tools) async fn keep(&self, paths: Vec<PathBuf>) -> SavedPaths {
        let (owner, looked) = (self.owner(), paths.clone());
        let directories = tokio::task::spawn_blocking(move || directories::standing(&looked)).await.unwrap_or_default();
        if let Err(error) = self.inner.baselines.keep(owner.clone(), paths.clone()).await {
            tracing::warn!(%error, "the list of changed files is incomplete");
            noticed(self.inner.baselines.note_gap(owner.clone(), format!("{} was not saved: {error}", named(&paths))).await);
        }
        SavedPaths { owner, paths, directories }
    }

    /// Records the current content of the saved paths as written by the tool.
    pub(in crate::tools) async fn settle(&self, kept: SavedPaths) {
        let SavedPaths { owner, paths, directories } = kept;
        self.inner.written.note(&paths);
        let looked = paths.clone();
        let now = tokio::task::spawn_blocking(move || directories::standing(&looked)).await.unwrap_or_default();
        let noted = directories::touched(&directories, &now);
        if !noted.is_empty() {
            noticed(self.inner.baselines.note_directories(owner.clone(), noted).await);
        }
        noticed(self.inner.baselines.settle(owner, paths).await);
    }

    /// Records a change of this step that cannot be undone.
    pub(in crate::tools) async fn note_gap(&self, words: String) {
        noticed(self.inner.baselines.note_gap(self.owner(), words).await);
    }

    /// Marks the point from which files written by aye's tools are recognized as theirs.
    pub(in crate::tools) fn mark(&self) -> Mark {
        self.inner.written.mark()
    }

    /// Marks the start of a command. `others_go_on` is set if a command that no call waits for is already running.
    pub(in crate::tools) fn mark_command(&self, others_go_on: bool) -> Mark {
        self.inner.written.command(others_go_on)
    }

    /// Records paths written by aye itself.
    pub(in crate::tools) fn wrote(&self, paths: &[PathBuf]) {
        self.inner.written.note(paths);
    }

    /// Begins the span of a command that can change the files of the given snapshot.
    pub(in crate::tools) async fn begin(&self, since: &Checkpoint) -> Option<CommandSpan> {
        let span = noticed(self.inner.baselines.begin(self.owner(), since.clone()).await)?;
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).insert(span.number);
        Some(CommandSpan { inner: Arc::clone(&self.inner), span })
    }

    /// Records the changes that other programs made so far, to separate them from later ones.
    pub(in crate::tools) async fn note_others(&self, settings: &Arc<Settings>) {
        let mut outside = self.inner.outside.lock().await;
        noticed(outside.note(self, settings).await);
    }

    /// Lists the files that differ from their state at the start of the session, or before the task first changed them.
    pub(in crate::tools) async fn list(&self, task: Option<TaskId>, settings: &Arc<Settings>) -> ChangedFiles {
        if !self.inner.resumed && self.owner().task.is_none() {
            return ChangedFiles::default();
        }
        let mut notes = Vec::new();
        if let Err(error) = self.look_at_commands(settings).await {
            notes.push(format!("the changes of a command are unknown: {error}"));
        }
        {
            let mut outside = self.inner.outside.lock().await;
            match outside.note(self, settings).await {
                Ok(()) => notes.extend(outside.words()),
                Err(error) => notes.push(format!("the changes by other programs are unknown: {error}")),
            }
        }
        match self.inner.baselines.differences(self.inner.session.clone(), task.clone()).await {
            Ok(differences) => {
                let told = render::told(differences, notes, &*self.inner.checkpoints, settings).await;
                ChangedFiles { since_task: task, ..told }
            }
            Err(error) => {
                notes.push(format!("cannot read the changes of this session: {error}"));
                ChangedFiles { notes, since_task: task, ..ChangedFiles::default() }
            }
        }
    }

    /// Records the changes of commands that nobody has examined: they are still running, or aye ended while they ran.
    async fn look_at_commands(&self, settings: &Arc<Settings>) -> Result<(), CheckpointError> {
        for span in self.inner.baselines.open_spans(self.inner.session.clone()).await? {
            let waited_for = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).contains(&span.number);
            let goes_on = waited_for || settings.commands.any_runs();
            let files = checkpoint::files(settings, &span.since.root, &CancellationToken::new()).await;
            let files = files.map_err(|error| CheckpointError { message: error.message })?;
            let changed = self.inner.checkpoints.changes(span.since.clone(), files).await;
            // If the snapshot is gone, nothing more can be learned.
            self.inner.baselines.end(span, changed.clone().unwrap_or_default(), goes_on).await?;
            changed?;
        }
        Ok(())
    }
}

/// Returns the paths that a tool changes directly; none if the call runs a command.
pub(in crate::tools) fn places(actions: &[Action]) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for action in actions {
        match action {
            Action::Write { target } | Action::Delete { target } => places.push(target.real.clone()),
            Action::Exec { .. } | Action::Named { .. } | Action::Custom { .. } => return Vec::new(),
            Action::Read { .. } | Action::Fetch { .. } | Action::Open { .. } | Action::Upload { .. } | Action::Invoke { .. } => {}
        }
    }
    places
}

fn named(paths: &[PathBuf]) -> String {
    match paths {
        [one] => format!("`{}`", one.display()),
        [first, rest @ ..] => format!("`{}` and {} more", first.display(), rest.len()),
        [] => "nothing".to_owned(),
    }
}

fn noticed<T>(done: Result<T, CheckpointError>) -> Option<T> {
    done.inspect_err(|error| tracing::warn!(%error, "the list of changed files is incomplete")).ok()
}

#[cfg(test)]
mod tests;
