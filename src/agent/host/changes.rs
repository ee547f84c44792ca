//! File changes of the session: attributed to tasks and steps, and listed at the end.

use crate::ports::ToolRouter;
use crate::protocol::{ChangedFiles, StepId, TaskId};
use std::time::Duration;

/// Maximum time that the end of a session waits for the list.
const LIST_TIMEOUT: Duration = Duration::from_secs(6);

/// Task that the tools attribute changes to.
#[derive(Default)]
pub(super) struct ChangeTracker {
    task: Option<TaskId>,
}

impl ChangeTracker {
    pub(crate) fn task(&self) -> Option<TaskId> {
        self.task.clone()
    }

    /// Tells the tools when another task or step begins.
    pub(crate) fn note(&mut self, router: &dyn ToolRouter, task: &TaskId, step: Option<&StepId>) {
        if self.task.as_ref() != Some(task) {
            self.task = Some(task.clone());
            router.task_started(task);
        }
        if let Some(step) = step {
            router.step_started(step.number());
        }
    }
}

/// Returns the changed files, if there are any.
pub(super) async fn all_changes(router: &dyn ToolRouter) -> Option<ChangedFiles> {
    let Ok(changed) = tokio::time::timeout(LIST_TIMEOUT, router.changed_files(None)).await else {
        tracing::warn!("the check for changed files took too long");
        return None;
    };
    (changed != ChangedFiles { notes: changed.notes.clone(), ..ChangedFiles::default() }).then_some(changed)
}
