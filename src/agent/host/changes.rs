//! File changes of the session: attributed to tasks and steps, and listed at the end.

use super::call_context::CallContext;
use crate::agent::turn::Input;
use crate::ports::ToolRouter;
use crate::protocol::{ChangedFiles, StepId, TaskId};
use std::time::Duration;

/// Maximum time that the end of a session, or of a goal's check, waits for the list.
const LIST_TIMEOUT: Duration = Duration::from_secs(6);

/// Task to which the tools attribute changes.
#[derive(Default)]
pub(super) struct ChangeTracker {
    task: Option<TaskId>,
}

impl ChangeTracker {
    pub(crate) fn task(&self) -> Option<TaskId> {
        self.task.clone()
    }

    /// Notifies the tools when another task or step begins.
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

/// Lists the changed files since a task, for the goal of the session.
pub(super) fn list(context: &CallContext, ticket: u64, since: Option<TaskId>) {
    let (router, inputs) = (context.router(), context.inputs());
    tokio::spawn(async move {
        let listed = tokio::time::timeout(LIST_TIMEOUT, router.changed_files(since)).await;
        if listed.is_err() {
            tracing::warn!("the list of changed files for the goal took too long");
        }
        let _ = inputs.send(Input::ChangesListed { ticket, changes: listed.ok() }).await;
    });
}

/// Returns the changed files, if there are any.
pub(super) async fn all_changes(router: &dyn ToolRouter) -> Option<ChangedFiles> {
    let Ok(changed) = tokio::time::timeout(LIST_TIMEOUT, router.changed_files(None)).await else {
        tracing::warn!("the check for changed files took too long");
        return None;
    };
    (changed != ChangedFiles { notes: changed.notes.clone(), ..ChangedFiles::default() }).then_some(changed)
}
