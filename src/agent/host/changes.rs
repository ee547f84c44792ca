//! File changes of the session: attributed to tasks and steps, and reported at the end.

use super::Host;
use crate::protocol::{ChangedFiles, EventKind, StepId, TaskId};
use std::time::Duration;

/// Maximum time that the end of a session waits for the list.
const LAST_LOOK: Duration = Duration::from_secs(6);

impl Host {
    /// Tells the tools when another task or step begins.
    pub(super) fn note_task(&mut self, task: &TaskId, step: Option<&StepId>) {
        if self.task.as_ref() != Some(task) {
            self.task = Some(task.clone());
            self.router.began(task);
        }
        if let Some(step) = step {
            self.router.stepped(step.number());
        }
    }

    /// Reports the changed files, if there are any.
    pub(super) async fn tell_changes_at_the_end(&mut self) {
        let router = self.router.clone();
        let Ok(changed) = tokio::time::timeout(LAST_LOOK, router.changed_files(None)).await else {
            return tracing::warn!("the check for changed files took too long");
        };
        if changed != (ChangedFiles { notes: changed.notes.clone(), ..ChangedFiles::default() }) {
            self.emit(None, None, EventKind::ChangedFiles(changed));
        }
    }
}
