//! What the session changed, told when it is asked for and at the end.

use super::Host;
use crate::protocol::{ChangedFiles, EventKind, StepId, TaskId};
use std::time::Duration;

/// How long the end of a session may wait for the list.
const LAST_LOOK: Duration = Duration::from_secs(6);

impl Host {
    /// The tools are told when another task or step begins.
    pub(super) fn note_task(&mut self, task: &TaskId, step: Option<&StepId>) {
        if self.task.as_ref() != Some(task) {
            self.task = Some(task.clone());
            self.router.began(task);
        }
        if let Some(step) = step {
            self.router.stepped(step.number());
        }
    }

    /// Beside what else goes on, and whether or not the session can be saved now.
    pub(super) fn list_changes(&self, task: Option<TaskId>) {
        let (router, teller) = (self.router.clone(), self.teller());
        tokio::spawn(async move {
            let changed = router.changed_files(task).await;
            teller.tell(None, None, EventKind::ChangedFiles(changed));
        });
    }

    /// Nothing is said where nothing changed.
    pub(super) async fn tell_changes_at_the_end(&mut self) {
        let router = self.router.clone();
        let Ok(changed) = tokio::time::timeout(LAST_LOOK, router.changed_files(None)).await else {
            return tracing::warn!("the look for what changed took too long");
        };
        if changed != (ChangedFiles { notes: changed.notes.clone(), ..ChangedFiles::default() }) {
            self.emit(None, None, EventKind::ChangedFiles(changed));
        }
    }
}
