//! Files that a session has changed: detects changes made by commands and other programs, lists them, and rewinds them.

mod external;
mod render;
mod rewind;
mod task_totals;
pub(in crate::tools) mod workspace_files;

use super::change_log::{ChangeLog, log_failure};
use super::settings::ToolSettings;
use crate::ports::CheckpointError;
use crate::protocol::{Action, ChangedFiles, TaskId};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The changes made in one session, viewed under the current policy.
#[derive(Clone, Copy)]
pub(in crate::tools) struct SessionChanges<'a> {
    log: &'a ChangeLog,
    settings: &'a Arc<ToolSettings>,
}

impl<'a> SessionChanges<'a> {
    /// Returns the session's changes, or `None` if they are not tracked.
    pub(in crate::tools) fn new(settings: &'a Arc<ToolSettings>) -> Option<Self> {
        settings.session.changes.as_ref().map(|log| Self { log, settings })
    }

    /// Attributes subsequent changes to this task. Changes by other programs are tracked from the first task on.
    pub(in crate::tools) fn begin_task(&self, task: TaskId) {
        if self.log.begin_task(task) {
            let (log, settings) = (self.log.clone(), Arc::clone(self.settings));
            tokio::spawn(async move { external::begin(&mut *log.external().lock().await, &settings).await });
        }
    }

    /// Records the changes that other programs have made so far, so they can be told apart from later changes.
    pub(in crate::tools) async fn note_others(&self) {
        let mut external = self.log.external().lock().await;
        log_failure(external::record_touched(&mut external, self.log, self.settings).await);
    }

    /// Lists the files that differ from their state at the start of the session or, if a task is given, from their
    /// state before the task first changed them.
    pub(in crate::tools) async fn list(&self, task: Option<TaskId>) -> ChangedFiles {
        if !self.log.is_resumed() && self.log.owner().task.is_none() {
            return ChangedFiles::default();
        }
        let mut notes = Vec::new();
        if let Err(error) = self.record_running_commands().await {
            notes.push(format!("a command's changes are unknown: {error}"));
        }
        {
            let mut external = self.log.external().lock().await;
            match external::record_touched(&mut external, self.log, self.settings).await {
                Ok(()) => notes.extend(external.notes()),
                Err(error) => notes.push(format!("changes by other programs are unknown: {error}")),
            }
        }
        match self.log.baselines().differences(self.log.session().clone(), task.clone()).await {
            Ok(differences) => {
                let told = render::render(differences, notes, self.log.checkpoints(), self.settings).await;
                ChangedFiles { since_task: task, ..told }
            }
            Err(error) => {
                notes.push(format!("cannot read this session's changes: {error}"));
                ChangedFiles { notes, since_task: task, ..ChangedFiles::default() }
            }
        }
    }

    /// Records the changes of commands that have not been examined yet, because they are still running or were running
    /// when aye exited.
    async fn record_running_commands(&self) -> Result<(), CheckpointError> {
        for span in self.log.baselines().open_spans(self.log.session().clone()).await? {
            let goes_on = self.log.is_waited_for(&span) || self.settings.session.commands.has_running();
            let files = workspace_files::files(self.settings, &span.since.root, &CancellationToken::new()).await;
            let files = files.map_err(|error| CheckpointError { message: error.message })?;
            let changed = self.log.checkpoints().changes(span.since.clone(), files).await;
            // If the snapshot is gone, nothing more can be determined.
            self.log.baselines().end_span(span, changed.clone().unwrap_or_default(), goes_on).await?;
            changed?;
        }
        Ok(())
    }
}

/// Returns the paths that a tool changes directly. The list is empty if the call runs a command.
pub(in crate::tools) fn changed_paths(actions: &[Action]) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for action in actions {
        match action {
            Action::Write { target } | Action::Delete { target } => places.push(target.real.clone()),
            Action::Exec { .. } | Action::Named { .. } | Action::Custom { .. } => return Vec::new(),
            Action::Read { .. }
            | Action::Fetch { .. }
            | Action::Search { .. }
            | Action::Open { .. }
            | Action::Upload { .. }
            | Action::Invoke { .. } => {}
        }
    }
    places
}

#[cfg(test)]
mod tests;
